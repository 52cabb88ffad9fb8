// Sends spans to `unladen sink` through Pinpoint's agent for Node.js, and prints every span that it made as a line of JSON.
// Arguments: pinpoint, an address, and how many traces. Every trace begins with the headers of its caller.
import { randomBytes } from "node:crypto";
import { createRequire } from "node:module";
import { setTimeout } from "node:timers/promises";
import { complain, exitCode } from "./complaint.mjs";
import { print } from "./rows.mjs";

const SERVICE = "pets";
const [, address, count] = process.argv.slice(2);
const [host, port] = address.split(":");

Object.assign(process.env, {
  PINPOINT_AGENT_ID: "one",
  PINPOINT_APPLICATION_NAME: SERVICE,
  PINPOINT_COLLECTOR_IP: host,
  PINPOINT_COLLECTOR_TCP_PORT: port,
  PINPOINT_COLLECTOR_STAT_PORT: port,
  PINPOINT_COLLECTOR_SPAN_PORT: port,
  PINPOINT_LOG_LEVEL: "SILENT",
});
const require = createRequire(import.meta.url);
const agent = require("pinpoint-node-agent");
const part = (name) => require(`pinpoint-node-agent/lib/${name}`);
const headers = part("instrumentation/request-header-utils");
const methods = part("context/api-meta-service");
const Method = part("context/method-descriptor");
const Key = part("context/annotation-key");

// It tells of what goes wrong in the log only.
part("utils/logger").error = complain;

const sender = agent.dataSender.dataSender;
const answered = (call) =>
  new Promise((resolve, reject) => {
    call((error, answer) => (error || !answer.getSuccess() ? reject(error ?? new Error("no success")) : resolve()));
  });
// A span may otherwise be there before the name of its method.
const named = async (name) => {
  const method = methods.cacheApi(new Method(null, null, name));
  await answered((done) => sender.sendApiMetaInfo({ apiId: method.apiId, apiInfo: name, type: 0 }, done));
  return method;
};
await answered((done) => sender.sendAgentInfo(agent.agentInfo, done));
const [request, choose, query] = await Promise.all(["GET /pets/{id}", "wählt 名前 🐾", "SELECT pets"].map(named));

const hex = (number) => BigInt.asUintN(64, number).toString(16).padStart(16, "0");

for (let number = 0; number < Number(count); number += 1) {
  const [high, low] = [randomBytes(8), randomBytes(8)].map((bytes) => bytes.readBigInt64BE());
  const data = headers.read({
    url: `/pets/${number}`,
    connection: { remoteAddress: "127.0.0.1" },
    headers: {
      host: "pets:80",
      "pinpoint-traceid": `unladen^${high}^${low}`,
      "pinpoint-spanid": "2",
      "pinpoint-pspanid": "1",
      "pinpoint-flags": "0",
      "pinpoint-pappname": "unladen",
      "pinpoint-papptype": "1000",
    },
  });
  const trace = agent.createTraceObject(data);
  const describe = (recorder) => {
    recorder.recordAttribute(new Key(7700, "number"), number + 1);
    recorder.recordAttribute(new Key(7701, "text"), `größe 🐾 ${number}`);
  };
  trace.spanRecorder.recordApi(request);
  trace.spanRecorder.recordRpc(data.rpcName);
  describe(trace.spanRecorder);
  const outer = trace.traceBlockBegin();
  outer.recordServiceType(6600);
  outer.recordApi(choose);
  describe(outer);
  const inner = trace.traceBlockBegin();
  inner.recordServiceType(2650);
  inner.recordApi(query);
  describe(inner);
  const failed = number % 5 === 0;
  if (failed) inner.recordException(new Error("no such pet"), true);
  trace.traceBlockEnd(inner);
  trace.traceBlockEnd(outer);
  agent.completeTraceObject(trace);

  const attributes = { "pinpoint.annotation.7700": number + 1, "pinpoint.annotation.7701": `größe 🐾 ${number}` };
  for (const [span, method, parent, kind] of [
    [trace.span, request, "", "server"],
    [outer.spanEvent, choose, request.apiDescriptor, "internal"],
    [inner.spanEvent, query, choose.apiDescriptor, "client"],
  ]) {
    const row = {
      trace_id: hex(high) + hex(low),
      parent_operation: parent,
      service: SERVICE,
      instance: "one",
      operation: method.apiDescriptor,
      kind,
      // The agent hands an error on to the request.
      status: failed && span !== outer.spanEvent ? "error" : "unset",
      attributes,
    };
    // Milliseconds.
    const [start, duration] = [span.startTime, span.elapsedTime].map((ms) => BigInt(ms) * 1000000n);
    print(row, start, duration);
  }
  // It throws away what it makes while its stream is full.
  while (sender.spanStream.grpcStream.writableHighWaterMarked) await setTimeout(1);
}

// The answer to the stream says that every span is taken.
await new Promise((resolve) => {
  sender.spanStream.callback = resolve;
  sender.spanStream.grpcStream.end();
});
process.exit(exitCode());
