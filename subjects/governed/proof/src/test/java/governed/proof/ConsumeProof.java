package governed.proof;

import static org.assertj.core.api.Assertions.assertThat;

import governed.queue.Consumption;
import governed.queue.Production;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Consume prohibition, with a real broker: messages stay where they are, and none is lost. */
class ConsumeProof {

    private static Bench bench;
    private static String broker;

    @BeforeAll
    static void start(@TempDir Path folder) throws Exception {
        bench = new Bench(folder);
        int port = Bench.freePort();
        bench.start("kafka.sh", port, Bench.freePort());
        broker = "127.0.0.1:" + port;
    }

    @AfterAll
    static void stop() throws Exception {
        bench.close();
    }

    @Test
    void nothingIsTakenWhileItIsProhibited() throws Exception {
        try (Runner orders = new Runner("orders")) {
            Production.send(broker, "orders", 100);
            Bench.await("100 messages", () -> orders.taken() == 100);

            bench.rule("consume", "topics=orders\n");
            // The rule holds from one of the next polls on.
            Thread.sleep(2000);
            Production.send(broker, "orders", 50);
            Thread.sleep(2000);
            assertThat(orders.taken()).isEqualTo(100);
            // One that joins now gets its partitions, and messages with them, within a poll.
            try (Runner payments = new Runner("payments")) {
                Production.send(broker, "payments", 10);
                Bench.await("another topic goes on", () -> payments.taken() == 10);
            }

            bench.noRule("consume");
            Bench.await("the 50 that had stayed", () -> orders.taken() == 150);
        }
    }

    @Test
    void whatWasThereBeforeStaysToo() throws Exception {
        Production.send(broker, "early", 30);
        bench.rule("consume", "topics=early\n");
        Thread.sleep(2000);
        try (Runner early = new Runner("early")) {
            Bench.await("it has partitions", early.consumption::isReady);
            Thread.sleep(2000);
            assertThat(early.taken()).isZero();
            bench.noRule("consume");
            Bench.await("all 30, once", () -> early.taken() >= 30);
            Thread.sleep(500);
            assertThat(early.taken()).isEqualTo(30);
        }
    }

    private static final class Runner implements AutoCloseable {
        final Consumption consumption;
        private final Thread thread;
        private final AtomicReference<Throwable> failed = new AtomicReference<>();

        Runner(String topic) {
            consumption = new Consumption(broker, topic, "group-of-" + topic);
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
