package governed.queue;

import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** From Kafka. */
final class KafkaConsumption extends Consumption {

    private final KafkaConsumer<byte[], byte[]> consumer;
    private volatile boolean assigned;

    KafkaConsumption(String broker, String topic, String group) {
        Properties settings = new Properties();
        settings.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, broker);
        settings.put(ConsumerConfig.GROUP_ID_CONFIG, group);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        // The topic may be made after the consumer has asked for it.
        settings.put(ConsumerConfig.METADATA_MAX_AGE_CONFIG, 1000);
        consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(List.of(topic));
    }

    @Override
    void take() {
        try {
            while (true) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(200));
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    read(record.value(), record.headers().lastHeader(TAG) != null);
                }
                count(records.count());
                assigned = !consumer.assignment().isEmpty();
            }
        } catch (WakeupException asked) {
            consumer.close(Duration.ofSeconds(2));
        }
    }

    @Override
    public boolean isReady() {
        return assigned;
    }

    @Override
    public void close() {
        consumer.wakeup();
    }
}
