package governed.proof;

import static org.assertj.core.api.Assertions.assertThat;

import governed.queue.Consumption;
import governed.queue.Queue;
import java.nio.file.Path;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Consume prohibition, with real brokers: messages stay where they are, and none is lost. */
class ConsumeProof {

    private static final Map<Queue, String> BROKERS = new EnumMap<>(Queue.class);
    private static Bench bench;

    @BeforeAll
    static void start(@TempDir Path folder) throws Exception {
        bench = new Bench(folder);
        for (List<Queue> alike : List.of(List.of(Queue.KAFKA), List.of(Queue.ROCKETMQ_PUSH, Queue.ROCKETMQ_PULL))) {
            int port = Bench.freePort();
            bench.start("queue.sh", alike.get(0).toString(), port, Bench.freePort());
            alike.forEach(queue -> BROKERS.put(queue, "127.0.0.1:" + port));
        }
    }

    @AfterAll
    static void stop() throws Exception {
        bench.close();
    }

    @ParameterizedTest
    @EnumSource
    void nothingIsTakenWhileItIsProhibited(Queue queue) throws Exception {
        // Each has topics of its own: two take part in one broker.
        String ordered = "orders-" + queue;
        String paid = "payments-" + queue;
        try (Runner orders = new Runner(queue, ordered)) {
            Bench.await("it has partitions", orders.consumption::isReady);
            send(queue, ordered, 100);
            Bench.await("100 messages", () -> orders.taken() == 100);

            bench.rule("consume", "topics=" + ordered + "\n");
            // The rule holds from one of the next polls on.
            Thread.sleep(2000);
            send(queue, ordered, 50);
            Thread.sleep(2000);
            assertThat(orders.taken()).isEqualTo(100);
            // One that joins now gets its partitions, and messages with them, within a poll.
            try (Runner payments = new Runner(queue, paid)) {
                send(queue, paid, 10);
                Bench.await("another topic goes on", () -> payments.taken() == 10);
            }

            bench.noRule("consume");
            Bench.await("the 50 that had stayed", () -> orders.taken() == 150);
        }
    }

    @ParameterizedTest
    @EnumSource
    void whatWasThereBeforeStaysToo(Queue queue) throws Exception {
        String topic = "early-" + queue;
        send(queue, topic, 30);
        bench.rule("consume", "topics=" + topic + "\n");
        Thread.sleep(2000);
        try (Runner early = new Runner(queue, topic)) {
            Bench.await("it has partitions", early.consumption::isReady);
            Thread.sleep(2000);
            assertThat(early.taken()).isZero();
            bench.noRule("consume");
            Bench.await("all 30, once", () -> early.taken() >= 30);
            Thread.sleep(500);
            assertThat(early.taken()).isEqualTo(30);
        }
    }

    private static void send(Queue queue, String topic, long count) throws Exception {
        queue.send(BROKERS.get(queue), topic, count);
    }

    private static final class Runner implements AutoCloseable {
        final Consumption consumption;
        private final Thread thread;
        private final AtomicReference<Throwable> failed = new AtomicReference<>();

        Runner(Queue queue, String topic) throws Exception {
            consumption = queue.consume(BROKERS.get(queue), topic, "group-of-" + topic);
            thread = new Thread(consumption::run);
            thread.setUncaughtExceptionHandler((which, problem) -> failed.set(problem));
            thread.start();
        }

        long taken() {
            assertThat(failed.get()).isNull();
            return consumption.taken();
        }

        @Override
        public void close() throws InterruptedException {
            consumption.stop();
            thread.join(10_000);
        }
    }
}
