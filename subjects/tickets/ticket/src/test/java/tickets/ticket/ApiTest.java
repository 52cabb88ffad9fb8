package tickets.ticket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpClient.Version;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import tickets.common.Json;
import tickets.common.Messages.Choice;
import tickets.common.Messages.CreateReservation;
import tickets.common.Messages.Result;
import tickets.common.Messages.Seat;
import tickets.common.Messages.State;
import tickets.common.Topics;
import tickets.ticket.Peers.Protocol;

/** Two instances with a real front and real clients; only Kafka is not there. */
class ApiTest {
  private static final long LONG_POLL_MS = 1_500;
  private static final String WISH = "{\"area\": \"a\", \"user\": \"u\", \"seats\": 2}";

  private final HttpClient customer = HttpClient.newBuilder().version(Version.HTTP_2).build();
  private final ExecutorService resuming = Executors.newSingleThreadExecutor();
  private Instance first;
  private Instance second;

  /** An instance that has the results whose id ends in its name. */
  private final class Instance implements Directory {
    final MockProducer<String, byte[]> kafka =
        new MockProducer<>(true, null, new StringSerializer(), new ByteArraySerializer());
    final Waiting waiting = new Waiting();
    final Map<String, Result> results = new ConcurrentHashMap<>();
    final String name;
    final Peers peers;
    final Front front;
    Instance other;
    boolean ready = true;

    Instance(String name, Protocol protocol) throws Exception {
      this.name = name;
      peers = new Peers(protocol, LONG_POLL_MS + 2_000);
      front = new Front(new Api(this, new Orders(kafka), waiting, peers, resuming, LONG_POLL_MS), 0, 0);
    }

    String url() {
      return "http://127.0.0.1:" + front.port();
    }

    void decide(Result result) {
      results.put(result.id(), result);
      waiting.resolve(result);
    }

    @Override
    public boolean isReady() {
      return ready;
    }

    @Override
    public Optional<String> elsewhere(String id) throws NotNow {
      if (!ready) {
        throw new NotNow("the store is moving", null);
      }
      return id.endsWith(name) ? Optional.empty() : Optional.of(other.url());
    }

    @Override
    public Optional<Result> here(String id) throws NotNow {
      elsewhere(id);
      return Optional.ofNullable(results.get(id));
    }
  }

  private void start(Protocol protocol) throws Exception {
    first = new Instance("1", protocol);
    second = new Instance("2", protocol);
    first.other = second;
    second.other = first;
  }

  @AfterEach
  void stop() throws Exception {
    for (Instance instance : List.of(first, second)) {
      instance.front.close();
      instance.peers.close();
    }
    resuming.shutdownNow();
  }

  private static Result reserved(String id) {
    return new Result(id, "e", "a", State.RESERVED, List.of(new Seat(0, 1)), null);
  }

  private HttpResponse<String> get(String path) throws Exception {
    return later(path).get(30, TimeUnit.SECONDS);
  }

  private CompletableFuture<HttpResponse<String>> later(String path) {
    return customer.sendAsync(HttpRequest.newBuilder(URI.create(first.url() + path)).build(), BodyHandlers.ofString());
  }

  private HttpResponse<String> post(String path, String body) throws Exception {
    return customer.send(HttpRequest.newBuilder(URI.create(first.url() + path)).POST(BodyPublishers.ofString(body)).build(),
        BodyHandlers.ofString());
  }

  private void assertRefused(String path, String body, String... words) throws Exception {
    HttpResponse<String> answer = post(path, body);
    assertEquals(400, answer.statusCode(), answer.body());
    for (String word : words) {
      assertTrue(answer.body().contains(word), answer.body());
    }
    assertEquals(0, first.kafka.history().size());
  }

  @ParameterizedTest
  @EnumSource(Protocol.class)
  void aResultIsAnsweredWhereverItIs(Protocol protocol) throws Exception {
    start(protocol);
    first.decide(reserved("r1"));
    second.decide(reserved("r2"));
    for (String id : List.of("r1", "r2")) {
      HttpResponse<String> answer = get("/v1/reservation/" + id);
      assertEquals(200, answer.statusCode());
      assertEquals(Version.HTTP_2, answer.version());
      assertEquals(Json.write(reserved(id)), answer.body());
    }
    assertEquals(0, first.waiting.size() + second.waiting.size());
  }

  @ParameterizedTest
  @EnumSource(Protocol.class)
  void aRequestWaitsForItsResultWhereverItComes(Protocol protocol) throws Exception {
    start(protocol);
    for (Instance owner : List.of(first, second)) {
      String id = "late" + owner.name;
      CompletableFuture<HttpResponse<String>> answer = later("/v1/reservation/" + id);
      while (owner.waiting.size() == 0) {
        Thread.sleep(5);
      }
      assertFalse(answer.isDone());
      owner.decide(reserved(id));
      assertEquals(Json.write(reserved(id)), answer.get(30, TimeUnit.SECONDS).body());
    }
  }

  @Test
  void afterTheLongPollItIsStillUnderWay() throws Exception {
    start(Protocol.HTTP2);
    for (String id : List.of("none1", "none2")) {
      long began = System.nanoTime();
      HttpResponse<String> answer = get("/v1/reservation/" + id);
      assertEquals(202, answer.statusCode());
      var body = new ObjectMapper().readTree(answer.body());
      assertEquals("PROCESSING", body.path("state").asText());
      assertTrue(System.nanoTime() - began >= LONG_POLL_MS * 1_000_000, "it waited");
    }
    assertEquals(0, first.waiting.size() + second.waiting.size());
  }

  @Test
  void aWishIsHandedOnUnderTheIdThatIsAnswered() throws Exception {
    start(Protocol.HTTP2);
    HttpResponse<String> answer = post("/v1/event/e/reservation", WISH);
    assertEquals(200, answer.statusCode());
    var sent = first.kafka.history();
    assertEquals(1, sent.size());
    assertEquals(Topics.CREATE_RESERVATION, sent.get(0).topic());
    assertEquals(answer.body(), sent.get(0).key());
    var wish = Json.serde(CreateReservation.class).deserializer().deserialize("", sent.get(0).value());
    assertEquals(new CreateReservation(answer.body(), "e", "a", "u", Choice.RANDOM, 2, List.of()), wish);
    var counts = new ObjectMapper().readTree(get("/v1/counts").body());
    assertEquals(1, counts.path("accepted").asInt());
    assertEquals(0, counts.path("lost").asInt(-1));
  }

  @Test
  void whatMakesNoSenseIsRefusedWithWords() throws Exception {
    start(Protocol.HTTP2);
    String path = "/v1/event/e/reservation";
    assertRefused(path, "{", "expected");
    assertRefused(path, "null", "JSON object");
    assertRefused(path, "{\"area\": \"a\", \"user\": \"u\", \"seats\": 5}", "`seats`", "1 to 4");
    assertRefused(path, "{\"area\": \"a#b\", \"user\": \"u\", \"seats\": 1}", "`area`");
    assertRefused(path, "{\"area\": \"a\", \"user\": \"u\", \"choice\": \"SELF_PICK\"}", "`picked`");
    assertRefused(path, "{\"area\": \"a\", \"user\": \"u\", \"choice\": \"BEST\"}", "BEST");
    assertRefused("/v1/event/a%20b/reservation", WISH, "`event`");
    assertRefused("/v1/event", "{\"event\": \"e\", \"areas\": []}", "`areas`");
    assertRefused("/v1/event", "{\"event\": \"e\", \"areas\": [{\"id\": \"a\", \"rows\": 0, \"columns\": 1}]}", "`rows`");
  }

  @Test
  void whatIsNotThereOrNotNowIsSaid() throws Exception {
    start(Protocol.HTTP2);
    assertEquals(404, get("/v1/nothing").statusCode());
    assertEquals(405, get("/v1/event").statusCode());
    assertEquals(200, get("/v1/health_check").statusCode());
    first.ready = false;
    assertEquals(503, get("/v1/health_check").statusCode());
    assertEquals(503, get("/v1/reservation/r1").statusCode());
    first.ready = true;
    second.ready = false;
    assertEquals(503, get("/v1/reservation/r2").statusCode());
  }
}
