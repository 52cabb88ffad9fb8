package tickets.check;

import java.time.Duration;
import picocli.CommandLine.Option;

/** What both commands are told. */
final class Where {
  @Option(names = "--bootstrap", required = true, paramLabel = "HOST:PORT", description = "Where the broker is.")
  private String bootstrap;

  @Option(names = "--timeout", defaultValue = "60", paramLabel = "SECONDS",
      description = "How long to wait at most (default: ${DEFAULT-VALUE}).")
  private int timeout;

  String bootstrap() {
    return bootstrap;
  }

  Deadline deadline() {
    return new Deadline(Duration.ofSeconds(timeout));
  }
}
