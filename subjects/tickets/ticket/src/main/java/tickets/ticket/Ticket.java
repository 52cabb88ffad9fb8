package tickets.ticket;

import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.state.HostInfo;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import tickets.common.Running;
import tickets.common.StreamsOptions;
import tickets.common.Topics;

/** The ticket service: the only one that speaks HTTP. */
@Command(name = "ticket", mixinStandardHelpOptions = true,
    description = "Takes events and reservations by HTTP/1.1 and HTTP/2 (clear text) on 127.0.0.1, and says what became of them.")
public final class Ticket implements Callable<Integer> {
  private static final Logger LOG = LoggerFactory.getLogger(Ticket.class);
  private static final int COMMIT_MS = 100;
  private static final long LONG_POLL_MS = 10_000;
  /** Another instance answers when its own long poll is over. */
  private static final long PEER_MS = LONG_POLL_MS + 5_000;
  private static final int RESUMING = 2;

  @Mixin private StreamsOptions options;

  @Option(names = "--port", required = true, description = "Port of this instance, for other instances and for health checks.")
  private int port;

  @Option(names = "--shared-port", defaultValue = "0", description = "Port that all instances listen on, for customers.")
  private int sharedPort;

  @Option(names = "--client", defaultValue = "HTTP2",
      description = "How other instances are asked: ${COMPLETION-CANDIDATES} (default: ${DEFAULT-VALUE}).")
  private Peers.Protocol client;

  /** Starts the service. */
  public static void main(String[] args) {
    int code = new CommandLine(new Ticket()).setCaseInsensitiveEnumValuesAllowed(true).execute(args);
    if (code != 0) {
      System.exit(code);
    }
  }

  @Override
  public Integer call() throws Exception {
    Topics.create(options.bootstrap(), options.instances());
    HostInfo own = new HostInfo("127.0.0.1", port);
    Properties properties = options.streams("ticket", COMMIT_MS);
    properties.put(StreamsConfig.APPLICATION_SERVER_CONFIG, own.host() + ":" + own.port());
    Waiting waiting = new Waiting();
    KafkaStreams streams = Running.of(ResultTopology.build(waiting::resolve), properties);
    Orders orders = Orders.to(options.bootstrap(), options.instance());
    Peers peers = new Peers(client, PEER_MS);
    ExecutorService resuming = Executors.newFixedThreadPool(RESUMING, work -> new Thread(work, "resume"));
    Api api = new Api(new StreamsDirectory(streams, own), orders, waiting, peers, resuming, LONG_POLL_MS);
    Front front = new Front(api, port, sharedPort);
    Running.start(streams, options.state("ticket"), () -> {
      close("front", front);
      close("orders", orders);
      close("peers", peers);
      resuming.shutdownNow();
    });
    return 0;
  }

  private static void close(String what, AutoCloseable part) {
    try {
      part.close();
    } catch (Exception e) {
      LOG.warn("the {} did not end well", what, e);
    }
  }
}
