package governed.queue;

import java.io.IOException;
import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/** Where messages come from and go to, and how they are taken. */
public enum Queue {
    /** Kafka. */
    KAFKA {
        @Override
        public Consumption consume(String broker, String topic, String group) {
            return new KafkaConsumption(broker, topic, group);
        }

        @Override
        public void send(String broker, String topic, long count) throws IOException {
            KafkaMessages.send(broker, topic, count);
        }
    },
    /** RocketMQ, whose client calls the application with messages. */
    ROCKETMQ_PUSH {
        @Override
        public Consumption consume(String broker, String topic, String group) throws IOException {
            RocketMq.make(broker, topic);
            return new RocketMqPush(broker, topic, group);
        }

        @Override
        public void send(String broker, String topic, long count) throws IOException {
            RocketMq.send(broker, topic, count);
        }
    },
    /** RocketMQ, whose client the application asks for messages. */
    ROCKETMQ_PULL {
        @Override
        public Consumption consume(String broker, String topic, String group) throws IOException {
            RocketMq.make(broker, topic);
            return new RocketMqPull(broker, topic, group);
        }

        @Override
        public void send(String broker, String topic, long count) throws IOException {
            RocketMq.send(broker, topic, count);
        }
    };

    static final int MESSAGE_BYTES = 100;

    /**
     * Takes the messages of a topic.
     *
     * @param broker `host:port`; of RocketMQ, of its name server
     * @param group those of one group share the messages
     */
    public abstract Consumption consume(String broker, String topic, String group) throws IOException;

    /** Sends so many messages; all of them are with the broker when it returns. */
    public abstract void send(String broker, String topic, long count) throws IOException;

    /** The one of a name, as `rocketmq-push`. */
    public static Queue of(String name) {
        return Arrays.stream(values())
                .filter(queue -> queue.toString().equals(name))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException("there is no queue `" + name + "`: "
                        + Arrays.stream(values()).map(Queue::toString).collect(Collectors.joining(", "))));
    }

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
}
