package governor.boot;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/**
 * The tags of the request that the current thread works on: headers of the caller, by lower-case name.
 *
 * <p>Classes of the JDK use this, so it uses nothing else. The thread that took the request knows its tags; threads that it hands
 * work to do not.
 */
public final class Tags {

    private static final ThreadLocal<Map<String, String>> CURRENT = new ThreadLocal<>();

    /** Headers by which the router chooses. */
    private static volatile Set<String> routed = Set.of();

    /** Headers that are handed on to whoever is called. */
    private static volatile Set<String> transmitted = Set.of();

    private static volatile String[] wanted = {};

    private Tags() {}

    /** Sets the headers by which the router chooses. */
    public static synchronized void route(Set<String> names) {
        routed = names;
        want();
    }

    /** Sets the headers that are handed on. */
    public static synchronized void transmit(Set<String> names) {
        transmitted = names;
        want();
    }

    private static void want() {
        Set<String> all = new java.util.TreeSet<>(routed);
        all.addAll(transmitted);
        wanted = all.toArray(new String[0]);
    }

    /** The headers of a request that are worth being remembered. */
    public static String[] wanted() {
        return wanted;
    }

    /** What the thread's request says under this name; null if it does not. */
    public static String get(String name) {
        Map<String, String> tags = CURRENT.get();
        return tags == null ? null : tags.get(name);
    }

    /** Those to be handed on; empty if there are none. */
    public static Map<String, String> toTransmit() {
        Map<String, String> tags = CURRENT.get();
        Set<String> names = transmitted;
        if (tags == null || names.isEmpty()) {
            return Map.of();
        }
        Map<String, String> out = new LinkedHashMap<>();
        for (Map.Entry<String, String> tag : tags.entrySet()) {
            if (names.contains(tag.getKey())) {
                out.put(tag.getKey(), tag.getValue());
            }
        }
        return out;
    }

    /** A new request begins on this thread. Returns the tags of the one around it, for {@link #leave}. */
    public static Map<String, String> enter(Map<String, String> tags) {
        Map<String, String> around = CURRENT.get();
        CURRENT.set(tags);
        return around;
    }

    /** The request has ended. */
    public static void leave(Map<String, String> around) {
        if (around == null) {
            CURRENT.remove();
        } else {
            CURRENT.set(around);
        }
    }
}
