package tickets.check;

import java.io.IOException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import picocli.CommandLine.Option;

/** Reservations of another event before the load, so that no service is measured that has never done anything. */
final class Rehearsal {
  private static final String EVENT = "rehearsal";
  /** More would wait longer than a long poll, while nothing is compiled yet. */
  private static final int AT_ONCE_AT_FIRST = 64;
  private static final int FIRST = 500;
  private static final int AT_ONCE = 512;
  private static final int MOST_SEATS = 4;

  @Option(names = "--rehearse", defaultValue = "0", paramLabel = "N",
      description = "Reservations of another event beforehand (default: ${DEFAULT-VALUE}).")
  private int reservations;

  boolean isWanted() {
    return reservations > 0;
  }

  String event() {
    return EVENT;
  }

  /**
   * Reserves, as many at once as there are places, which are few at first, and waits for every result.
   *
   * @throws IOException if one of them got no result
   */
  void run(Shop shop, int areas) throws IOException, InterruptedException {
    Semaphore places = new Semaphore(AT_ONCE_AT_FIRST);
    AtomicLong failures = new AtomicLong();
    for (int i = 0; i < reservations; i++) {
      if (i == FIRST) {
        places.release(AT_ONCE - AT_ONCE_AT_FIRST);
      }
      places.acquire();
      CompletableFuture<?> one = shop.reserve(i, EVENT, String.valueOf(i % areas), 1 + i % MOST_SEATS)
          .thenCompose(id -> shop.result(id));
      one.whenComplete((done, e) -> {
        if (e != null) {
          failures.incrementAndGet();
        }
        places.release();
      });
    }
    places.acquire(reservations > FIRST ? AT_ONCE : AT_ONCE_AT_FIRST);
    if (failures.get() > 0) {
      throw new IOException(failures + " of " + reservations + " reservations of the rehearsal failed; look into the logs");
    }
  }
}
