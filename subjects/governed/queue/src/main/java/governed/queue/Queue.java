package governed.queue;

import java.io.IOException;
import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/** Where messages come from and go to, and how they are taken. */
public enum Queue {
    /** Kafka. */
    KAFKA(KafkaConsumption::new, KafkaMessages::send),
    /** RocketMQ, whose client calls the application with messages. */
    ROCKETMQ_PUSH(RocketMqPush::new, RocketMq::send),
    /** RocketMQ, whose client the application asks for messages. */
    ROCKETMQ_PULL(RocketMqPull::new, RocketMq::send);

    static final int MESSAGE_BYTES = 100;

    private final Source source;
    private final Target target;

    Queue(Source source, Target target) {
        this.source = source;
        this.target = target;
    }

    private interface Source {
        Consumption consume(String broker, String topic, String group) throws IOException;
    }

    private interface Target {
        void send(String broker, String topic, long count) throws IOException;
    }

    /**
     * Takes the messages of a topic.
     *
     * @param broker `host:port`; of RocketMQ, of its name server
     * @param group those of one group share the messages
     */
    public Consumption consume(String broker, String topic, String group) throws IOException {
        return source.consume(broker, topic, group);
    }

    /** Sends so many messages; all of them are with the broker when it returns. */
    public void send(String broker, String topic, long count) throws IOException {
        target.send(broker, topic, count);
    }

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
