package unladen;

import brave.Span;
import brave.Tracing;
import brave.propagation.TraceContext;
import brave.sampler.Sampler;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import zipkin2.reporter.Encoding;
import zipkin2.reporter.InMemoryReporterMetrics;
import zipkin2.reporter.brave.AsyncZipkinSpanHandler;
import zipkin2.reporter.urlconnection.URLConnectionSender;

/**
 * Sends spans to {@code unladen sink} through Brave, and prints every span that it sent as a line of JSON. Arguments:
 * zipkin-json or zipkin-protobuf, an address, and how many traces.
 */
public final class Brave {
  private static final String SERVICE = "pets-größe-🐾";
  private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

  private Brave() {}

  public static void main(String[] arguments) {
    Encoding encoding = arguments[0].equals("zipkin-json") ? Encoding.JSON : Encoding.PROTO3;
    int traces = Integer.parseInt(arguments[2]);
    InMemoryReporterMetrics metrics = new InMemoryReporterMetrics();
    URLConnectionSender sender = URLConnectionSender.newBuilder()
        .endpoint("http://" + arguments[1] + "/api/v2/spans").encoding(encoding).build();
    // As large as all that is sent: what is tested here is the receiver, not a queue that is too small.
    AsyncZipkinSpanHandler handler = AsyncZipkinSpanHandler.newBuilder(sender).metrics(metrics)
        .queuedMaxSpans(3 * traces).queuedMaxBytes(1 << 30).build();
    try (sender; handler; Tracing tracing = Tracing.newBuilder().localServiceName(SERVICE).traceId128Bit(true)
        .sampler(Sampler.ALWAYS_SAMPLE).addSpanHandler(handler).build()) {
      long first = System.currentTimeMillis() * 1_000 - 1_000_000;
      for (int number = 0; number < traces; number++) {
        send(tracing, first + 1_000L * number, number);
      }
      handler.flush();
    }
    if (metrics.spansDropped() > 0) {
      System.err.println("the reporter lost " + metrics.spansDropped() + " spans");
      System.exit(1);
    }
  }

  /** One trace: a request, a step within the service, and a query, which fails every fifth time. */
  private static void send(Tracing tracing, long start, int number) {
    Span server = tracing.tracer().newTrace();
    finish(server, "GET /pets/{id}", Span.Kind.SERVER, start, 900 + number, number, false);
    Span internal = tracing.tracer().newChild(server.context());
    finish(internal, "wählt 名前 🐾", null, start + 100, 700, number, false);
    Span client = tracing.tracer().newChild(internal.context());
    finish(client, "SELECT pets", Span.Kind.CLIENT, start + 200, 500, number, number % 5 == 0);
  }

  /** Times in microseconds. */
  private static void finish(Span span, String operation, Span.Kind kind, long start, long duration, int number,
      boolean isError) {
    String text = "größe 🐾 " + number;
    span.name(operation).start(start).tag("number", Integer.toString(number)).tag("text", text);
    if (kind != null) {
      span.kind(kind);
    }
    if (isError) {
      span.tag("error", "no such pet");
    }
    span.finish(start + duration);
    TraceContext context = span.context();
    OUT.printf("{\"trace_id\":\"%s\",\"span_id\":\"%s\",\"parent_id\":\"%s\",\"service\":\"%s\",\"operation\":\"%s\","
        + "\"kind\":\"%s\",\"status\":\"%s\",\"start_ns\":%d,\"duration_ns\":%d,"
        + "\"attributes\":{\"number\":\"%d\",\"text\":\"%s\"}}%n",
        context.traceIdString(), context.spanIdString(), context.parentId() == null ? "" : context.parentIdString(),
        SERVICE, operation, kind == null ? "unspecified" : kind.name().toLowerCase(), isError ? "error" : "unset",
        start * 1_000, duration * 1_000, number, text);
  }
}
