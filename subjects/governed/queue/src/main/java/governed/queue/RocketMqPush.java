package governed.queue;

import java.io.IOException;
import java.util.concurrent.CountDownLatch;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/** From RocketMQ, whose client calls. */
final class RocketMqPush extends Consumption {

    private static final int MESSAGES_AT_ONCE = 32;

    private final DefaultMQPushConsumer consumer;
    private final CountDownLatch closed = new CountDownLatch(1);

    RocketMqPush(String names, String topic, String group) throws IOException {
        consumer = RocketMq.client(new DefaultMQPushConsumer(group), names);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeThreadMin(1);
        consumer.setConsumeThreadMax(1);
        consumer.setConsumeMessageBatchMaxSize(MESSAGES_AT_ONCE);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, where) -> {
            for (MessageExt message : messages) {
                read(message.getBody(), message.getProperty(TAG) != null);
            }
            count(messages.size());
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        RocketMq.subscribe(names, topic, () -> {
            consumer.subscribe(topic, "*");
            consumer.start();
        });
    }

    @Override
    void take() {
        try {
            closed.await();
        } catch (InterruptedException hurried) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public boolean isReady() {
        return !consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().isEmpty();
    }

    @Override
    public void close() {
        consumer.shutdown();
        closed.countDown();
    }
}
