package tickets.check;

import com.fasterxml.jackson.core.JsonProcessingException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import picocli.CommandLine.Option;
import tickets.common.Json;
import tickets.common.Messages.Area;
import tickets.common.Messages.CreateEvent;

/** The ticket services, as a customer sees them. */
final class Shop {
  @Option(names = "--ticket", required = true, split = ",", paramLabel = "URL",
      description = "The ticket services, every instance: http://127.0.0.1:8081,http://127.0.0.1:8082")
  private List<String> tickets;

  private final HttpClient client = HttpClient.newHttpClient();

  /** What a ticket service says that it did. */
  private record Counts(long accepted, long lost) {}

  int instances() {
    return tickets.size();
  }

  /** An event with so many areas of the same size. */
  static CreateEvent event(String name, int areas, int rows, int columns) {
    return new CreateEvent(name, "the usual band",
        IntStream.range(0, areas).mapToObj(it -> new Area(String.valueOf(it), rows, columns)).toList());
  }

  /**
   * Creates the event.
   *
   * @throws IOException if the first ticket service does not take it
   */
  void create(CreateEvent event) throws IOException, InterruptedException {
    ask(HttpRequest.newBuilder(URI.create(tickets.get(0) + "/v1/event")).POST(BodyPublishers.ofString(Json.write(event))));
  }

  /** Wants seats; the reservation's id. Instances take turns. */
  CompletableFuture<String> reserve(int turn, String event, String area, int seats) {
    String ticket = tickets.get(turn % tickets.size());
    Map<String, Object> wish = Map.of("area", area, "user", "rehearsal", "seats", seats);
    return later(HttpRequest.newBuilder(URI.create(ticket + "/v1/event/" + event + "/reservation"))
        .POST(BodyPublishers.ofString(Json.write(wish)))).thenApply(id -> ticket + "/v1/reservation/" + id);
  }

  /** The result at this URL, as soon as there is one. */
  CompletableFuture<String> result(String url) {
    return later(HttpRequest.newBuilder(URI.create(url)));
  }

  private CompletableFuture<String> later(HttpRequest.Builder request) {
    return client.sendAsync(request.build(), BodyHandlers.ofString()).thenApply(Shop::good);
  }

  /** Reservations accepted by all instances, and messages lost by them. */
  long[] acceptedAndLost() throws IOException, InterruptedException {
    long accepted = 0;
    long lost = 0;
    for (String ticket : tickets) {
      Counts counts = counts(ask(HttpRequest.newBuilder(URI.create(ticket + "/v1/counts"))), ticket);
      accepted += counts.accepted();
      lost += counts.lost();
    }
    return new long[] {accepted, lost};
  }

  private static Counts counts(String text, String ticket) throws IOException {
    try {
      return Json.read(text, Counts.class);
    } catch (JsonProcessingException e) {
      throw new IOException(ticket + " is no ticket service: " + e.getOriginalMessage(), e);
    }
  }

  private String ask(HttpRequest.Builder request) throws IOException, InterruptedException {
    try {
      return good(client.send(request.build(), BodyHandlers.ofString()));
    } catch (UncheckedIOException e) {
      throw e.getCause();
    }
  }

  private static String good(HttpResponse<String> answer) {
    if (answer.statusCode() != 200) {
      throw new UncheckedIOException(
          new IOException(answer.uri() + " says " + answer.statusCode() + ": " + answer.body()));
    }
    return answer.body();
  }
}
