// Sends spans to `unladen sink` through New Relic's agent for Node.js, and prints every span that it made as a line of JSON.
// Arguments: harvests or infinite (a stream of all spans), an address, and how many traces. Every trace begins with a header of its caller.
// The certificate of the sink's authority is the file in NODE_EXTRA_CA_CERTS.
import { randomBytes } from "node:crypto";
import { createRequire } from "node:module";
import { setImmediate, setTimeout } from "node:timers/promises";

const SERVICE = "pets";
const [way, address, count] = process.argv.slice(2);
const [host, port] = address.split(":");

const detect = ["AWS", "AZURE", "GCP", "PCF", "DOCKER", "KUBERNETES"];
Object.assign(process.env, {
  NEW_RELIC_NO_CONFIG_FILE: "true",
  NEW_RELIC_HOST: host,
  NEW_RELIC_PORT: port,
  NEW_RELIC_LICENSE_KEY: "unladenunladenunladenunladenunladenunlad",
  NEW_RELIC_APP_NAME: SERVICE,
  NEW_RELIC_LOG_ENABLED: "false",
  NEW_RELIC_DISTRIBUTED_TRACING_SAMPLER_REMOTE_PARENT_SAMPLED: "always_on",
  NEW_RELIC_SPAN_EVENTS_MAX_SAMPLES_STORED: "10000",
  ...Object.fromEntries(detect.map((name) => [`NEW_RELIC_UTILIZATION_DETECT_${name}`, "false"])),
});
if (way === "infinite") {
  Object.assign(process.env, {
    NEW_RELIC_INFINITE_TRACING_TRACE_OBSERVER_HOST: host,
    NEW_RELIC_INFINITE_TRACING_TRACE_OBSERVER_PORT: port,
    NEW_RELIC_INFINITE_TRACING_TRACE_OBSERVER_INSECURE: "true",
    // Else it keeps the last batch that is not full, also when it is shut down.
    NEW_RELIC_INFINITE_TRACING_BATCHING: "false",
  });
}
const require = createRequire(import.meta.url);
const newrelic = require("newrelic");
const { agent } = newrelic;
if (agent.collector.isConnected() !== true) await new Promise((resolve) => agent.once("started", resolve));

for (let number = 0; number < Number(count); number += 1) {
  const [trace, caller] = [16, 8].map((bytes) => randomBytes(bytes).toString("hex"));
  const failed = number % 5 === 0;
  const attributes = { number, fraction: 0.5, text: `größe 🐾 ${number}` };
  const describe = () => newrelic.addCustomSpanAttributes(attributes);
  const ids = [];
  const note = () => ids.push(agent.tracer.getSegment().id);
  await newrelic.startWebTransaction("pets", async () => {
    const transaction = newrelic.getTransaction();
    transaction.acceptDistributedTraceHeaders("HTTP", { traceparent: `00-${trace}-${caller}-01` });
    describe();
    note();
    await newrelic.startSegment("wählt 名前 🐾", true, async () => {
      describe();
      note();
      if (failed) newrelic.noticeError(new Error("no such pet"));
    });
    transaction.end();
  });
  const rows = [
    ["WebTransaction/Custom//pets", caller, "server", "unset"],
    ["wählt 名前 🐾", ids[0], "internal", failed ? "error" : "unset"],
  ];
  rows.forEach(([operation, parent, kind, status], index) => {
    console.log(
      JSON.stringify({
        trace_id: trace,
        span_id: ids[index],
        parent_id: parent,
        service: SERVICE,
        operation,
        kind,
        status,
        attributes,
      }),
    );
  });
  // Lets the agent send.
  await setImmediate();
}
// It has no flush of its stream.
const { stream } = agent.spanEventAggregator;
while (stream && (stream.spans.length > 0 || stream.stream.writableLength > 0)) await setTimeout(10);
if (stream) await setTimeout(1000);
await new Promise((resolve) => newrelic.shutdown({ collectPendingData: true, timeout: 30000 }, resolve));
process.exit(0);
