package governed.queue;

import java.io.IOException;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/** From RocketMQ, whose client is asked. */
final class RocketMqPull implements Consumption {

    private static final long PATIENCE_MILLISECONDS = 200;

    private final DefaultLitePullConsumer consumer;
    private final AtomicLong taken = new AtomicLong();
    private final AtomicLong bytes = new AtomicLong();
    private final CountDownLatch ended = new CountDownLatch(1);
    private volatile boolean stopped;
    private volatile boolean assigned;

    RocketMqPull(String names, String topic, String group) throws IOException {
        consumer = RocketMq.client(new DefaultLitePullConsumer(group), names);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
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
            while (!stopped) {
                List<MessageExt> messages = consumer.poll(PATIENCE_MILLISECONDS);
                for (MessageExt message : messages) {
                    bytes.addAndGet(message.getBody().length);
                }
                taken.addAndGet(messages.size());
                assigned = !consumer.assignment().isEmpty();
            }
        } catch (MQClientException closed) {
            throw new IllegalStateException(closed);
        } finally {
            consumer.shutdown();
            ended.countDown();
        }
    }

    @Override
    public long taken() {
        return taken.get();
    }

    @Override
    public boolean isReady() {
        return assigned;
    }

    @Override
    public void stop() {
        stopped = true;
        try {
            ended.await(5, TimeUnit.SECONDS);
        } catch (InterruptedException hurried) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void close() {
        stopped = true;
    }
}
