package tickets.event;

import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import tickets.common.Running;
import tickets.common.StreamsOptions;
import tickets.common.Topics;

/** The event service: areas and their seats. */
@Command(name = "event", mixinStandardHelpOptions = true,
    description = "Opens the areas of events and sells their seats. Reads and writes Kafka only.")
public final class Events implements Callable<Integer> {
  private static final int COMMIT_MS = 100;

  @Mixin private StreamsOptions options;

  /** Starts the service. */
  public static void main(String[] args) {
    int code = new CommandLine(new Events()).execute(args);
    // The streams go on in threads of their own.
    if (code != 0) {
      System.exit(code);
    }
  }

  @Override
  public Integer call() {
    Topics.create(options.bootstrap(), options.instances());
    Running.start(Running.of(EventTopology.build(), options.streams("event", COMMIT_MS)),
        options.state("event"), () -> {});
    return 0;
  }
}
