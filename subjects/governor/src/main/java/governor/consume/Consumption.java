package governor.consume;

import java.util.Collections;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;

/** What consumers ask before and after they look for messages. */
public final class Consumption {

    /** Topics that are not to be consumed. */
    static volatile Set<String> prohibited = Set.of();

    /** Partitions that were paused here, by consumer: those that the application has paused itself stay so. */
    private static final Map<Object, Set<Object>> PAUSED = Collections.synchronizedMap(new WeakHashMap<>());

    /** Messages that a client has and the application does not. */
    interface Held {
        String topic();

        /** Gives them to the application. */
        void release();
    }

    /** Those of prohibited topics, where a client calls the application. */
    private static final Queue<Held> HELD = new ConcurrentLinkedQueue<>();

    private Consumption() {}

    /** A new rule, or none: what it lets pass goes on. */
    static void prohibit(Set<String> topics) {
        prohibited = topics;
        release();
    }

    /** Keeps messages until their topic is no longer prohibited. Returns true. */
    public static boolean hold(Held messages) {
        HELD.add(messages);
        // The rule may have gone in between, and with it who would have let them go.
        if (!isProhibited(messages.topic())) {
            release();
        }
        return true;
    }

    private static void release() {
        for (Held held : HELD) {
            if (!isProhibited(held.topic()) && HELD.remove(held)) {
                held.release();
            }
        }
    }

    /** Whether a consumer has nothing to do with the rule: there is none, and nothing of it is paused. */
    public static boolean isFree(Object consumer) {
        return prohibited.isEmpty() && (PAUSED.isEmpty() || !PAUSED.containsKey(consumer));
    }

    /** Whether messages of a topic are to be left where they are. */
    public static boolean isProhibited(String topic) {
        return prohibited.contains(topic);
    }

    /** A partition of a consumer was paused. */
    public static void paused(Object consumer, Object partition) {
        PAUSED.computeIfAbsent(consumer, one -> ConcurrentHashMap.newKeySet()).add(partition);
    }

    /** Whether it was paused here; it no longer is from now on. */
    public static boolean resumed(Object consumer, Object partition) {
        Set<Object> partitions = PAUSED.get(consumer);
        boolean was = partitions != null && partitions.remove(partition);
        if (was && partitions.isEmpty()) {
            PAUSED.remove(consumer);
        }
        return was;
    }
}
