package governed.queue;

/** Takes messages, one thread, and counts them. */
public interface Consumption extends AutoCloseable {

    /** Until {@link #stop}. */
    void run();

    /** Messages that were taken. */
    long taken();

    /** Whether it has been given partitions to read. */
    boolean isReady();

    /** Ends the run, from another thread. */
    void stop();

    @Override
    void close();
}
