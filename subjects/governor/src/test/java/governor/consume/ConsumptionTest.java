package governor.consume;

import static org.assertj.core.api.Assertions.assertThat;

import governor.rules.RuleText;
import org.junit.jupiter.api.Test;

class ConsumptionTest {

    @Test
    void remembersWhatItHasPausedItself() {
        Object consumer = new Object();
        assertThat(Consumption.isFree(consumer)).isTrue();
        new ConsumeProhibition().rule(RuleText.parse("topics=orders"));
        assertThat(Consumption.isFree(consumer)).isFalse();
        assertThat(Consumption.isProhibited("orders")).isTrue();
        assertThat(Consumption.isProhibited("payments")).isFalse();
        Consumption.paused(consumer, "orders-0");
        new ConsumeProhibition().rule(null);
        assertThat(Consumption.isFree(consumer)).as("it must still be resumed").isFalse();
        assertThat(Consumption.isFree(new Object())).isTrue();
        assertThat(Consumption.resumed(consumer, "orders-1")).as("the application's own pause").isFalse();
        assertThat(Consumption.resumed(consumer, "orders-0")).isTrue();
        assertThat(Consumption.isFree(consumer)).isTrue();
    }
}
