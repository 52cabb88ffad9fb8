// Sends spans to `unladen sink` through OpenTelemetry's SDK for JavaScript, and prints every span that it sent as a line
// of JSON. Arguments: otlp-grpc, otlp-http, otlp-json or azure, an address, and how many traces.

import { AzureMonitorTraceExporter } from "@azure/monitor-opentelemetry-exporter";
import { DiagLogLevel, ROOT_CONTEXT, SpanKind, SpanStatusCode, diag, trace } from "@opentelemetry/api";
import { OTLPTraceExporter as GrpcExporter } from "@opentelemetry/exporter-trace-otlp-grpc";
import { OTLPTraceExporter as JsonExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { OTLPTraceExporter as ProtobufExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { exitCode, logger } from "./complaint.mjs";
import { print } from "./rows.mjs";

const SERVICE = "pets-größe-🐾";
const [sender, address, count] = process.argv.slice(2);
const traces = Number(count);

const exporters = {
  "otlp-grpc": () => new GrpcExporter({ url: `http://${address}` }),
  "otlp-http": () => new ProtobufExporter({ url: `http://${address}/v1/traces`, compression: "gzip" }),
  "otlp-json": () => new JsonExporter({ url: `http://${address}/v1/traces` }),
  azure: () =>
    new AzureMonitorTraceExporter({
      connectionString: `InstrumentationKey=00000000-0000-0000-0000-000000000001;IngestionEndpoint=http://${address}/`,
    }),
};

// Else Azure's exporter tells its maker how it is used.
process.env.APPLICATION_INSIGHTS_NO_STATSBEAT = "true";

// The exporters tell of losses in the log only.
diag.setLogger(logger, DiagLogLevel.WARN);

// As large as all that is sent: what is tested here is the receiver, not a queue that is too small.
const processor = new BatchSpanProcessor(exporters[sender](), { maxQueueSize: 3 * traces });
const provider = new NodeTracerProvider({
  resource: resourceFromAttributes({ "service.name": SERVICE, "service.instance.id": "one" }),
  spanProcessors: [processor],
});
const tracer = provider.getTracer("unladen");

const { UNSET, OK, ERROR } = SpanStatusCode;
const kinds = { [SpanKind.SERVER]: "server", [SpanKind.INTERNAL]: "internal", [SpanKind.CLIENT]: "client" };
const statuses = { [UNSET]: "unset", [OK]: "ok", [ERROR]: "error" };

// Times are pairs of seconds and nanoseconds: a number has no room for the nanoseconds since 1970.
const second = Math.floor(Date.now() / 1000) - 1;
const nanoseconds = ([seconds, rest]) => BigInt(seconds) * 1_000_000_000n + BigInt(rest);

// What Application Insights has room for: texts, and whether a span succeeded. Of a start the exporter cuts off what is less than a
// millisecond, now and then one too many: it is left out.
const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));
const printOfAzure = (row, duration) => {
  const attributes = Object.fromEntries(Object.entries(row.attributes).map(([key, value]) => [key, text(value)]));
  const status = row.status === "error" ? "error" : "ok";
  console.log(JSON.stringify({ ...row, status, attributes, duration_ns: duration }));
};
// Of a duration it knows 100 ns.
const unit = sender === "azure" ? 100 : 1;

for (let number = 0; number < traces; number += 1) {
  const at = (after) => [second, number * 1_000_000 + after];
  const spans = [
    ["GET /pets/{id}", SpanKind.SERVER, undefined, at(1), unit * (900_000 + number), OK],
    ["wählt 名前 🐾", SpanKind.INTERNAL, 0, at(100_002), unit * 700_000, UNSET],
    ["SELECT pets", SpanKind.CLIENT, 1, at(200_003), unit * 500_000, number % 5 === 0 ? ERROR : UNSET],
  ];
  const attributes = { number, text: `größe 🐾 ${number}`, fraction: 0.5, list: ["a", "ä"] };
  const live = [];
  for (const [operation, kind, parent, start, duration, status] of spans) {
    const context = parent === undefined ? ROOT_CONTEXT : trace.setSpan(ROOT_CONTEXT, live[parent]);
    const span = tracer.startSpan(operation, { kind, startTime: start, attributes }, context);
    if (status !== UNSET) span.setStatus({ code: status });
    span.end([start[0], start[1] + duration]);
    live.push(span);
    const row = {
      trace_id: span.spanContext().traceId,
      span_id: span.spanContext().spanId,
      parent_id: parent === undefined ? "" : live[parent].spanContext().spanId,
      service: SERVICE,
      instance: "one",
      operation,
      kind: kinds[kind],
      status: statuses[status],
      attributes,
    };
    if (sender === "azure") printOfAzure(row, duration);
    else print(row, nanoseconds(start), duration);
  }
}
await provider.shutdown();
process.exitCode = exitCode();
