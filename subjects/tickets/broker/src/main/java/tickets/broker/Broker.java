package tickets.broker;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import java.util.concurrent.Callable;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import kafka.tools.StorageTool;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.utils.Time;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** A Kafka broker in KRaft mode, in one process and on 127.0.0.1 only. */
@Command(name = "broker", mixinStandardHelpOptions = true,
    description = "A Kafka broker on 127.0.0.1. Goes on with what stands in its folder; an empty one is formatted first.")
public final class Broker implements Callable<Integer> {
  private static final Logger LOG = LoggerFactory.getLogger(Broker.class);
  /** Kafka writes it as it formats a folder. */
  private static final String FORMATTED = "meta.properties";

  @Option(names = "--port", required = true, description = "Where clients connect.")
  private int port;

  @Option(names = "--controller-port", required = true, description = "Where the broker talks to itself.")
  private int controllerPort;

  @Option(names = "--folder", required = true, paramLabel = "DIR", description = "Where everything is kept.")
  private Path folder;

  /** Starts the broker. */
  public static void main(String[] args) {
    int code = new CommandLine(new Broker()).execute(args);
    if (code != 0) {
      System.exit(code);
    }
  }

  @Override
  public Integer call() throws IOException {
    Properties properties = Settings.of(folder, port, controllerPort);
    Files.createDirectories(folder);
    if (!Files.exists(folder.resolve("data").resolve(FORMATTED))) {
      format(properties);
    }
    KafkaRaftServer server = new KafkaRaftServer(new KafkaConfig(properties, false), Time.SYSTEM);
    Runtime.getRuntime().addShutdownHook(new Thread(server::shutdown, "end"));
    server.startup();
    // The study waits for this line.
    LOG.info("broker is running on 127.0.0.1:{}", port);
    server.awaitShutdown();
    return 0;
  }

  private void format(Properties properties) throws IOException {
    Path file = folder.resolve("server.properties");
    try (Writer writer = Files.newBufferedWriter(file)) {
      properties.store(writer, "Written when the folder was formatted; read by Kafka's own tool only.");
    }
    ByteArrayOutputStream said = new ByteArrayOutputStream();
    int code = StorageTool.execute(
        new String[] {"format", "--cluster-id", Uuid.randomUuid().toString(), "--config", file.toString()},
        new PrintStream(said, true, StandardCharsets.UTF_8));
    if (code != 0) {
      throw new IOException("cannot format " + folder + ": " + said.toString(StandardCharsets.UTF_8).strip()
          + "; choose another --folder, or remove what is half there");
    }
  }
}
