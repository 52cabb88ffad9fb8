package tickets.reservation;

import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import tickets.common.Running;
import tickets.common.StreamsOptions;
import tickets.common.Topics;

/** The reservation service: what becomes of every wish. */
@Command(name = "reservation", mixinStandardHelpOptions = true,
    description = "Refuses reservations of areas that are too full, and asks the areas for the others. Reads and writes Kafka only.")
public final class Reservations implements Callable<Integer> {
  private static final int COMMIT_MS = 20;

  @Mixin private StreamsOptions options;

  /** Starts the service. */
  public static void main(String[] args) {
    int code = new CommandLine(new Reservations()).execute(args);
    // The streams go on in threads of their own.
    if (code != 0) {
      System.exit(code);
    }
  }

  @Override
  public Integer call() {
    Topics.create(options.bootstrap(), options.instances());
    Running.start(Running.of(ReservationTopology.build(), options.streams("reservation", COMMIT_MS)),
        options.state("reservation"), () -> {});
    return 0;
  }
}
