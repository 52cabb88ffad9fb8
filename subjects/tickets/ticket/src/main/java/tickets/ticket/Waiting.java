package tickets.ticket;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import tickets.common.Messages.Result;

/** Who waits for which result. */
final class Waiting {
  private final Map<String, List<CompletableFuture<Result>>> waiting = new ConcurrentHashMap<>();

  /** Completes when the result comes. Whoever gives up completes it himself; then it is forgotten. */
  CompletableFuture<Result> expect(String id) {
    CompletableFuture<Result> future = new CompletableFuture<>();
    waiting.compute(id, (key, all) -> {
      List<CompletableFuture<Result>> with = all == null ? new ArrayList<>(1) : all;
      with.add(future);
      return with;
    });
    future.whenComplete((result, e) -> waiting.computeIfPresent(id, (key, all) -> {
      all.remove(future);
      return all.isEmpty() ? null : all;
    }));
    return future;
  }

  /** Tells everybody who waits for it. */
  void resolve(Result result) {
    List<CompletableFuture<Result>> all = waiting.remove(result.id());
    if (all != null) {
      // From a copy: each takes itself out of the list.
      List.copyOf(all).forEach(future -> future.complete(result));
    }
  }

  int size() {
    return waiting.size();
  }
}
