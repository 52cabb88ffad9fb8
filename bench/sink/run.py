#!/usr/bin/env python3
"""Compares the sink with other receivers of spans and writes the table into bench/README.md.

Sender on core 0, receiver on core 1. The figure is the receiver's CPU time (user and system, whole process, from its
CPU clock) per million acknowledged spans: the median of several passes after one to warm up.

  bench/sink/run.py [--passes N] [--spans N] [--loss-spans N] [--part cost|loss] [--only ROWS] [--no-write]
"""

import argparse
import hashlib
import json
import os
import platform
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

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
EXAMPLES = ROOT / "target/dist/examples"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "unladen-bench"
COLLECTOR_VERSION = "0.155.0"
JAEGER_VERSION = "2.20.0"
ZIPKIN_VERSION = "3.6.1"
ZIPKIN_SHA256 = "d8326e0ed4f43855dba81228f688554706e52578a7c782d9a90b73f8680654a1"
ZIPKIN_HEAP = "6g"
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
        config = {SINK_KEYS[protocol]: f"127.0.0.1:{port}", "out": str(folder), **self.config}
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
        return self.listen(port, [collector(), f"--config=file:{config}"], env={**os.environ, "GOMAXPROCS": "1"})


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
        return self.listen(port, [jaeger(), f"--config=file:{config}"], env={**os.environ, "GOMAXPROCS": "1"})


class Zipkin(Peer):
    """Zipkin's server with its storage in memory, large enough for all spans."""

    name = f"Zipkin {ZIPKIN_VERSION}"

    def start(self, folder, port, protocol):
        env = {**os.environ, "QUERY_PORT": str(port), "STORAGE_TYPE": "mem", "MEM_MAX_SPANS": "50000000"}
        return self.listen(port, ["java", f"-Xmx{ZIPKIN_HEAP}", "-jar", zipkin()], env=env, cwd=folder)


def receiver_config(port, protocol):
    endpoint = f"{{endpoint: '127.0.0.1:{port}'}}"
    if protocol == "zipkin":
        return "zipkin", f"zipkin: {endpoint}"
    return "otlp", f"otlp: {{protocols: {{{protocol}: {endpoint}}}}}"


def collector():
    """Builds the Collector from the Go module proxy, once."""
    sources = b"".join((HERE / "collector" / name).read_bytes() for name in ("main.go", "go.mod", "go.sum"))
    path = CACHE / f"otelcol-{COLLECTOR_VERSION}-{hashlib.sha256(sources).hexdigest()[:8]}"
    if not path.exists():
        print("building the OpenTelemetry Collector (some minutes, once) …", file=sys.stderr)
        subprocess.run(["go", "build", "-trimpath", "-o", path, "."], cwd=HERE / "collector", check=True)
    return path


def jaeger():
    """Builds Jaeger from its sources, once; JAEGER_SOURCE names a repository to take them from, if not GitHub's."""
    path = CACHE / f"jaeger-{JAEGER_VERSION}"
    if not path.exists():
        source = os.environ.get("JAEGER_SOURCE", "https://github.com/jaegertracing/jaeger")
        print("building Jaeger (some minutes, once) …", file=sys.stderr)
        with tempfile.TemporaryDirectory() as folder:
            tag = f"v{JAEGER_VERSION}"
            subprocess.run(["git", "clone", "--quiet", "--depth=1", "--branch", tag, source, folder], check=True)
            subprocess.run(["go", "build", "-trimpath", "-o", path, "./cmd/jaeger"], cwd=folder, check=True)
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
SINK_KEYS = {"grpc": "otlp_grpc", "http": "otlp_http", "zipkin": "zipkin", "skywalking": "skywalking", "elastic": "elastic"}
WIRES = {"grpc": "OTLP, gRPC", "http": "OTLP, HTTP", "zipkin": "Zipkin v2 JSON", "skywalking": "SkyWalking v3, gRPC",
         "elastic": "Elastic intake v2"}
WORKERS = (32, 1)
ROWS = [
    # receiver, what it does, protocol, spans per request, connections × streams, most that it may cost (the sink's target)
    (Sink(store=False), COUNT, "grpc", 512, (4, 2), 0.12),
    (Sink(store=False), COUNT, "http", 512, (8, 1), None),
    (Sink(store=False), COUNT, "grpc", 16, (4, 16), None),
    (Sink(attributes="all"), PARQUET, "grpc", 512, (4, 16), 0.45),
    (Sink(attributes="all"), PARQUET, "grpc", 16, (8, 64), 0.5),
    (Sink(attributes="all"), PARQUET, "http", 512, WORKERS, None),
    (Sink(attributes="all"), PARQUET, "skywalking", 512, (4, 16), 0.45),
    (Sink(attributes="all"), PARQUET, "zipkin", 512, WORKERS, 0.9),
    (Sink(attributes="all"), PARQUET, "elastic", 512, WORKERS, 1.0),
    (Sink(attributes="all", sync="interval"), "Parquet, all attributes, synced every second", "grpc", 512, (4, 2), None),
    (Collector("nop"), NOP, "grpc", 512, (4, 2), None),
    (Collector("nop"), NOP, "grpc", 16, (4, 16), None),
    (Collector("nop"), NOP, "zipkin", 512, WORKERS, None),
    (Collector("file"), FILE, "grpc", 512, (4, 2), None),
    (Jaeger(), MEMORY, "grpc", 512, (4, 2), None),
    (Jaeger(), MEMORY, "zipkin", 512, WORKERS, None),
    (Zipkin(), MEMORY, "zipkin", 512, WORKERS, None),
]
RATIOS = [
    # what of the sink, against what, protocol, the most it should be
    (PARQUET, Collector.name, FILE, "grpc", 0.25),
    (COUNT, Collector.name, NOP, "grpc", 0.35),
    (PARQUET, Jaeger.name, MEMORY, "grpc", 0.1),
    (PARQUET, Collector.name, NOP, "zipkin", None),
    (PARQUET, Jaeger.name, MEMORY, "zipkin", None),
    (PARQUET, Zipkin.name, MEMORY, "zipkin", None),
]


def replay(port, protocol, spans, per_request, connections, seed):
    out = subprocess.run(
        ["taskset", "-c", "0", EXAMPLES / "replay", "--address", f"127.0.0.1:{port}", "--protocol", protocol,
         "--spans", str(spans), "--per-request", str(per_request), "--connections", str(connections[0]),
         "--streams", str(connections[1]), "--seed", str(seed)],
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
    # No trace is of this tag; given one, the sink reads its files back at the end.
    sink = Sink(attributes="all", write_rate=rate, requests={"tag": 1, "key": 1})
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


def machine():
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return f"{model[1] if model else platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}"


def write(part, text):
    readme = ROOT / "bench/README.md"
    begin, end = f"<!-- {part}: begin -->", f"<!-- {part}: end -->"
    old = readme.read_text() if readme.exists() else "# unladen's instruments beside their peers\n"
    section = f"{begin}\n{text}\n{end}"
    if begin in old:
        new = re.sub(f"{re.escape(begin)}.*{re.escape(end)}", lambda _: section, old, flags=re.S)
    elif "<!-- sink: end -->" in old:
        new = old.replace("<!-- sink: end -->", f"<!-- sink: end -->\n\n{section}")
    else:
        new = f"{old.rstrip()}\n\n## Span sink\n\n{section}\n"
    readme.write_text(new)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--spans", type=int, default=300_000, help="per pass")
    parser.add_argument("--loss-spans", type=int, default=5_000_000, help="sent to a slow store")
    parser.add_argument("--part", choices=["cost", "loss"], help="only one of the two tables")
    parser.add_argument("--only", help="only rows whose receiver, action or wire contains this; leaves bench/README.md alone")
    parser.add_argument("--no-write", action="store_true", help="leave bench/README.md alone")
    options = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    if options.part != "loss":
        cost(options)
    if options.part != "cost" and not options.only:
        loss(options)


def cost(options):
    results = []
    for row in ROWS:
        receiver, does, protocol, per_request, connections, _ = row
        if options.only and options.only not in f"{receiver.name}, {does}, {protocol} {per_request}":
            continue
        result = measure(receiver, per_request, connections, protocol, options.spans, options.passes)
        results.append((row, result))
        print(f"{receiver.name}, {does}, {per_request}, {protocol}: {result}", file=sys.stderr, flush=True)
    wire = {WIRES[row[2]]: result["wire"] for row, result in results if row[3] == 512}
    sizes = ", ".join(f"{size:.0f} bytes a span ({name})" for name, size in wire.items())
    text = (f"Spans of 8.7 attributes, on the wire {sizes}; every id random, 131,072 different sets of values; sender on core "
            f"0, receiver on core 1; median of {options.passes} passes of {options.spans:,} spans after one to warm up, on one "
            f"process. Every acknowledged span of the sink was counted and, where stored, is in Parquet. The sink's memory "
            f"includes 9 to 14 bytes for each span and trace of all passes, by which it knows duplicates; that of Jaeger and "
            f"Zipkin the spans themselves. Elastic's and SkyWalking's own servers are not among the peers: the one cannot be "
            f"built without its vendor's packages, the other needs its database. {machine()}.\n\n{table(results)}\n\n"
            f"In the same run:\n\n{ratios(results)}")
    print(text)
    if not options.no_write and not options.only:
        write("sink", text)


def loss(options):
    results = []
    for protocol in WIRES:
        result = lose_nothing(protocol, options.loss_spans, SLOW_STORE)
        results.append((protocol, result))
        print(f"nothing lost, {protocol}: {result}", file=sys.stderr, flush=True)
    text = (f"Nothing lost: a store that takes at most {SLOW_STORE:,} spans a second, and senders that send as fast as they are "
            f"let.\n\n{losses(results)}")
    print(text)
    if not options.no_write:
        write("sink-loss", text)


if __name__ == "__main__":
    main()
