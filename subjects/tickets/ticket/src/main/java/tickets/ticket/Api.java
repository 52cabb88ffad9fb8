package tickets.ticket;

import io.opentelemetry.context.Context;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import org.eclipse.jetty.http.pathmap.MatchedResource;
import org.eclipse.jetty.http.pathmap.PathMappings;
import org.eclipse.jetty.http.pathmap.UriTemplatePathSpec;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Callback;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tickets.common.Messages.CreateEvent;
import tickets.common.Messages.Result;
import tickets.common.Messages.State;
import tickets.ticket.Directory.NotNow;
import tickets.ticket.Wish.Refused;

/** The requests that the ticket service answers. No thread waits for a result; requests do. */
final class Api extends Handler.Abstract {
  /** What other instances ask: what is here, and nowhere else. */
  static final String LOCAL = "/v1/local/reservation/";
  private static final Logger LOG = LoggerFactory.getLogger(Api.class);

  private final Directory directory;
  private final Orders orders;
  private final Waiting waiting;
  private final Peers peers;
  private final Executor resuming;
  private final long longPollMs;
  private final PathMappings<Route> routes = new PathMappings<>();

  /** What is done for a path and a method. */
  private record Route(String method, String path, Action action) {}

  private interface Action {
    void run(Exchange exchange) throws NotNow;
  }

  /** {@code resuming} runs what goes on when a result comes, so that the thread that brings it can bring the next one. */
  Api(Directory directory, Orders orders, Waiting waiting, Peers peers, Executor resuming, long longPollMs) {
    this.directory = directory;
    this.orders = orders;
    this.waiting = waiting;
    this.peers = peers;
    this.resuming = resuming;
    this.longPollMs = longPollMs;
    route("POST", "/v1/event", this::createEvent);
    route("POST", "/v1/event/{event}/reservation", this::reserve);
    route("GET", "/v1/reservation/{id}", this::result);
    route("GET", LOCAL + "{id}", exchange -> answerFromHere(exchange, exchange.path().get("id")));
    route("GET", "/v1/health_check", this::health);
    route("GET", "/v1/counts", exchange -> exchange.answer(Reply.json(200, orders.counts())));
  }

  private void route(String method, String path, Action action) {
    routes.put(new UriTemplatePathSpec(path), new Route(method, path, action));
  }

  @Override
  public boolean handle(Request request, Response response, Callback callback) {
    String path = Request.getPathInContext(request);
    MatchedResource<Route> found = routes.getMatched(path);
    if (found == null) {
      new Exchange(request, response, callback, Map.of()).answer(Reply.error(404, "there is no " + path));
      return true;
    }
    Route route = found.getResource();
    Map<String, String> parts = ((UriTemplatePathSpec) found.getPathSpec()).getPathParams(path);
    Exchange exchange = new Exchange(request, response, callback, parts);
    if (!route.method().equals(request.getMethod())) {
      exchange.answer(Reply.error(405, route.path() + " is for " + route.method()));
      return true;
    }
    Spans.route(route.method(), route.path());
    try {
      route.action().run(exchange);
    } catch (NotNow e) {
      exchange.answer(notNow(e));
    }
    return true;
  }

  private void health(Exchange exchange) {
    exchange.answer(directory.isReady() ? Reply.text("ok") : Reply.error(503, "the streams do not run yet; ask again"));
  }

  private void createEvent(Exchange exchange) {
    withBody(exchange, body -> {
      CreateEvent event = Wish.event(body);
      orders.create(event);
      return Reply.text(event.event());
    });
  }

  private void reserve(Exchange exchange) {
    withBody(exchange, body -> {
      String id = UUID.randomUUID().toString();
      orders.create(Wish.reservation(id, exchange.path().get("event"), body));
      return Reply.text(id);
    });
  }

  private interface Answering {
    Reply to(String body) throws Refused;
  }

  /** The body may come later, in another thread. */
  private static void withBody(Exchange exchange, Answering answering) {
    Context context = Context.current();
    exchange.body().whenComplete((body, e) -> {
      if (e != null) {
        exchange.callback().failed(e);
        return;
      }
      context.wrap(() -> {
        try {
          exchange.answer(answering.to(body));
        } catch (Refused refused) {
          exchange.answer(Reply.error(400, refused.getMessage()));
        } catch (RuntimeException broken) {
          LOG.error("a request is not stored", broken);
          exchange.answer(Reply.error(503, "it cannot be stored: " + broken.getMessage()));
        }
      }).run();
    });
  }

  private void result(Exchange exchange) throws NotNow {
    String id = exchange.path().get("id");
    Optional<String> elsewhere = Spans.around("key lookup", () -> directory.elsewhere(id));
    if (elsewhere.isEmpty()) {
      answerFromHere(exchange, id);
      return;
    }
    Spans.until("fetch from other host", () -> peers.get(elsewhere.get() + LOCAL + id))
        .whenComplete((reply, e) -> {
          if (e != null) {
            LOG.warn("{} does not answer: {}", elsewhere.get(), e.toString());
            exchange.answer(Reply.error(503, "the instance that has it does not answer; ask again"));
          } else {
            exchange.answer(reply);
          }
        });
  }

  private void answerFromHere(Exchange exchange, String id) {
    Context context = Context.current();
    CompletableFuture<Result> coming = Spans.until("fetch from here", () -> here(id));
    if (coming.isDone()) {
      coming.whenComplete((result, e) -> answer(exchange, id, result, e));
    } else {
      coming.whenCompleteAsync(
          (result, e) -> Spans.resumed(context, "resume", () -> answer(exchange, id, result, e)), resuming);
    }
  }

  /** The result; null if there is none in time. */
  private CompletableFuture<Result> here(String id) {
    // In this order, so that a result that comes in between is not missed.
    CompletableFuture<Result> coming = waiting.expect(id);
    try {
      Optional<Result> known = directory.here(id);
      if (known.isPresent()) {
        coming.complete(known.get());
      } else {
        coming.completeOnTimeout(null, longPollMs, TimeUnit.MILLISECONDS);
      }
    } catch (NotNow e) {
      coming.completeExceptionally(e);
    }
    return coming;
  }

  private static void answer(Exchange exchange, String id, Result result, Throwable e) {
    if (e != null) {
      Throwable cause = e.getCause() == null ? e : e.getCause();
      exchange.answer(notNow(e instanceof NotNow ? e : cause));
    } else if (result == null) {
      exchange.answer(Reply.json(202, Map.of("id", id, "state", State.PROCESSING)));
    } else {
      exchange.answer(Reply.json(200, result));
    }
  }

  private static Reply notNow(Throwable e) {
    return Reply.error(503, e.getMessage() + "; ask again");
  }
}
