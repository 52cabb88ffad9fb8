#!/usr/bin/env python3
"""Compares the sink with other receivers of spans and writes the table into bench/README.md.

Sender on core 0, receiver on core 1. The figure is the receiver's CPU time (user and system, whole process, from its
CPU clock) per million acknowledged spans: the median of several passes after one to warm up.

  bench/sink/run.py [--passes N] [--spans N] [--loss-spans N] [--only TEXT] [--missing] [--seconds N] [--fetch]

Results are kept, case by case, in target/bench-sink/results.json, so that a run can be done in pieces: `--missing` goes
on with what is not there yet, `--seconds` begins no case after so long. The tables are written once nothing is missing.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import marked  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
README = ROOT / "bench/README.md"
EXAMPLES = ROOT / "target/dist/examples"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "unladen-bench"
COLLECTOR_VERSION = "0.155.0"
# The last version that the Go module proxy has, under the number of its older half.
JAEGER_VERSION = "2.13.0"
JAEGER_MODULE, JAEGER_TAG = "github.com/jaegertracing/jaeger", "v1.76.0"
# The newest whose receiver compiles from what the Go module proxy has.
DATADOG_VERSION = "0.85.4"
ZIPKIN_VERSION = "3.6.1"
ZIPKIN_SHA256 = "d8326e0ed4f43855dba81228f688554706e52578a7c782d9a90b73f8680654a1"
ZIPKIN_HEAP = "6g"
RESULTS = ROOT / "target/bench-sink/results.json"
# A receiver in Go has one core.
ONE_PROC = {**os.environ, "GOMAXPROCS": "1"}
# Whose traces the senders' are: those of a load, as in a study.
REQUESTS = {"tag": 0x756e6c6164656e, "key": 0x73696e6b}
MAVEN = "https://repo.maven.apache.org/maven2"
# Spans a second of the store when it is made slow: about a third of what OTLP over gRPC reaches.
SLOW_STORE = 500_000


def cpu_seconds(pid):
    """CPU time of a whole process, to the nanosecond: its clock (see clock_getcpuclockid in the kernel's sources)."""
    return time.clock_gettime((~pid << 3) | 2)


def peak_rss_mb(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_port(port, process):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError("the receiver does not listen")


def start(command, **options):
    """Starts a receiver on core 1."""
    return subprocess.Popen(["taskset", "-c", "1", *map(str, command)], **options)


class Sink:
    """unladen's sink; `config` is added to its configuration."""

    name = "unladen sink"

    def __init__(self, **config):
        self.config = config

    def start(self, folder, port, protocol):
        config = {"listen": {SINK_KEYS[protocol]: f"127.0.0.1:{port}"}, "out": str(folder), **self.config}
        self.process = start([EXAMPLES / "sink"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process.stdin.write(json.dumps(config).encode() + b"\n")
        self.process.stdin.flush()
        assert json.loads(self.process.stdout.readline())["event"] == "ready"
        # Ticks must be read, or the sink would block on them.
        self.reader = subprocess.Popen(["tail", "-n", "1"], stdin=self.process.stdout, stdout=subprocess.PIPE)
        return self.process

    def stop(self, folder):
        self.process.stdin.close()
        self.process.wait()
        self.summary = json.loads(self.reader.communicate()[0])
        return self.summary["saved"], self.summary["stored_bytes"]


class Peer:
    """A process that listens on the port it is given."""

    def stop(self, folder):
        self.process.terminate()
        self.process.wait()
        spans = folder / "spans"
        return None, spans.stat().st_size if spans.exists() else 0

    def listen(self, port, command, **options):
        log = subprocess.DEVNULL
        self.process = start(command, stdout=log, stderr=log, **options)
        wait_for_port(port, self.process)
        return self.process


class Collector(Peer):
    """The OpenTelemetry Collector with one receiver and one exporter."""

    name = f"OpenTelemetry Collector {COLLECTOR_VERSION}"

    def __init__(self, exporter):
        self.exporter = exporter

    def start(self, folder, port, protocol):
        exporters = {"nop": "nop: {}", "file": f"file: {{path: {folder}/spans, format: proto}}"}
        receiver, config_of_receiver = receiver_config(port, protocol)
        config = folder / "collector.yaml"
        config.write_text(
            f"receivers: {{{config_of_receiver}}}\n"
            f"exporters: {{{exporters[self.exporter]}}}\n"
            "service:\n  telemetry: {metrics: {level: none}, logs: {level: error}}\n"
            f"  pipelines: {{traces: {{receivers: [{receiver}], exporters: [{self.exporter}]}}}}\n")
        return self.listen(port, [collector(), f"--config=file:{config}"], env=ONE_PROC)


class Jaeger(Peer):
    """Jaeger with its storage in memory, large enough for all traces, and without the batch processor."""

    name = f"Jaeger {JAEGER_VERSION}"

    def start(self, folder, port, protocol):
        receiver, config_of_receiver = receiver_config(port, protocol)
        config = folder / "jaeger.yaml"
        config.write_text(
            f"receivers: {{{config_of_receiver}}}\n"
            "extensions: {jaeger_storage: {backends: {memory: {memory: {max_traces: 5000000}}}}}\n"
            "exporters: {jaeger_storage_exporter: {trace_storage: memory}}\n"
            "service:\n  extensions: [jaeger_storage]\n  telemetry: {metrics: {level: none}, logs: {level: error}}\n"
            f"  pipelines: {{traces: {{receivers: [{receiver}], exporters: [jaeger_storage_exporter]}}}}\n")
        return self.listen(port, [jaeger(), f"--config=file:{config}"], env=ONE_PROC)


class Zipkin(Peer):
    """Zipkin's server with its storage in memory, large enough for all spans."""

    name = f"Zipkin {ZIPKIN_VERSION}"

    def start(self, folder, port, protocol):
        env = {**os.environ, "QUERY_PORT": str(port), "STORAGE_TYPE": "mem", "MEM_MAX_SPANS": "50000000"}
        return self.listen(port, ["java", f"-Xmx{ZIPKIN_HEAP}", "-jar", zipkin()], env=env, cwd=folder)


class Datadog(Peer):
    """The trace receiver of Datadog's agent, without what the agent does with traces then."""

    name = f"Datadog's agent {DATADOG_VERSION}"

    def start(self, folder, port, protocol):
        return self.listen(port, [datadog(), port, folder / "received"], env=ONE_PROC)

    def stop(self, folder):
        super().stop(folder)
        return int((folder / "received").read_text()), 0


def receiver_config(port, protocol):
    endpoint = f"{{endpoint: '127.0.0.1:{port}'}}"
    if protocol == "zipkin":
        return "zipkin", f"zipkin: {endpoint}"
    return "otlp", f"otlp: {{protocols: {{{protocol}: {endpoint}}}}}"


def built(name, folder, version):
    """Builds a peer from what is in the folder and in the Go module proxy, once."""
    sources = b"".join((HERE / folder / file).read_bytes() for file in ("main.go", "go.mod", "go.sum"))
    path = CACHE / f"{folder}-{version}-{hashlib.sha256(sources).hexdigest()[:8]}"
    if not path.exists():
        print(f"building {name} (some minutes, once) …", file=sys.stderr)
        subprocess.run(["go", "build", "-trimpath", "-o", path, "."], cwd=HERE / folder, check=True)
    return path


def collector():
    return built("the OpenTelemetry Collector", "collector", COLLECTOR_VERSION)


def datadog():
    return built("the receiver of Datadog's agent", "datadog", DATADOG_VERSION)


def jaeger():
    """Builds Jaeger from the Go module proxy, once. Its module says what it replaces, so it must be the main one: a copy."""
    path = CACHE / f"jaeger-{JAEGER_VERSION}"
    if not path.exists():
        print("building Jaeger (some minutes, once) …", file=sys.stderr)
        module = subprocess.run(["go", "mod", "download", "-json", f"{JAEGER_MODULE}@{JAEGER_TAG}"],
                                check=True, stdout=subprocess.PIPE)
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "jaeger"
            shutil.copytree(json.loads(module.stdout)["Dir"], source, copy_function=shutil.copyfile)
            for made in (source, *source.rglob("*/")):
                made.chmod(0o755)
            partial = path.with_suffix(".partial")
            subprocess.run(["go", "build", "-trimpath", "-buildvcs=false", "-mod=mod", "-o", partial, "./cmd/jaeger"],
                           cwd=source, check=True, env={**os.environ, "GOWORK": "off"})
            partial.rename(path)
    return path


def zipkin():
    """Fetches Zipkin's server from Maven Central, once."""
    path = CACHE / f"zipkin-server-{ZIPKIN_VERSION}-exec.jar"
    if not path.exists():
        print("fetching Zipkin's server (once) …", file=sys.stderr)
        partial = path.with_suffix(".partial")
        urllib.request.urlretrieve(f"{MAVEN}/io/zipkin/zipkin-server/{ZIPKIN_VERSION}/{path.name}", partial)
        digest = hashlib.sha256(partial.read_bytes()).hexdigest()
        assert digest == ZIPKIN_SHA256, f"{path.name} is not what it should be: {digest}"
        partial.rename(path)
    return path


COUNT, PARQUET = "count and account", "Parquet, all attributes, synced before it acknowledges"
MEMORY, NOP, FILE = "keep in memory", "drop (nop exporter)", "file exporter (protobuf), not synced"
DECODE = "decode and drop"
SINK_KEYS = {"grpc": "otlp_grpc", "http": "otlp_http", "zipkin": "zipkin", "skywalking": "skywalking", "elastic": "elastic",
             "sentry": "sentry", "datadog": "datadog", "xray": "xray", "newrelic": "newrelic", "instana": "instana", "pinpoint": "pinpoint"}
WIRES = {"grpc": "OTLP, gRPC", "http": "OTLP, HTTP", "zipkin": "Zipkin v2 JSON", "skywalking": "SkyWalking v3, gRPC",
         "elastic": "Elastic intake v2", "sentry": "Sentry envelopes, spans v2",
         "datadog": "Datadog v0.4", "xray": "X-Ray, UDP", "newrelic": "New Relic, span events", "instana": "Instana",
         "pinpoint": "Pinpoint, gRPC"}
# Nobody acknowledges a datagram, so nothing holds its sender back when the store is slow.
ACKNOWLEDGED = [wire for wire in WIRES if wire != "xray"]
WORKERS = (32, 1)


def counting(**config):
    return Sink(store=False, **config)


def storing(**config):
    return Sink(attributes="all", **config)


OF_LOAD = {"requests": REQUESTS}
ROWS = [
    # receiver, what it does, protocol, spans per request, connections × streams, most that it may cost (the sink's target)
    (counting(**OF_LOAD), COUNT, "grpc", 512, (4, 2), 0.12),
    (counting(), f"{COUNT}; traces of no load", "grpc", 512, (4, 2), None),
    (counting(**OF_LOAD), COUNT, "http", 512, (8, 1), None),
    (counting(**OF_LOAD), COUNT, "grpc", 16, (4, 16), None),
    (storing(**OF_LOAD), PARQUET, "grpc", 512, (4, 16), 0.45),
    (storing(), f"{PARQUET}; traces of no load", "grpc", 512, (4, 16), None),
    (storing(**OF_LOAD), PARQUET, "grpc", 16, (8, 64), 0.5),
    (storing(**OF_LOAD), PARQUET, "http", 512, WORKERS, None),
    (storing(**OF_LOAD), PARQUET, "skywalking", 512, (4, 16), 0.45),
    (storing(**OF_LOAD), PARQUET, "zipkin", 512, WORKERS, 0.9),
    (storing(**OF_LOAD), PARQUET, "elastic", 512, WORKERS, 1.0),
    (storing(**OF_LOAD), PARQUET, "sentry", 512, WORKERS, None),
    (storing(**OF_LOAD), PARQUET, "datadog", 512, WORKERS, 0.6),
    (storing(**OF_LOAD), PARQUET, "newrelic", 512, WORKERS, None),
    (storing(**OF_LOAD), PARQUET, "instana", 512, WORKERS, None),
    (storing(**OF_LOAD), PARQUET, "pinpoint", 512, (4, 16), None),
    (storing(**OF_LOAD), "Parquet, all attributes", "xray", 3, (1, 1), None),
    (storing(sync="interval", **OF_LOAD), "Parquet, all attributes, synced every second", "grpc", 512, (4, 2), None),
    (Collector("nop"), NOP, "grpc", 512, (4, 2), None),
    (Collector("nop"), NOP, "grpc", 16, (4, 16), None),
    (Collector("nop"), NOP, "zipkin", 512, WORKERS, None),
    (Collector("file"), FILE, "grpc", 512, (4, 2), None),
    (Jaeger(), MEMORY, "grpc", 512, (4, 2), None),
    (Jaeger(), MEMORY, "zipkin", 512, WORKERS, None),
    (Zipkin(), MEMORY, "zipkin", 512, WORKERS, None),
    (Datadog(), DECODE, "datadog", 512, WORKERS, None),
]
RATIOS = [
    # what of the sink, against what, protocol, the most it should be
    (PARQUET, Collector.name, FILE, "grpc", 0.25),
    (COUNT, Collector.name, NOP, "grpc", 0.35),
    (PARQUET, Jaeger.name, MEMORY, "grpc", 0.1),
    (PARQUET, Collector.name, NOP, "zipkin", None),
    (PARQUET, Jaeger.name, MEMORY, "zipkin", None),
    (PARQUET, Zipkin.name, MEMORY, "zipkin", None),
    (PARQUET, Datadog.name, DECODE, "datadog", None),
]


def replay(port, protocol, spans, per_request, connections, seed):
    out = subprocess.run(
        ["taskset", "-c", "0", EXAMPLES / "replay", "--address", f"127.0.0.1:{port}", "--protocol", protocol,
         "--spans", str(spans), "--per-request", str(per_request), "--connections", str(connections[0]),
         "--streams", str(connections[1]), "--seed", str(seed), "--tag", str(REQUESTS["tag"]),
         # A trace has three spans, so no pass comes near the requests of the next.
         "--key", str(REQUESTS["key"]), "--first", str(seed * spans)],
        check=True, capture_output=True)
    return json.loads(out.stdout)


def measure(receiver, per_request, connections, protocol, spans, passes):
    """One process for all passes, as in real life; the first pass is not counted."""
    folder = Path(tempfile.mkdtemp(prefix="unladen-bench-", dir=CACHE))
    port = free_port()
    process = receiver.start(folder, port, protocol)
    try:
        costs, rates, acknowledged = [], [], 0
        for number in range(passes + 1):
            before = cpu_seconds(process.pid)
            outcome = replay(port, protocol, spans, per_request, connections, number + 1)
            cost = cpu_seconds(process.pid) - before
            acknowledged += outcome["acknowledged"]
            assert outcome["refused"] == 0, outcome
            if number > 0:
                costs.append(cost / outcome["acknowledged"] * 1e6)
                rates.append(outcome["acknowledged"] / outcome["seconds"])
        rss = peak_rss_mb(process.pid)
        saved, stored = receiver.stop(folder)
        assert saved in (None, acknowledged), (saved, acknowledged)
        return {"wire": outcome["bytes"] / outcome["acknowledged"], "cpu": statistics.median(costs), "least": min(costs),
                "rate": max(rates), "rss": rss, "bytes": stored / acknowledged if stored else None,
                "acknowledged": acknowledged}
    finally:
        if process.poll() is None:
            process.kill()
        shutil.rmtree(folder, ignore_errors=True)


def lose_nothing(protocol, spans, rate):
    """Sends to a sink that writes at most so many spans a second; what was acknowledged, accounted for and is in files."""
    folder = Path(tempfile.mkdtemp(prefix="unladen-bench-", dir=CACHE))
    port = free_port()
    # Knowing the load, the sink reads its files back at the end.
    sink = storing(write_rate=rate, **OF_LOAD)
    process = sink.start(folder, port, protocol)
    try:
        streams = 16 if protocol in ("grpc", "skywalking") else 1
        outcome = replay(port, protocol, spans, 512, (4 if streams > 1 else WORKERS[0], streams), 99)
        rss = peak_rss_mb(process.pid)
        saved, _ = sink.stop(folder)
        rows = sink.summary["shape"]["rows"]
        assert outcome["refused"] == 0 and outcome["acknowledged"] == saved == rows, (outcome, saved, rows)
        return {"spans": saved, "rate": saved / outcome["seconds"], "retries": outcome["retries"], "rss": rss}
    finally:
        if process.poll() is None:
            process.kill()
        shutil.rmtree(folder, ignore_errors=True)


def table(results):
    lines = ["| receiver | what it does | wire | spans a request | CPU-s per million spans | target | spans/s on one core | "
             "peak RSS, MB | bytes/span |",
             "|---|---|---|--:|--:|--:|--:|--:|--:|"]
    for (receiver, does, protocol, per_request, _, target), result in results:
        size = f"{result['bytes']:.1f}" if result["bytes"] else "–"
        lines.append(f"| {receiver.name} | {does} | {WIRES[protocol]} | {per_request} | {result['cpu']:.3f} | {target or '–'} | "
                     f"{result['rate'] / 1e3:,.0f} k | {result['rss']:,.0f} | {size} |")
    return "\n".join(lines)


def ratios(results):
    def cost(name, does, protocol):
        found = [result["cpu"] for (receiver, what, wire, per_request, *_), result in results
                 if (receiver.name, what, wire, per_request) == (name, does, protocol, 512)]
        return found[0] if found else None

    lines = ["| unladen sink | beside | wire | ratio of CPU | target |", "|---|---|---|--:|--:|"]
    for does, name, other, protocol, target in RATIOS:
        ours, theirs = cost(Sink.name, does, protocol), cost(name, other, protocol)
        if ours and theirs:
            lines.append(f"| {does} | {name}, {other} | {WIRES[protocol]} | {ours / theirs:.3f} | {target or '–'} |")
    return "\n".join(lines)


def losses(results):
    lines = ["| wire | sent = acknowledged = in the books = rows in Parquet | spans/s | told to come again | peak RSS, MB |",
             "|---|--:|--:|--:|--:|"]
    for protocol, result in results:
        lines.append(f"| {WIRES[protocol]} | {result['spans']:,} | {result['rate'] / 1e3:,.0f} k | {result['retries']} | "
                     f"{result['rss']:.0f} |")
    return "\n".join(lines)


def name_of(row):
    receiver, does, protocol, per_request, *_ = row
    return f"{receiver.name}, {does}, {protocol}, {per_request}"


def loss_name(protocol):
    return f"nothing lost, {protocol}"


class Results:
    """What was measured so far, by case, each with its settings and its time."""

    def __init__(self, options):
        self.known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        self.settings = {"passes": options.passes, "spans": options.spans, "loss_spans": options.loss_spans}

    def get(self, case):
        known = self.known.get(case)
        return known["result"] if known and known["settings"] == self.settings else None

    def keep(self, case, result):
        at = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
        self.known[case] = {"settings": self.settings, "at": at, "result": result}
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        partial = RESULTS.with_suffix(".partial")
        partial.write_text(json.dumps(self.known, indent=1))
        partial.rename(RESULTS)
        print(f"{case}: {result}", file=sys.stderr, flush=True)

    def between(self, cases):
        times = sorted(self.known[case]["at"] for case in cases)
        return f"{times[0]} and {times[-1]} UTC"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--spans", type=int, default=300_000, help="per pass")
    parser.add_argument("--loss-spans", type=int, default=5_000_000, help="sent to a slow store")
    parser.add_argument("--only", help="only cases whose name contains this")
    parser.add_argument("--missing", action="store_true", help="only cases of which there is no result")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no case after so long")
    parser.add_argument("--fetch", action="store_true", help="build and fetch the peers, and measure nothing")
    options = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    for peer in (collector, jaeger, zipkin, datadog):
        peer()
    if options.fetch:
        return
    results = Results(options)
    begun = time.monotonic()
    cases = {name_of(row): lambda row=row: cost(row, options) for row in ROWS}
    cases |= {loss_name(wire): lambda wire=wire: lose_nothing(wire, options.loss_spans, SLOW_STORE) for wire in ACKNOWLEDGED}
    for case, run in cases.items():
        is_wanted = (options.only or "") in case and not (options.missing and results.get(case))
        if is_wanted and time.monotonic() - begun < options.seconds:
            results.keep(case, run())
    missing = [case for case in cases if not results.get(case)]
    if missing:
        print("not in bench/README.md yet, for want of: " + "; ".join(missing), file=sys.stderr)
        return
    marked.write(README, "sink", cost_text(results, options))
    marked.write(README, "sink-loss", loss_text(results))


def cost(row, options):
    receiver, _, protocol, per_request, connections, _ = row
    return measure(receiver, per_request, connections, protocol, options.spans, options.passes)


def cost_text(all_results, options):
    results = [(row, all_results.get(name_of(row))) for row in ROWS]
    wire = {WIRES[row[2]]: result["wire"] for row, result in results if row[3] == 512}
    sizes = ", ".join(f"{size:.0f} bytes a span ({name})" for name, size in wire.items())
    return (f"Spans of 8.7 attributes, on the wire {sizes}; every id random, 131,072 different sets of values; three spans a "
            f"trace, and the traces are a load's as in a study, unless the row says otherwise. Sender on core 0, receiver on "
            f"core 1; median of {options.passes} passes of {options.spans:,} spans after one to warm up, on one process. Every "
            f"acknowledged span of the sink was counted and, where stored, is in Parquet. The sink's memory includes what "
            f"tells duplicates in all passes, 9 to 14 bytes a span; that of Jaeger and Zipkin the spans themselves. Elastic's "
            f"and SkyWalking's own servers are not among the peers: the one cannot be built without its vendor's packages, "
            f"the other needs its database. {marked.machine()}; between {all_results.between(map(name_of, ROWS))}.\n\n"
            f"{table(results)}\n\nIn the same run:\n\n{ratios(results)}")


def loss_text(all_results):
    results = [(protocol, all_results.get(loss_name(protocol))) for protocol in ACKNOWLEDGED]
    return (f"Nothing lost: a store that takes at most {SLOW_STORE:,} spans a second, and senders that send as fast as they are "
            f"let.\n\n{losses(results)}")


if __name__ == "__main__":
    main()
