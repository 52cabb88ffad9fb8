package governor.consume;

import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesArgument;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import governor.Advised;
import governor.Behaviour;
import governor.rules.RuleText;
import java.util.Set;

/** Topics that are not consumed, in Kafka's consumer (2) and RocketMQ's (5). The rule: {@code topics=orders,payments}. */
public final class ConsumeProhibition implements Behaviour {

    @Override
    public String name() {
        return "consume";
    }

    @Override
    public void rule(RuleText text) {
        Set<String> topics = Set.of();
        if (text != null) {
            topics = text.names("topics");
            text.end();
        }
        Consumption.prohibit(topics);
    }

    @Override
    public void install(Advised advised) {
        advised.add(
                "org.apache.kafka.clients.consumer.KafkaConsumer",
                named("poll").and(takesArguments(1)).and(takesArgument(0, named("java.time.Duration"))),
                "governor.consume.KafkaAdvice");
        advised.add(
                "org.apache.rocketmq.client.impl.consumer.ConsumeMessageConcurrentlyService",
                named("submitConsumeRequest"),
                "governor.consume.RocketMqPushAdvice");
        advised.add(
                "org.apache.rocketmq.client.impl.consumer.DefaultLitePullConsumerImpl",
                named("poll").and(takesArguments(1)),
                "governor.consume.RocketMqPullAdvice");
    }
}
