package governor.balancer;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.function.LongSupplier;

/** Which instances fail, and which of them are out. Instances are known by `host:port`. */
public final class Outliers {

    private static final long NANOSECONDS = 1_000_000_000L;
    /** Of an instance that is not out. */
    private static final long IN = Long.MIN_VALUE;

    private final LongSupplier clock;
    private final Map<String, Instance> instances = new ConcurrentHashMap<>();

    private static final class Instance {
        final CallWindow window = new CallWindow();
        /** Second from which on it is called again. */
        volatile long outUntil = IN;
    }

    /**
     * Of an application.
     *
     * @param clock nanoseconds that only grow
     */
    public Outliers(LongSupplier clock) {
        this.clock = clock;
    }

    private long second() {
        return Math.floorDiv(clock.getAsLong(), NANOSECONDS);
    }

    /** A call of an instance has ended. */
    public void called(String instance, boolean failed) {
        instances.computeIfAbsent(instance, name -> new Instance()).window.add(second(), failed);
    }

    /**
     * Those that may be called. Takes out whoever has become bad.
     *
     * @param told is told of an instance that goes out
     */
    public synchronized <T> List<T> keep(
            List<T> all, RemovalRule rule, Function<T, String> name, java.util.function.Consumer<String> told) {
        long now = second();
        List<T> kept = new ArrayList<>(all.size());
        for (T one : all) {
            Instance known = instances.get(name.apply(one));
            if (known == null || !isOut(known, now)) {
                kept.add(one);
            }
        }
        int mayGo = Math.min((int) (rule.most() * all.size()), all.size() - 1) - (all.size() - kept.size());
        for (int at = kept.size() - 1; at >= 0 && mayGo > 0; at--) {
            String which = name.apply(kept.get(at));
            Instance known = instances.get(which);
            if (known != null && known.window.isBad(now, rule)) {
                known.outUntil = now + rule.restSeconds();
                kept.remove(at);
                mayGo--;
                told.accept(which);
            }
        }
        return kept.isEmpty() ? all : kept;
    }

    private static boolean isOut(Instance known, long now) {
        if (known.outUntil == IN) {
            return false;
        }
        if (now < known.outUntil) {
            return true;
        }
        known.outUntil = IN;
        known.window.forget();
        return false;
    }
}
