package governed.queue;

import java.io.IOException;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Sends messages to Kafka. */
final class KafkaMessages {

    private KafkaMessages() {}

    static void send(String broker, String topic, long count) throws IOException {
        Properties settings = new Properties();
        settings.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, broker);
        settings.put(ProducerConfig.ACKS_CONFIG, "1");
        settings.put(ProducerConfig.LINGER_MS_CONFIG, 5);
        AtomicReference<Exception> failed = new AtomicReference<>();
        byte[] message = new byte[Queue.MESSAGE_BYTES];
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (long sent = 0; sent < count; sent++) {
                producer.send(new ProducerRecord<>(topic, message), (where, problem) -> {
                    if (problem != null) {
                        failed.compareAndSet(null, problem);
                    }
                });
            }
        }
        if (failed.get() != null) {
            throw new IOException("the broker at " + broker + " did not take every message", failed.get());
        }
    }
}
