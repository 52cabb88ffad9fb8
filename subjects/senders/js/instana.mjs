// Sends spans to `unladen sink` through Instana's collector for Node.js, and prints every span that it made as a line of JSON.
// Arguments: instana, an address, and how many traces. Every trace begins with the ids of its caller.
import { randomBytes } from "node:crypto";
import { createRequire } from "node:module";
import { setTimeout } from "node:timers/promises";
import { complain, exitCode, logger } from "./complaint.mjs";
import { print } from "./rows.mjs";

const SERVICE = "pets-größe-🐾";
const PATIENCE_MS = 60_000;
const [, address, count] = process.argv.slice(2);
const [host, port] = address.split(":");
const SPANS = 3 * Number(count);

Object.assign(process.env, { INSTANA_AGENT_HOST: host, INSTANA_AGENT_PORT: port, INSTANA_SERVICE_NAME: SERVICE });
const require = createRequire(import.meta.url);

// The answers to its lists of spans.
const connection = require("@instana/collector/src/agentConnection");
const { sendSpans } = connection;
let taken = 0;
connection.sendSpans = (spans, done) =>
  sendSpans(spans, (error) => {
    if (error) complain(error);
    else taken += spans.length;
    done(error);
  });

// It tells of what goes wrong in the log only.
const instana = require("@instana/collector")({ logger, tracing: { maxBufferedSpans: SPANS } });
const until = async (holds, otherwise) => {
  const end = Date.now() + PATIENCE_MS;
  while (!holds()) {
    if (Date.now() > end) throw new Error(otherwise());
    await setTimeout(50);
  }
};
await until(instana.isConnected, () => "the collector has not found its agent");

const kinds = { 1: "server", 2: "client", 3: "internal" };
const printSpan = (span, attributes) => {
  const row = {
    // All that most of its spans know of the trace's id.
    trace_id: span.t.slice(-16).padStart(32, "0"),
    span_id: span.s,
    parent_id: span.p,
    service: SERVICE,
    instance: String(process.pid),
    operation: span.data.sdk.name,
    kind: kinds[span.k],
    status: span.ec ? "error" : "unset",
    attributes,
  };
  // Milliseconds.
  const [start, duration] = [span.ts, span.d].map((ms) => BigInt(ms) * 1000000n);
  print(row, start, duration);
};

const { callback: sdk } = instana.sdk;
for (let number = 0; number < Number(count); number += 1) {
  const [trace, caller] = [16, 8].map((bytes) => randomBytes(bytes).toString("hex"));
  // The collector sends a list once only, however many spans have it.
  const attributes = () => ({ number, text: `größe 🐾 ${number}`, fraction: 0.5, list: ["a", "ä"] });
  sdk.startEntrySpan("GET /pets/{id}", attributes(), trace, caller, (request) => {
    sdk.startIntermediateSpan("wählt 名前 🐾", attributes(), (choose) => {
      sdk.startExitSpan("SELECT pets", attributes(), (query) => {
        sdk.completeExitSpan(number % 5 === 0 ? new Error("no such pet") : null);
        printSpan(query, attributes());
      });
      sdk.completeIntermediateSpan();
      printSpan(choose, attributes());
    });
    sdk.completeEntrySpan();
    printSpan(request, attributes());
  });
}
await until(() => taken >= SPANS, () => `${taken} of ${SPANS} spans were taken`);
process.exit(exitCode());
