package governed.queue;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** Takes messages, one thread, and counts them. */
public abstract class Consumption implements AutoCloseable {

    /** What a message may have been sent for: Kafka's header, RocketMQ's property. */
    static final String TAG = "x-tag";

    private static final long PATIENCE_SECONDS = 5;

    private final AtomicLong taken = new AtomicLong();
    private final AtomicLong bytes = new AtomicLong();
    private final AtomicLong tagged = new AtomicLong();
    private final CountDownLatch ended = new CountDownLatch(1);

    /** Takes messages until {@link #close}. */
    abstract void take();

    /** Whether it has been given partitions to read. */
    public abstract boolean isReady();

    /** Asks the run to end, from any thread. */
    @Override
    public abstract void close();

    /** Until {@link #stop}. */
    public final void run() {
        try {
            take();
        } finally {
            ended.countDown();
        }
    }

    /** Ends the run, from another thread, and waits for its end. */
    public final void stop() {
        close();
        try {
            ended.await(PATIENCE_SECONDS, TimeUnit.SECONDS);
        } catch (InterruptedException hurried) {
            Thread.currentThread().interrupt();
        }
    }

    /** Messages that were taken. */
    public final long taken() {
        return taken.get();
    }

    /** Messages among them that say what they were sent for. */
    public final long tagged() {
        return tagged.get();
    }

    /** Reads a message, as an application would. */
    final void read(byte[] message, boolean isTagged) {
        bytes.addAndGet(message.length);
        if (isTagged) {
            tagged.incrementAndGet();
        }
    }

    /** Counts messages that were read. */
    final void count(int messages) {
        taken.addAndGet(messages);
    }
}
