package governor.balancer;

/** Calls of one instance and how many of them failed, second by second, for the last {@link RemovalRule#LONGEST_WINDOW} seconds. */
final class CallWindow {

    private static final int SIZE = RemovalRule.LONGEST_WINDOW;

    /** Which second a place is about; a place that is about a second too long ago counts for nothing. */
    private final long[] seconds = new long[SIZE];

    private final int[] calls = new int[SIZE];
    private final int[] failures = new int[SIZE];

    CallWindow() {
        java.util.Arrays.fill(seconds, Long.MIN_VALUE);
    }

    synchronized void add(long second, boolean failed) {
        int place = (int) Math.floorMod(second, (long) SIZE);
        if (seconds[place] != second) {
            seconds[place] = second;
            calls[place] = 0;
            failures[place] = 0;
        }
        calls[place]++;
        if (failed) {
            failures[place]++;
        }
    }

    /** Whether, within so many seconds up to this one, there were enough calls and too many of them failed. */
    synchronized boolean isBad(long second, RemovalRule rule) {
        int all = 0;
        int bad = 0;
        for (int place = 0; place < SIZE; place++) {
            if (seconds[place] > second - rule.windowSeconds() && seconds[place] <= second) {
                all += calls[place];
                bad += failures[place];
            }
        }
        return all >= rule.calls() && bad >= rule.errors() * all;
    }

    synchronized void forget() {
        java.util.Arrays.fill(seconds, Long.MIN_VALUE);
    }
}
