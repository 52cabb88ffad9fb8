// Sends spans to `unladen sink` through Sentry's SDK for Node, and prints every span that it sent as a line of JSON.
// Arguments: transaction or stream, an address, and how many traces. Every trace begins with a header of its caller.

import { randomBytes } from "node:crypto";
import * as Sentry from "@sentry/node";
import { print } from "./rows.mjs";

const SERVICE = "pets";
const [way, address, count] = process.argv.slice(2);
const traces = Number(count);

Sentry.init({
  dsn: `http://${SERVICE}@${address}/1`,
  // With a header its flag decides; without a rate there is no tracing at all.
  tracesSampleRate: 0.5,
  traceLifecycle: way === "transaction" ? "static" : "stream",
  serverName: "one",
  // As large as all that is sent: what is tested here is the receiver, not a queue that is too small.
  transportOptions: { bufferSize: 2 * traces },
});

const OK = 1;
const ERROR = 2;
// Times are pairs of seconds and nanoseconds.
const second = Math.floor(Date.now() / 1000) - 1;
const nanoseconds = ([seconds, rest]) => BigInt(seconds) * 1_000_000_000n + BigInt(rest);

for (let number = 0; number < traces; number += 1) {
  // Sentry's numbers have room for microseconds.
  const at = (after) => [second, (number * 1_000 + after) * 1_000];
  const spans = [
    ["GET /pets/{id}", "http.server", "server", undefined, at(1), 900_000 + number * 1_000, false],
    ["wählt 名前 🐾", "function", "internal", 0, at(102), 700_000, false],
    ["SELECT pets", "db", "client", 1, at(203), 500_000, number % 5 === 0],
  ];
  const attributes = { number, text: `größe 🐾 ${number}`, fraction: 0.5, list: ["a", "ä"] };
  const [trace, caller] = [randomBytes(16).toString("hex"), randomBytes(8).toString("hex")];
  const live = [];
  Sentry.continueTrace({ sentryTrace: `${trace}-${caller}-1`, baggage: undefined }, () => {
    for (const [name, op, , parent, startTime, , failed] of spans) {
      const span = Sentry.startInactiveSpan({ name, op, startTime, attributes, parentSpan: live[parent] });
      span.setStatus({ code: failed ? ERROR : OK });
      live.push(span);
    }
  });
  // The root last: it takes those along that have ended.
  for (const place of [2, 1, 0]) {
    const [, , , , start, duration] = spans[place];
    live[place].end([start[0], start[1] + duration]);
  }
  for (const [place, [operation, op, kind, parent, start, duration, failed]] of spans.entries()) {
    const row = {
      trace_id: trace,
      span_id: live[place].spanContext().spanId,
      parent_id: parent === undefined ? caller : live[parent].spanContext().spanId,
      service: SERVICE,
      // Streamed spans do not name it.
      instance: way === "transaction" ? "one" : "",
      operation,
      kind,
      status: failed ? "error" : "ok",
      attributes: { ...attributes, "sentry.op": op },
    };
    print(row, nanoseconds(start), duration);
  }
}
process.exitCode = (await Sentry.close(60_000)) ? 0 : 1;
