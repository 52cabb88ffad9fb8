#!/usr/bin/env python3
"""What the parts of the sink that are its own cost beside what libraries have: HTTP/2 (hyper), Parquet (the `parquet` crate's
ArrowWriter), JSON (serde_json), and what it costs to acknowledge spans only once they are on disk. Writes the table between the
marks in bench/README.md, and each row between those of the decision that it is for, docs/adr/0002 to 0005.

  bench/alternatives/run.py [--passes N] [--spans N]
"""

import argparse
import importlib.util
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import marked  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
README = ROOT / "bench/README.md"
BUILT = ROOT / "target/alternatives"

spec = importlib.util.spec_from_file_location("bench_sink", HERE.parent / "sink/run.py")
sink = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sink)


class Hyper(sink.Peer):
    name = "hyper"

    def start(self, folder, port, protocol):
        return self.listen(port, [BUILT / "release/receive", port])


def cost(receiver, per_request, spans, passes):
    connections = (4, 16) if per_request == 16 else (4, 2)
    return sink.measure(receiver, per_request, connections, "grpc", spans, passes)["cpu"]


SPANS_A_REQUEST = (512, 16)


def http2_rows(options):
    """A whole receiver of ours that counts and accounts, beside one of hyper's that throws away what it reads."""
    costs = []
    for per_request in SPANS_A_REQUEST:
        ours = cost(sink.counting(**sink.OF_LOAD), per_request, options.spans, options.passes)
        theirs = cost(Hyper(), per_request, options.spans, options.passes)
        costs.append((ours, theirs))
        yield (f"HTTP/2, {per_request} spans a request", f"{ours:.3f}, with the accounting", "hyper 1, throws away what it reads",
               f"{theirs:.3f}", ours / theirs)
    # The spans of both rows are the same, so what the second costs more is its requests.
    fewer, more = (1e6 / per_request for per_request in SPANS_A_REQUEST)
    ours, theirs = ((few - many) / (fewer - more) * 1e6 for few, many in zip(*costs))
    yield "HTTP/2, a request more, from the two rows, µs", f"{ours:.1f}", "hyper 1", f"{theirs:.1f}", ours / theirs


def store(options):
    """CPU-s per million spans of our store: what the sink takes with it more than without. And what ArrowWriter takes for the same rows."""
    folder = Path(tempfile.mkdtemp(prefix="unladen-bench-", dir=sink.CACHE))
    try:
        port = sink.free_port()
        receiver = sink.storing(sync="interval", **sink.OF_LOAD)
        process = receiver.start(folder, port, "grpc")
        costs = []
        for number in range(options.passes + 1):
            before = sink.cpu_seconds(process.pid)
            outcome = sink.replay(port, "grpc", options.spans, 512, (4, 2), number + 1)
            costs.append((sink.cpu_seconds(process.pid) - before) / outcome["acknowledged"] * 1e6)
        spans, size = receiver.stop(folder)
        # One pass is enough for the other; it has its own.
        written = subprocess.run(["taskset", "-c", "1", BUILT / "release/columns", folder / "spans", folder / "again.parquet"],
                                 check=True, stdout=subprocess.PIPE)
        return statistics.median(costs[1:]), size / spans, json.loads(written.stdout)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def parquet_rows(options):
    counting = cost(sink.counting(**sink.OF_LOAD), 512, options.spans, options.passes)
    storing, size, other = store(options)
    ours = storing - counting
    for name, words in (("zstd", "zstd, level 1"), ("none", "not compressed")):
        theirs = other[name]
        yield ("Parquet", f"{ours:.3f}, {size:.0f} bytes a span, from the span to the file",
               f"`parquet`, ArrowWriter, {words}, from arrays that are there", f"{theirs['cpu']:.3f}, {theirs['bytes']:.0f} bytes a span",
               ours / theirs["cpu"])


def sync_row(options):
    synced = sink.measure(sink.storing(**sink.OF_LOAD), 512, (4, 16), "grpc", options.spans, options.passes)["cpu"]
    unsynced = sink.measure(sink.storing(sync="interval", **sink.OF_LOAD), 512, (4, 16), "grpc", options.spans, options.passes)["cpu"]
    yield ("acknowledgement", f"{synced:.3f}, after fsync", "the same, synced every second", f"{unsynced:.3f}", synced / unsynced)


def json_row():
    """By a test of the decoders that nobody else runs."""
    command = ["cargo", "test", "--profile", "dist", "--locked", "-p", "unladen-decode", "--lib", "--", "--ignored", "--nocapture",
               "beside_serde_json"]
    output = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    ours, theirs = map(float, re.search(r"ours ([0-9.]+), serde_json ([0-9.]+)", output).groups())
    yield ("Zipkin's JSON", f"{ours:.3f}", "serde_json 1, into structs that borrow", f"{theirs:.3f}", ours / theirs)


def table(heading, rows):
    return "\n".join([heading, "", "| part | ours | instead | that costs | ratio |", "|---|--:|---|--:|--:|",
                      *(f"| {part} | {ours} | {instead} | {theirs} | {ratio:.2f} |" for part, ours, instead, theirs, ratio in rows)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--spans", type=int, default=300_000, help="per pass")
    options = parser.parse_args()
    subprocess.run(["cargo", "build", "--release", "--locked", "--manifest-path", HERE / "Cargo.toml", "--target-dir", BUILT], check=True)
    sink.CACHE.mkdir(parents=True, exist_ok=True)
    heading = f"{marked.machine()}. CPU-s per million spans of 8.7 attributes unless the row says otherwise; medians of {options.passes} passes."
    pages = {"http2": ("0002-http2.md", http2_rows(options)), "parquet": ("0003-parquet.md", parquet_rows(options)),
             "json": ("0004-json.md", json_row()), "sync": ("0005-acknowledgement.md", sync_row(options))}
    everything = []
    for part, (page, rows) in pages.items():
        rows = list(rows)
        everything += rows
        marked.write(ROOT / "docs/adr" / page, f"alternatives-{part}", table(heading, rows))
    marked.write(README, "alternatives", table(heading, everything))


if __name__ == "__main__":
    main()
