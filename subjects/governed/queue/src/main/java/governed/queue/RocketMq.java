package governed.queue;

import java.io.IOException;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.remoting.exception.RemotingException;

/** Makes topics of RocketMQ and sends messages to them. */
final class RocketMq {

    private static final int PARTITIONS = 3;
    private static final int AT_ONCE = 256;
    private static final int ASK_AGAIN_MILLISECONDS = 1000;
    private static final int ATTEMPTS = 20;
    /** A topic that every broker has; another one is made like it. */
    private static final String PATTERN = "TBW102";

    static {
        // Who is in a group is looked at every so often only; a service that starts waits for that.
        System.setProperty("rocketmq.client.rebalance.waitInterval", Integer.toString(ASK_AGAIN_MILLISECONDS));
    }

    private RocketMq() {}

    /** What all clients are told. */
    static <C extends ClientConfig> C client(C client, String names) {
        client.setNamesrvAddr(names);
        client.setPollNameServerInterval(ASK_AGAIN_MILLISECONDS);
        // The address of the machine that others see is of no use here.
        client.setClientIP("127.0.0.1");
        return client;
    }

    /** What a client of theirs can refuse. */
    interface Step {
        void take() throws MQClientException;
    }

    /** Begins to take messages of a topic, and makes it before: one that is not there has no partitions to wait for. */
    static void subscribe(String names, String topic, Step subscription) throws IOException {
        make(names, topic);
        try {
            subscription.take();
        } catch (MQClientException refused) {
            throw new IOException("cannot take messages of " + topic + ", of which " + names + " is to know", refused);
        }
    }

    private static void make(String names, String topic) throws IOException {
        DefaultMQProducer producer = client(new DefaultMQProducer("maker"), names);
        try {
            producer.start();
            make(producer, topic);
        } catch (MQClientException refused) {
            throw new IOException("the broker that " + names + " knows does not make the topic " + topic, refused);
        } finally {
            producer.shutdown();
        }
    }

    /** A broker that has just started may not have said so to its name server. */
    private static void make(DefaultMQProducer producer, String topic) throws MQClientException {
        for (int attempt = 1; ; attempt++) {
            try {
                producer.createTopic(PATTERN, topic, PARTITIONS, Map.of());
                return;
            } catch (MQClientException notYet) {
                if (attempt == ATTEMPTS) {
                    throw notYet;
                }
                LockSupport.parkNanos(ASK_AGAIN_MILLISECONDS * 1_000_000L);
            }
        }
    }

    /** Sends so many messages, some of them at once. */
    static void send(String names, String topic, long count) throws IOException {
        DefaultMQProducer producer = client(new DefaultMQProducer("producer"), names);
        byte[] body = new byte[Queue.MESSAGE_BYTES];
        Outcome outcome = new Outcome();
        try {
            producer.start();
            make(producer, topic);
            for (long sent = 0; sent < count && outcome.failed.get() == null; sent++) {
                outcome.free.acquire();
                producer.send(new Message(topic, body), outcome);
            }
            outcome.free.acquire(AT_ONCE);
        } catch (MQClientException | RemotingException refused) {
            outcome.failed.compareAndSet(null, refused);
        } catch (InterruptedException hurried) {
            Thread.currentThread().interrupt();
            outcome.failed.compareAndSet(null, hurried);
        } finally {
            producer.shutdown();
        }
        if (outcome.failed.get() != null) {
            throw new IOException("the broker that " + names + " knows did not take every message", outcome.failed.get());
        }
    }

    private static final class Outcome implements SendCallback {
        final Semaphore free = new Semaphore(AT_ONCE);
        final AtomicReference<Throwable> failed = new AtomicReference<>();

        @Override
        public void onSuccess(SendResult result) {
            free.release();
        }

        @Override
        public void onException(Throwable problem) {
            failed.compareAndSet(null, problem);
            free.release();
        }
    }
}
