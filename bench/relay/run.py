#!/usr/bin/env python3
"""What a network of its own and the relay out of it cost: the same study with `network: host` and `network: own`, by turns. Writes the
table between the marks in bench/README.md.

  bench/relay/run.py [TURNS]
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import marked  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RUNS = ROOT / "target/bench-relay"
README = ROOT / "bench/README.md"
NETWORKS = ["host", "own"]


def measure(network, turn):
    folder = RUNS / f"{network}-{turn}"
    if not (folder / "findings.json").exists():
        command = [ROOT / "target/release/unladen", "run", HERE, "--quiet", "--set", f"network={network}", "--out", folder]
        done = subprocess.run(list(map(str, command)), stdout=subprocess.DEVNULL)
        if done.returncode != 0:
            sys.exit(f"{folder}: unladen ended with {done.returncode}, see above")
    return figures(folder)


def figures(folder):
    """Of the bare service: CPU and p50, µs; of the relay: CPU, µs per request; of `more`: the difference and half its interval, %."""
    records = map(json.loads, (folder / "journal.jsonl").read_text().splitlines())
    runs = [it for it in records if it.get("kind") == "baseline" and it["void"] is None]
    relay = [process["cpu_ns"] / 1e3 / run["load"]["requests"]
             for run in runs for process in run["instrument"] if process["service"] == "relay"]
    findings = json.loads((folder / "findings.json").read_text())
    more = next(it for it in findings["variants"] if it["name"] == "more")
    whole = {it["metric"]: it for it in more["metrics"] if not it["service"] and not it["operation"]}
    cpu, p50 = whole["cpu_per_request"], whole["latency_p50"]
    return {
        "CPU of the bare service, µs per request": cpu["baseline"],
        "latency p50 of the bare service, µs": p50["baseline"],
        "CPU of the relay, µs per request": statistics.median(relay) if relay else 0.0,
        "difference of `more`, %": cpu["ratio"] * 100,
        "half-width of its interval, %": (cpu["ratio_high"] - cpu["ratio_low"]) * 50,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("turns", nargs="?", type=int, default=4)
    turns = parser.parse_args().turns
    measured = {network: [] for network in NETWORKS}
    for turn in range(turns):
        # Which is first changes from turn to turn.
        for network in NETWORKS[:: 1 if turn % 2 == 0 else -1]:
            measured[network].append(measure(network, turn))
    what = "one study each" if turns == 1 else f"median of {turns} studies (least to largest)"
    lines = [f"| {what} | on the machine's network | in a network of its own, through the relay |",
             "|---|--:|--:|"]
    for name in measured["host"][0]:
        columns = [[it[name] for it in measured[network]] for network in NETWORKS]
        cells = [f"{it[0]:.1f}" if turns == 1 else f"{statistics.median(it):.1f} ({min(it):.1f} to {max(it):.1f})" for it in columns]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    marked.write(README, "bench-relay", "\n".join(lines))


if __name__ == "__main__":
    main()
