package tickets.common;

import java.nio.file.Path;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.streams.StreamsConfig;
import picocli.CommandLine.Option;

/** What every service on Kafka Streams is told on its command line. */
public final class StreamsOptions {
  /** Seats are few and messages small: more would only lie about in a small heap. */
  private static final int BATCH_BYTES = 128 * 1024;

  /** How soon an instance hears that another has come, and that work is given out anew. */
  private static final int HEARTBEAT_MS = 500;

  @Option(names = "--bootstrap", required = true, paramLabel = "HOST:PORT", description = "Where the broker is.")
  private String bootstrap;

  @Option(names = "--instance", defaultValue = "0", paramLabel = "N", description = "Which instance this is, from 0.")
  private int instance;

  @Option(names = "--instances", defaultValue = "2", paramLabel = "N",
      description = "How many there are; topics have as many partitions (default: ${DEFAULT-VALUE}).")
  private int instances;

  @Option(names = "--state", required = true, paramLabel = "DIR",
      description = "Folder for the state; it goes when the service ends well.")
  private Path state;

  @Option(names = "--commit", paramLabel = "MS",
      description = "Milliseconds between two transactions (default: 100, and 20 for the reservations).")
  private Integer commit;

  /** Where the broker is. */
  public String bootstrap() {
    return bootstrap;
  }

  /** Which instance this is. */
  public int instance() {
    return instance;
  }

  /** How many instances there are. */
  public int instances() {
    return instances;
  }

  /** Folder for the state of a service. */
  public Path state(String application) {
    return state.resolve(application + "-" + instance);
  }

  /**
   * The configuration of the streams.
   *
   * @param application name of the service
   * @param usual milliseconds between two transactions, unless the command line says otherwise
   */
  public Properties streams(String application, int usual) {
    int interval = commit == null ? usual : commit;
    Properties properties = new Properties();
    properties.put(StreamsConfig.APPLICATION_ID_CONFIG, application);
    properties.put(StreamsConfig.CLIENT_ID_CONFIG, application + "-" + instance);
    properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
    properties.put(StreamsConfig.STATE_DIR_CONFIG, state(application).toString());
    properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, interval);
    properties.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 1);
    properties.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
    properties.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
    properties.put(StreamsConfig.consumerPrefix(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG), HEARTBEAT_MS);
    properties.putAll(writing(interval, StreamsConfig.PRODUCER_PREFIX));
    return properties;
  }

  /** How the services write: batches of what comes within one transaction, packed, known to be stored. */
  public static Properties writing(int linger, String prefix) {
    Properties properties = new Properties();
    properties.put(prefix + ProducerConfig.LINGER_MS_CONFIG, linger);
    properties.put(prefix + ProducerConfig.BATCH_SIZE_CONFIG, BATCH_BYTES);
    properties.put(prefix + ProducerConfig.COMPRESSION_TYPE_CONFIG, "lz4");
    properties.put(prefix + ProducerConfig.ACKS_CONFIG, "all");
    return properties;
  }
}
