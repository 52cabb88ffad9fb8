package tickets.ticket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import tickets.common.Messages.Result;
import tickets.common.Messages.State;

class WaitingTest {
  private final Waiting waiting = new Waiting();

  private static Result result(String id) {
    return new Result(id, "e", "a", State.FAILED, List.of(), "sold out");
  }

  @Test
  void everybodyWhoWaitsIsToldAndForgotten() {
    CompletableFuture<Result> first = waiting.expect("1");
    CompletableFuture<Result> second = waiting.expect("1");
    CompletableFuture<Result> other = waiting.expect("2");
    Result result = result("1");
    waiting.resolve(result);
    assertSame(result, first.join());
    assertSame(result, second.join());
    assertFalse(other.isDone());
    assertEquals(1, waiting.size());
    waiting.resolve(result("3"));
    assertEquals(1, waiting.size(), "nobody waits for the third");
  }

  @Test
  void whoGivesUpIsForgottenAloneNotTheOthers() throws Exception {
    CompletableFuture<Result> patient = waiting.expect("1");
    CompletableFuture<Result> hasty = waiting.expect("1").completeOnTimeout(null, 1, TimeUnit.MILLISECONDS);
    assertSame(null, hasty.get(10, TimeUnit.SECONDS));
    assertEquals(1, waiting.size());
    waiting.resolve(result("1"));
    assertTrue(patient.isDone());
    assertEquals(0, waiting.size());
  }
}
