package governed.queue;

import java.io.IOException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/** From RocketMQ, whose client calls. */
final class RocketMqPush implements Consumption {

    private static final int MESSAGES_AT_ONCE = 32;

    private final DefaultMQPushConsumer consumer;
    private final AtomicLong taken = new AtomicLong();
    private final AtomicLong bytes = new AtomicLong();
    private final CountDownLatch stopped = new CountDownLatch(1);

    RocketMqPush(String names, String topic, String group) throws IOException {
        consumer = RocketMq.client(new DefaultMQPushConsumer(group), names);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeThreadMin(1);
        consumer.setConsumeThreadMax(1);
        consumer.setConsumeMessageBatchMaxSize(MESSAGES_AT_ONCE);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, where) -> {
            for (MessageExt message : messages) {
                bytes.addAndGet(message.getBody().length);
            }
            taken.addAndGet(messages.size());
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        try {
            consumer.subscribe(topic, "*");
            consumer.start();
        } catch (MQClientException refused) {
            throw new IOException("cannot take messages of " + topic + ", of which " + names + " is to know", refused);
        }
    }

    @Override
    public void run() {
        try {
            stopped.await();
        } catch (InterruptedException hurried) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public long taken() {
        return taken.get();
    }

    @Override
    public boolean isReady() {
        return !consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().isEmpty();
    }

    @Override
    public void stop() {
        consumer.shutdown();
        stopped.countDown();
    }

    @Override
    public void close() {
        stop();
    }
}
