package governed.queue;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class ProductionTest {

    @Test
    void waitsAsLongAsSomethingMoves() throws Exception {
        AtomicLong asked = new AtomicLong();
        assertThat(Production.awaitTaken(50, asked::incrementAndGet, 10_000)).isEqualTo(50);
    }

    @Test
    void saysWhichQueuesThereAre() {
        assertThat(Queue.of("rocketmq-pull")).isEqualTo(Queue.ROCKETMQ_PULL);
        assertThatThrownBy(() -> Queue.of("rabbit")).hasMessageContaining("kafka, rocketmq-push, rocketmq-pull");
    }

    @Test
    void givesUpWhenNothingMovesAnyMore() throws Exception {
        AtomicLong asked = new AtomicLong();
        assertThat(Production.awaitTaken(50, () -> Math.min(7, asked.incrementAndGet()), 300)).isEqualTo(7);
    }
}
