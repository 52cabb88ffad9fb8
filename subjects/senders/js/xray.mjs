// Sends spans to `unladen sink` through AWS X-Ray's SDK for JavaScript, and prints every span that it sent as a line of JSON.
// Arguments: whole or streamed (subsegments that have ended one by one), an address, and how many traces. Every trace begins with the ids of
// its caller.
import { randomBytes } from "node:crypto";
import { setImmediate, setTimeout } from "node:timers/promises";
import { exitCode, logger } from "./complaint.mjs";
import { print } from "./rows.mjs";

const SERVICE = "pets-größe-🐾";
// A subsegment that is sent on its own does not say whose it is.
const NOBODY = "unknown_service";
const [way, address, count] = process.argv.slice(2);
const streamed = way === "streamed";

process.env.AWS_XRAY_DAEMON_ADDRESS = address;
const { default: xray } = await import("aws-xray-sdk-core");
const { default: emitter } = await import("aws-xray-sdk-core/dist/lib/segment_emitter.js");
const { default: connector } = await import("aws-xray-sdk-core/dist/lib/middleware/sampling/service_connector.js");

// It tells of losses in the log only.
xray.setLogger(logger);
xray.enableManualMode();
xray.setStreamingThreshold(streamed ? 0 : 100);

// Asks how to sample, as the SDK does every five minutes: it must understand the answers.
const ask = (what, ...rest) =>
  new Promise((resolve, reject) => {
    connector[what](...rest, (error, ...answer) => (error ? reject(error) : resolve(answer)));
  });
const [[rule]] = await ask("fetchSamplingRules");
const [targets] = await ask("fetchTargets", [rule]);
if (rule.getName() !== "Default" || Object.keys(targets).length > 0) throw new Error("these are no rules of a new account");

// Seconds; a number has no room for more than microseconds.
const first = Date.now() / 1000 - 1;
const nanoseconds = (seconds) => BigInt(Math.round(seconds * 1e6)) * 1000n;

for (let number = 0; number < Number(count); number += 1) {
  const start = first + number / 1000;
  const trace = randomBytes(16).toString("hex");
  const caller = randomBytes(8).toString("hex");
  const segment = new xray.Segment(SERVICE, `1-${trace.slice(0, 8)}-${trace.slice(8)}`, caller);
  const outer = segment.addNewSubsegment("wählt 名前 🐾");
  const inner = outer.addNewSubsegment("SELECT pets");
  inner.addAttribute("namespace", "remote");
  const failed = number % 5 === 0;
  if (failed) inner.addErrorFlag();
  const spans = [
    [segment, caller, "server", start + 0.000001, 0.0009, SERVICE],
    [outer, segment.id, "internal", start + 0.000102, 0.0007, SERVICE],
    [inner, outer.id, "client", start + 0.000203, 0.0005, streamed ? NOBODY : SERVICE],
  ];
  const attributes = { number, fraction: 0.5, text: `größe 🐾 ${number}` };
  for (const [span, , , begun] of spans) {
    span.start_time = begun;
    for (const [key, value] of Object.entries(attributes)) span.addAnnotation(key, value);
  }
  // One that is sent as it ends has ended when the SDK says so.
  inner.close();
  if (!streamed) inner.end_time = spans[2][3] + spans[2][4];
  outer.close();
  outer.end_time = spans[1][3] + spans[1][4];
  segment.end_time = spans[0][3] + spans[0][4];
  segment.close();
  for (const [span, parent, kind, , , service] of spans) {
    const row = {
      trace_id: trace,
      span_id: span.id,
      parent_id: parent,
      service,
      operation: span.name,
      kind,
      status: span === inner && failed ? "error" : "unset",
      attributes,
    };
    const [from, to] = [span.start_time, span.end_time].map(nanoseconds);
    print(row, from, to - from);
  }
  await setImmediate();
}
// The SDK does not wait for its datagrams when the program ends.
await setTimeout(500);
process.exitCode = exitCode();
