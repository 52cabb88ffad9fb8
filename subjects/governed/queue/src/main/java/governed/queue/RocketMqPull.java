package governed.queue;

import java.io.IOException;
import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/** From RocketMQ, whose client is asked. */
final class RocketMqPull extends Consumption {

    private static final long PATIENCE_MILLISECONDS = 200;

    private final DefaultLitePullConsumer consumer;
    private volatile boolean stopped;
    private volatile boolean assigned;

    RocketMqPull(String names, String topic, String group) throws IOException {
        consumer = RocketMq.client(new DefaultLitePullConsumer(group), names);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        RocketMq.subscribe(names, topic, () -> {
            consumer.subscribe(topic, "*");
            consumer.start();
        });
    }

    @Override
    void take() {
        try {
            while (!stopped) {
                List<MessageExt> messages = consumer.poll(PATIENCE_MILLISECONDS);
                for (MessageExt message : messages) {
                    read(message.getBody(), message.getProperty(TAG) != null);
                }
                count(messages.size());
                assigned = !consumer.assignment().isEmpty();
            }
        } catch (MQClientException closed) {
            throw new IllegalStateException(closed);
        } finally {
            consumer.shutdown();
        }
    }

    @Override
    public boolean isReady() {
        return assigned;
    }

    @Override
    public void close() {
        stopped = true;
    }
}
