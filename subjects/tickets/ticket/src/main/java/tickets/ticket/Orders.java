package tickets.ticket;

import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tickets.common.Json;
import tickets.common.Messages.CreateEvent;
import tickets.common.Messages.CreateReservation;
import tickets.common.StreamsOptions;
import tickets.common.Topics;

/** Hands on what customers want. They are answered before it is stored; what then is not stored is counted. */
final class Orders implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Orders.class);
  private static final int LINGER_MS = 100;
  /** As long as a broker may be away. */
  private static final int DELIVERY_MS = 300_000;
  private static final Duration CLOSING = Duration.ofSeconds(15);

  private final Producer<String, byte[]> producer;
  private final Serializer<CreateEvent> events = Json.serde(CreateEvent.class).serializer();
  private final Serializer<CreateReservation> reservations = Json.serde(CreateReservation.class).serializer();
  private final AtomicLong accepted = new AtomicLong();
  private final AtomicLong lost = new AtomicLong();

  Orders(Producer<String, byte[]> producer) {
    this.producer = producer;
  }

  static Orders to(String bootstrap, int instance) {
    Properties properties = StreamsOptions.writing(LINGER_MS, "");
    properties.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
    properties.put(ProducerConfig.CLIENT_ID_CONFIG, "orders-" + instance);
    properties.put(ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, true);
    properties.put(ProducerConfig.DELIVERY_TIMEOUT_MS_CONFIG, DELIVERY_MS);
    properties.put(ProducerConfig.MAX_BLOCK_MS_CONFIG, DELIVERY_MS);
    return new Orders(
        new KafkaProducer<>(properties, Serdes.String().serializer(), Serdes.ByteArray().serializer()));
  }

  void create(CreateEvent event) {
    send(Topics.CREATE_EVENT, event.event(), events.serialize(Topics.CREATE_EVENT, event));
  }

  void create(CreateReservation wish) {
    accepted.incrementAndGet();
    send(Topics.CREATE_RESERVATION, wish.id(), reservations.serialize(Topics.CREATE_RESERVATION, wish));
  }

  private void send(String topic, String key, byte[] value) {
    producer.send(new ProducerRecord<>(topic, key, value), (stored, e) -> {
      if (e != null) {
        lost.incrementAndGet();
        LOG.error("{} of {} is not stored, although it was accepted", topic, key, e);
      }
    });
  }

  /** Reservations that were accepted, and messages that could not be stored. */
  Map<String, Long> counts() {
    return Map.of("accepted", accepted.get(), "lost", lost.get());
  }

  @Override
  public void close() {
    producer.close(CLOSING);
  }
}
