package tickets.ticket;

import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

/** The spans that are made by hand, by OpenTelemetry's API. Without an agent that API does nothing. */
final class Spans {
  private static final Tracer TRACER = GlobalOpenTelemetry.getTracer("tickets");

  private Spans() {}

  /** Names the span of the request that is being answered after what was asked for. */
  static void route(String method, String route) {
    Span.current().updateName(method + " " + route).setAttribute("http.route", route);
  }

  /** Something that throws. */
  @FunctionalInterface
  interface Step<T, E extends Exception> {
    T run() throws E;
  }

  /** A span around a step, under the span that is current. */
  static <T, E extends Exception> T around(String name, Step<T, E> step) throws E {
    Span span = TRACER.spanBuilder(name).startSpan();
    try (Scope scope = span.makeCurrent()) {
      return step.run();
    } finally {
      span.end();
    }
  }

  /** A span from now until the future is done, under the span that is current; what the step begins is under it. */
  static <T> CompletableFuture<T> until(String name, Supplier<CompletableFuture<T>> step) {
    Span span = TRACER.spanBuilder(name).startSpan();
    try (Scope scope = span.makeCurrent()) {
      return step.get().whenComplete((done, e) -> {
        if (e != null) {
          span.setStatus(StatusCode.ERROR).recordException(e);
        }
        span.end();
      });
    }
  }

  /** A span around a step that goes on with a request in another thread. */
  static void resumed(Context context, String name, Runnable step) {
    try (Scope scope = context.makeCurrent()) {
      around(name, () -> {
        step.run();
        return null;
      });
    }
  }
}
