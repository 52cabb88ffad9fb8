package tickets.check;

import java.time.Duration;
import java.util.function.Supplier;

/** Waiting that ends. */
final class Deadline {
  private final Duration time;
  private final long end;

  Deadline(Duration time) {
    this.time = time;
    this.end = System.nanoTime() + time.toNanos();
  }

  boolean isOver() {
    return System.nanoTime() >= end;
  }

  /**
   * Waits a little.
   *
   * @throws IllegalStateException if the time is over, with what was waited for
   */
  void pause(long ms, Supplier<String> unmet) throws InterruptedException {
    if (isOver()) {
      throw new IllegalStateException("after " + time.toSeconds() + " s " + unmet.get());
    }
    Thread.sleep(ms);
  }
}
