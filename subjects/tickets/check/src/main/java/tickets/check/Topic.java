package tickets.check;

import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serdes;
import tickets.common.Json;

/** Reads a topic from its beginning, as far as it is committed; goes on where it left off. */
final class Topic<T> implements AutoCloseable {
  private static final Duration POLL = Duration.ofMillis(100);

  private final KafkaConsumer<String, T> consumer;
  private final List<TopicPartition> partitions;
  private final Consumer<T> into;

  Topic(String bootstrap, String name, Class<T> type, Consumer<T> into) {
    this.into = into;
    Deserializer<T> values = Json.serde(type).deserializer();
    consumer = new KafkaConsumer<>(Map.of(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap,
        ConsumerConfig.ISOLATION_LEVEL_CONFIG, IsolationLevel.READ_COMMITTED.toString().toLowerCase(Locale.ROOT),
        ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false), Serdes.String().deserializer(), values);
    partitions = consumer.partitionsFor(name).stream().map(it -> new TopicPartition(name, it.partition())).toList();
    consumer.assign(partitions);
    consumer.seekToBeginning(partitions);
  }

  /** Reads on to where the topic ends now: the last stable offset, so that no open transaction hides anything behind it. */
  void readOn() {
    Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
    while (partitions.stream().anyMatch(it -> consumer.position(it) < ends.get(it))) {
      consumer.poll(POLL).forEach(record -> into.accept(record.value()));
    }
  }

  @Override
  public void close() {
    consumer.close();
  }
}
