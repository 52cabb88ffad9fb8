package tickets.check;

import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import tickets.common.Json;
import tickets.common.Messages.AreaStatus;
import tickets.common.Messages.CreateReservation;
import tickets.common.Messages.Result;
import tickets.common.Topics;

/** After a load: nothing is lost, nothing is doubled, no seat is sold twice. */
@Command(name = "verify", mixinStandardHelpOptions = true,
    description = "Waits until every accepted reservation has a result, and says what is wrong with them. Ends with 1 if "
        + "anything is.")
final class Verify implements Callable<Integer> {
  private static final long PAUSE_MS = 200;

  @Mixin private Shop shop;
  @Mixin private Where where;

  @Option(names = "--event", defaultValue = "concert",
      description = "The event that is counted; all are checked (default: ${DEFAULT-VALUE}).")
  private String event;

  @Override
  public Integer call() throws Exception {
    Books books = new Books(event);
    Deadline deadline = where.deadline();
    long accepted;
    long lost;
    try (Topic<CreateReservation> wishes = new Topic<>(
            where.bootstrap(), Topics.CREATE_RESERVATION, CreateReservation.class, books::want);
        Topic<Result> results =
            new Topic<>(where.bootstrap(), Topics.RESERVATION_RESULTS, Result.class, books::decide);
        Topic<AreaStatus> status = new Topic<>(where.bootstrap(), Topics.AREA_STATUS, AreaStatus.class, books::area)) {
      while (true) {
        long[] counts = shop.acceptedAndLost();
        accepted = counts[0];
        lost = counts[1];
        wishes.readOn();
        results.readOn();
        // What was slow has come now, or is a problem to tell of.
        if (books.wanted() >= accepted && books.open() == 0 || deadline.isOver()) {
          break;
        }
        Thread.sleep(PAUSE_MS);
      }
      status.readOn();
    }
    List<String> problems = books.problems(accepted, lost);
    problems.forEach(System.err::println);
    System.out.println(Json.write(books.numbers()));
    return problems.isEmpty() ? 0 : 1;
  }
}
