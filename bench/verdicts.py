#!/usr/bin/env python3
"""Whether verdicts come out as they should where the truth is known. Writes the tables between the marks in docs/explanation/soundness.md.

  bench/verdicts.py power [--from OUTPUT]    ten studies with 1 % more real work, ten with 5 % beside a process that uses half a core: an hour
  bench/verdicts.py aa [--from OUTPUT]       five identical variants by either design, re-labelled 2,000 times: 9 minutes
  bench/verdicts.py demos [--from FOLDER]    ten runs of `unladen demo`: 18 minutes

The first two run tests that `make test` leaves out. What they print is kept in target/bench-verdicts, as are the demos' run folders:
`--from` writes a table from what is there instead of measuring. Nothing else may run on the machine.
"""

import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import marked  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "target/bench-verdicts"
PAGE = ROOT / "docs/explanation/soundness.md"
TESTS = {"power": "more_work_is_found", "aa": "identical"}
DEMOS = 10


def run_tests(what):
    """Runs the ignored tests and shows their output; returns the file where it is kept."""
    command = [os.environ.get("CARGO", "cargo"), "test", "--release", "--locked", "-p", "unladen", "--test", "e2e", "--",
               "--ignored", "--nocapture", TESTS[what]]
    lines = []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as tests:
        for line in tests.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    output = KEPT / f"{what}.txt"
    output.write_text("".join(lines))
    if tests.returncode != 0:
        print(f"the tests ended with {tests.returncode}: the table says what they found", file=sys.stderr)
    return output


def power(output):
    """The studies of either part, and in how many of them the work was found."""
    rows, studies = [], []
    for line in output.splitlines():
        # The first study's line follows the name of its test.
        if found := re.search(r"study \d+: ([-+][\d.]+) % \[(-?[\d.]+), (-?[\d.]+)\], ", line):
            studies.append(tuple(map(float, found.groups())))
        elif share := re.search(r'\+([\d.]+) % of real work: "costs" in (\d+) of (\d+)', line):
            values, widths = [it[0] for it in studies], [(high - low) / 2 for _, low, high in studies]
            rows.append((float(share[1]), f"| +{share[1]} % | {share[2]} of {share[3]} | {min(values):+.2f} to {max(values):+.2f} % "
                                          f"| ±{min(widths):.2f} to ±{max(widths):.2f} % |"))
            studies = []
    if not rows:
        sys.exit("the output has no series of studies: see above what the tests say")
    head = ["| put in | \"costs\" in | found | half-width of the 95 % interval |", "|---|--:|--:|--:|"]
    return head + [row for _, row in sorted(rows)]


def aa(output):
    """False alarms by metric and design, %."""
    shares, heads = {}, []
    for line in output.splitlines():
        if head := re.search(r"(separate|alternating): (\d+) studies of (\d+) rounds, re-labelled from (\d+) runs", line):
            heads.append(head)
        elif heads and (row := re.fullmatch(r"(\w+)\s+([\d.]+) % of \d+", line)):
            shares.setdefault(row[1], {})[heads[-1][1]] = row[2]
    designs = [head[1] for head in heads]
    if not designs:
        sys.exit("the output has no re-labelled study: see above what the tests say")
    rows = [f"| `{metric}` | {' | '.join(of.get(design, '–') for design in designs)} |" for metric, of in shares.items()]
    return [f"{int(heads[0][2]):,} studies of {heads[0][3]} rounds, re-labelled from {heads[0][4]} runs by each design.", "",
            f"| metric | {', % | '.join(designs)}, % |", "|---|" + "--:|" * len(designs), *rows]


def run_demos():
    shutil.rmtree(KEPT / "demos", ignore_errors=True)
    for number in range(1, DEMOS + 1):
        command = [ROOT / "target/release/unladen", "demo", "--plain", "--out", KEPT / f"demos/{number}"]
        subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
        print(f"demo {number} of {DEMOS}", flush=True)
    return KEPT / "demos"


def demos(folder):
    lines = ["| run | OpenTelemetry's CPU per request | half-width | noise floor | rounds repeated | s |", "|--:|---|--:|--:|--:|--:|"]
    for path in sorted(folder.glob("*/findings.json"), key=lambda it: int(it.parent.name)):
        findings = json.loads(path.read_text())
        cpu = {of["name"]: next(it for it in of["metrics"] if it["metric"] == "cpu_per_request" and not it["service"])
               for of in findings["variants"]}
        otel, placebo = cpu["otel"], cpu["placebo"]
        floor = max(abs(placebo["ratio_low"]), abs(placebo["ratio_high"]))
        started = datetime.datetime.fromisoformat(findings["host"]["started"]).timestamp()
        lines.append(f"| {path.parent.name} | {otel['words']} | ±{(otel['ratio_high'] - otel['ratio_low']) * 50:.1f} % "
                     f"| ±{floor * 100:.1f} % | {findings['rounds_repeated']} | {path.stat().st_mtime - started:.0f} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["power", "aa", "demos"])
    parser.add_argument("--from", dest="source", type=Path, help="what was measured before")
    arguments = parser.parse_args()
    KEPT.mkdir(parents=True, exist_ok=True)
    if arguments.what == "demos":
        source = arguments.source or run_demos()
        table = demos(source)
    else:
        source = arguments.source or run_tests(arguments.what)
        table = {"power": power, "aa": aa}[arguments.what](source.read_text())
    date = datetime.date.fromtimestamp(source.stat().st_mtime).isoformat()
    marked.write(PAGE, f"verdicts-{arguments.what}", "\n".join([f"{marked.machine()}; {date}.", "", *table]))


if __name__ == "__main__":
    main()
