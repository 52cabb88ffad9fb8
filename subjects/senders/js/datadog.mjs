// Sends spans to `unladen sink` through Datadog's dd-trace, and prints every span that it sent as a line of JSON.
// Arguments: v0.4, an address, and how many traces.
import { exitCode, logger } from "./complaint.mjs";
import { print } from "./rows.mjs";

const SERVICE = "pets-größe-🐾";
const [version, address, count] = process.argv.slice(2);
const traces = Number(count);

process.env.DD_TRACE_AGENT_PROTOCOL_VERSION = version.slice(1);
const { default: tracer } = await import("dd-trace");
// The exporter tells of losses in the log only.
tracer.init({
  url: `http://${address}`,
  service: SERVICE,
  plugins: false,
  startupLogs: false,
  debug: true,
  logLevel: "warn",
  remoteConfig: { enabled: false },
  logger,
});

// Times are milliseconds: a number has no room for the nanoseconds since 1970, so what is sent is as near as there is.
const first = Date.now() - 1000;
const nanoseconds = (ms) => BigInt(Math.round(ms * 1e6));

for (let number = 0; number < traces; number += 1) {
  const at = first + number;
  const spans = [
    ["web.request", "GET /pets/{id}", "web", "server", undefined, at, 0.9, false],
    ["wählt", "wählt 名前 🐾", undefined, "internal", 0, at + 0.125, 0.75, false],
    ["mysql.query", "SELECT pets", "sql", "client", 1, at + 0.25, 0.5, number % 5 === 0],
  ];
  const live = [];
  for (const [name, resource, type, kind, parent, startTime, , error] of spans) {
    const tags = { "resource.name": resource, "span.kind": kind, number: number + 0.5, text: `größe 🐾 ${number}` };
    if (type) tags["span.type"] = type;
    if (error) tags.error = true;
    const childOf = parent === undefined ? undefined : live[parent];
    live.push(tracer.startSpan(name, { childOf, startTime, tags }));
  }
  // A trace is sent once all of its spans have ended.
  for (const [index, [name, resource, , kind, parent, start, duration, error]] of spans.entries()) {
    const context = live[index].context();
    live[index].finish(start + duration);
    const row = {
      trace_id: context.toTraceId(true),
      span_id: context.toSpanId(true),
      parent_id: parent === undefined ? "" : live[parent].context().toSpanId(true),
      service: SERVICE,
      operation: resource,
      kind,
      status: error ? "error" : "unset",
      // Numbers come as fractions, and those that are none would be printed otherwise.
      attributes: { "operation.name": name, number: number + 0.5, text: `größe 🐾 ${number}` },
    };
    print(row, nanoseconds(start), nanoseconds(start + duration - start));
  }
}
// It sends what it has when there is nothing left to do.
process.on("exit", () => {
  process.exitCode = exitCode();
});
