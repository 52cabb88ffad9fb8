package tickets.common;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.Locale;
import java.util.Properties;
import java.util.stream.Stream;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A topology that runs until the process is told to end. */
public final class Running {
  private static final Logger LOG = LoggerFactory.getLogger(Running.class);
  private static final Duration CLOSING = Duration.ofSeconds(20);

  private Running() {}

  /** Makes the streams; they do not run yet. */
  public static KafkaStreams of(Topology topology, Properties properties) {
    KafkaStreams streams = new KafkaStreams(topology, properties);
    String name = properties.getProperty("client.id");
    streams.setStateListener((now, before) -> {
      // The study waits for this line.
      LOG.info("{} is {}", name, now.name().toLowerCase(Locale.ROOT));
    });
    // A broker that was away for too long ends a thread, not the service.
    streams.setUncaughtExceptionHandler(e -> {
      LOG.error("{} begins a stream anew", name, e);
      return StreamThreadExceptionResponse.REPLACE_THREAD;
    });
    return streams;
  }

  /** Starts the streams, and ends them on SIGTERM: first {@code before}, then the streams, then their state. */
  public static void start(KafkaStreams streams, Path state, Runnable before) {
    Runtime.getRuntime().addShutdownHook(new Thread(() -> {
      before.run();
      if (streams.close(CLOSING)) {
        streams.cleanUp();
        remove(state);
      }
    }, "end"));
    streams.start();
  }

  /** Kafka Streams leaves the folders that it has emptied. */
  private static void remove(Path folder) {
    try (Stream<Path> all = Files.walk(folder)) {
      for (Path one : all.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(one);
      }
    } catch (IOException e) {
      LOG.warn("{} is left", folder, e);
    }
  }
}
