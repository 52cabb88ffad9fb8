#!/usr/bin/env python3
"""Compares the sink with other receivers of spans and writes the table into bench/README.md.

Sender on core 0, receiver on core 1. The figure is the receiver's CPU time (user and system, whole process, from its
CPU clock) per million acknowledged spans: the median of several passes after one to warm up.

  bench/sink/run.py [--passes N] [--spans N] [--only PART] [--no-write]
"""

import argparse
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
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
EXAMPLES = ROOT / "target/dist/examples"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "unladen-bench"
COLLECTOR_VERSION = "0.155.0"
BEGIN, END = "<!-- sink: begin -->", "<!-- sink: end -->"


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


class Sink:
    """unladen's sink; `config` is added to its configuration."""

    def __init__(self, **config):
        self.config = config

    def start(self, folder, port, protocol):
        config = {f"otlp_{protocol}": f"127.0.0.1:{port}", "out": str(folder), **self.config}
        self.process = subprocess.Popen(
            ["taskset", "-c", "1", EXAMPLES / "sink"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process.stdin.write(json.dumps(config).encode() + b"\n")
        self.process.stdin.flush()
        assert json.loads(self.process.stdout.readline())["event"] == "ready"
        # Ticks must be read, or the sink would block on them.
        self.reader = subprocess.Popen(["tail", "-n", "1"], stdin=self.process.stdout, stdout=subprocess.PIPE)
        return self.process

    def stop(self, folder):
        self.process.stdin.close()
        self.process.wait()
        summary = json.loads(self.reader.communicate()[0])
        return summary["saved"], summary["stored_bytes"]


class Collector:
    """The OpenTelemetry Collector with its OTLP receiver and one exporter."""

    def __init__(self, exporter):
        self.exporter = exporter

    def start(self, folder, port, protocol):
        exporters = {"nop": "nop: {}", "file": f"file: {{path: {folder}/spans, format: proto}}"}
        config = folder / "collector.yaml"
        config.write_text(
            f"receivers: {{otlp: {{protocols: {{{protocol}: {{endpoint: '127.0.0.1:{port}'}}}}}}}}\n"
            f"exporters: {{{exporters[self.exporter]}}}\n"
            "service:\n  telemetry: {metrics: {level: none}, logs: {level: error}}\n"
            f"  pipelines: {{traces: {{receivers: [otlp], exporters: [{self.exporter}]}}}}\n")
        self.process = subprocess.Popen(
            ["taskset", "-c", "1", collector(), f"--config=file:{config}"],
            env={**os.environ, "GOMAXPROCS": "1"}, stderr=subprocess.DEVNULL)
        wait_for_port(port, self.process)
        return self.process

    def stop(self, folder):
        self.process.terminate()
        self.process.wait()
        spans = folder / "spans"
        return None, spans.stat().st_size if spans.exists() else 0


def collector():
    """Builds the Collector from the Go module proxy, once."""
    path = CACHE / f"otelcol-{COLLECTOR_VERSION}"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        print("building the OpenTelemetry Collector (some minutes, once) …", file=sys.stderr)
        subprocess.run(["go", "build", "-trimpath", "-o", path, "."], cwd=HERE / "collector", check=True)
    return path


ROWS = [
    # part, receiver, what it does, how, per request, connections × streams, protocol
    ("sink", "unladen sink", "count and account", Sink(store=False), 512, (4, 2), "grpc"),
    ("sink", "unladen sink", "count and account", Sink(store=False), 512, (8, 1), "http"),
    ("sink", "unladen sink", "count and account", Sink(store=False), 16, (4, 16), "grpc"),
    ("sink", "unladen sink", "Parquet, all attributes, synced before it acknowledges", Sink(attributes="all"), 512, (4, 16), "grpc"),
    ("sink", "unladen sink", "Parquet, all attributes, synced before it acknowledges", Sink(attributes="all"), 16, (8, 64), "grpc"),
    ("sink", "unladen sink", "Parquet, all attributes, synced every second", Sink(attributes="all", sync="interval"), 512, (4, 2), "grpc"),
    ("collector", f"OpenTelemetry Collector {COLLECTOR_VERSION}", "drop (nop exporter)", Collector("nop"), 512, (4, 2), "grpc"),
    ("collector", f"OpenTelemetry Collector {COLLECTOR_VERSION}", "drop (nop exporter)", Collector("nop"), 16, (4, 16), "grpc"),
    ("collector", f"OpenTelemetry Collector {COLLECTOR_VERSION}", "file exporter (protobuf), not synced", Collector("file"), 512, (4, 2), "grpc"),
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
        return {"wire": outcome["bytes"] / outcome["acknowledged"], "cpu": statistics.median(costs), "rate": max(rates), "rss": rss,
                "bytes": stored / acknowledged if stored else None, "acknowledged": acknowledged}
    finally:
        if process.poll() is None:
            process.kill()
        shutil.rmtree(folder, ignore_errors=True)


def table(results):
    lines = ["| receiver | what it does | spans a request | wire | CPU-s per million spans | spans/s on one core | peak RSS, MB | bytes/span |",
             "|---|---|--:|---|--:|--:|--:|--:|"]
    for (_, receiver, does, _, per_request, _, protocol), result in results:
        size = f"{result['bytes']:.1f}" if result["bytes"] else "–"
        wire = {"grpc": "gRPC", "http": "HTTP/1.1"}[protocol]
        lines.append(f"| {receiver} | {does} | {per_request} | {wire} | {result['cpu']:.3f} | "
                     f"{result['rate'] / 1e3:,.0f} k | {result['rss']:.0f} | {size} |")
    return "\n".join(lines)


def machine():
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return f"{model[1] if model else platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}"


def write(text):
    readme = ROOT / "bench/README.md"
    old = readme.read_text() if readme.exists() else "# unladen's instruments beside their peers\n"
    section = f"{BEGIN}\n{text}\n{END}"
    if BEGIN in old:
        new = re.sub(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: section, old, flags=re.S)
    else:
        new = f"{old.rstrip()}\n\n## Span sink\n\n{section}\n"
    readme.write_text(new)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--spans", type=int, default=1_000_000, help="per pass")
    parser.add_argument("--only", help="only rows whose part, action or wire contains this")
    parser.add_argument("--no-write", action="store_true", help="leave bench/README.md alone")
    options = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    results = []
    for row in ROWS:
        part, receiver, does, how, per_request, connections, protocol = row
        if options.only and options.only not in f"{part} {does} {protocol} {per_request}":
            continue
        result = measure(how, per_request, connections, protocol, options.spans, options.passes)
        results.append((row, result))
        print(f"{receiver}, {does}, {per_request}, {protocol}: {result}", file=sys.stderr, flush=True)
    wire = {row[4]: result["wire"] for row, result in results}
    sizes = ", ".join(f"{size:.0f} bytes on the wire at {number} a request" for number, size in sorted(wire.items()))
    text = (f"OTLP spans of 8.7 attributes ({sizes}), every id random, 131,072 different sets of "
            f"values; sender on core 0, receiver on core 1; median of {options.passes} passes of {options.spans:,} spans "
            f"after one to warm up, on one process; every acknowledged span of the sink was counted and, where stored, is in "
            f"Parquet. The sink's memory includes 9 to 14 bytes for each span and trace of all passes, by which it knows "
            f"duplicates. "
            f"{machine()}.\n\n{table(results)}")
    print(text)
    if not options.no_write:
        write(text)


if __name__ == "__main__":
    main()
