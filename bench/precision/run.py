#!/usr/bin/env python3
"""How precise a round is: the standard deviation of its difference in CPU per request, by separate runs and by alternating
blocks, for services in several languages. Writes the table between the marks in bench/README.md.

  bench/precision/run.py [--only c,go] [--designs separate,alternating] [--rounds N] [--seconds S] [--fresh] [--table]
                         [-- --set block=50ms …]
  bench/precision/run.py --pace 80

`--pace` measures identical work for so many seconds by size of what it reads (`pace.c`): what the length of a block does to the noise.

Each folder beside this file is a subject: a study and, mostly, a small server. The designs have their rounds by turns, so that
both see the same machine. Run folders are kept in target/bench-precision/SUBJECT-DESIGN, and a further call goes on with them:
`--seconds` begins no round after so long, `--fresh` begins anew, `--table` only writes the table. A design `alternating@20ms` has
blocks of that length; its rounds go into the table of block lengths. What follows `--` is handed to `unladen run` when a study
begins.
"""

import argparse
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import marked  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
UNLADEN = ROOT / "target/release/unladen"
RUNS = ROOT / "target/bench-precision"
README = ROOT / "bench/README.md"
DESIGNS = ["separate", "alternating"]
# In the order of the table.
SUBJECTS = ["demo", "c", "go", "node", "python", "jvm", "shop"]
# Best first: a compiler at work is no cost of a request, and not the same in two starts.
METRICS = ["cpu_without_jit", "cpu_per_request"]
# MiB that identical work reads, and the file of its rows.
SIZES = ["0.05", "0.2", "1", "4"]
PACE = RUNS / "pace.md"
QUANTILES = ["p50", "p75", "p90", "p95", "p99"]


def rounds_of_study(subject):
    return int(re.search(r"^rounds: (\d+)", (HERE / subject / "study.yaml").read_text(), re.M)[1])


class Folder:
    """The run folder of a subject under a design."""

    def __init__(self, subject, design):
        self.subject, self.design = subject, design
        self.path = RUNS / f"{subject}-{design}"

    def journal(self):
        path = self.path / "journal.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        # A calibration has a line, too, and no round.
        return [record for record in map(json.loads, lines) if "round" in record]

    def rounds_done(self):
        return len({run["round"] for run in self.journal()})

    def one_more(self, more):
        """Measures another round."""
        rounds = str(self.rounds_done() + 1)
        command = [UNLADEN, "run", "--quiet", "--rounds", rounds]
        if rounds == "1":
            # What a run that was broken off has left.
            shutil.rmtree(self.path, ignore_errors=True)
            design, _, block = self.design.partition("@")
            length = ["--block", block] if block else []
            command += [HERE / self.subject, "--design", design, *length, "--out", self.path, *more]
        else:
            command += ["--resume", self.path]
        begun = time.monotonic()
        done = subprocess.run(list(map(str, command)), stdout=subprocess.DEVNULL)
        # 2: no run of the round counts, mostly because something else had the machine. The next one may.
        if done.returncode not in (0, 2) or self.rounds_done() < int(rounds):
            raise RuntimeError(f"{self.subject}, {self.design}: unladen ended with {done.returncode}, see above")
        with open(self.path / "seconds", "a") as seconds:
            print(f"{time.monotonic() - begun:.1f}", file=seconds)

    def seconds_per_round(self):
        path = self.path / "seconds"
        return statistics.median(map(float, path.read_text().split())) if path.exists() else None

    def findings(self):
        path = self.path / "findings.json"
        return json.loads(path.read_text()) if path.exists() else {"variants": []}

    def pairs(self):
        """By variant and round: CPU per request of the baseline and of the variant, µs."""
        pairs = {}
        for variant in self.findings()["variants"]:
            whole = {finding["metric"]: finding["rounds"] for finding in variant["metrics"]
                     if not finding["service"] and not finding["operation"]}
            rounds = next((whole[metric] for metric in METRICS if whole.get(metric)), [])
            pairs[variant["name"]] = {it["round"]: (it["baseline"], it["value"]) for it in rounds}
        return pairs

    def baselines(self):
        """By round: CPU per request of the baseline, µs."""
        return {number: pair[0] for rounds in self.pairs().values() for number, pair in rounds.items()}

    def latencies(self, part):
        """By variant and round: quantiles of the latency in a part of the runs that count, µs."""
        found = {}
        for run in self.journal():
            if run.get("void") is None and run.get("load"):
                of = (run.get("blocks") or {}).get("alone") if part == "alone" else run["load"]
                if of and of["latency_us"]["count"]:
                    found.setdefault(run["variant"], {})[run["round"]] = of["latency_us"]
        return found

    def alone(self):
        """By round: CPU per request of the baseline in the stretch alone, and in the last blocks before it with as many requests, µs."""
        found = {}
        for run in self.journal():
            blocks = run.get("blocks") or {}
            alone, requests, cpu_ns = blocks.get("alone"), 0, 0
            if run.get("void") is None and run["kind"] == "baseline" and alone and alone["completed"]:
                for point in reversed(blocks["points"]):
                    if requests < alone["completed"]:
                        requests, cpu_ns = requests + point["completed"], cpu_ns + point["cpu_ns"]
                if requests:
                    found[run["round"]] = alone["cpu_ns"] / 1e3 / alone["completed"], cpu_ns / 1e3 / requests
        return found

    def days(self):
        return {run["started"][:10] for run in self.journal()}


def sds(logs):
    """Standard deviation, and a robust one: by the median of the distances from the median."""
    if len(logs) < 3:
        return None
    middle = statistics.median(logs)
    return statistics.stdev(logs), 1.4826 * statistics.median(abs(it - middle) for it in logs)


def logs(folder, variant):
    return [math.log(value / baseline) for baseline, value in folder.pairs().get(variant, {}).values() if baseline and value]


def percent(value, digits=2):
    return f"{value * 100:.{digits}f} %"


def shown(values):
    return "–" if values is None else f"{percent(values[0])} ({percent(values[1])})"


def middle(folder, variant):
    found = logs(folder, variant)
    return f"{percent(math.expm1(statistics.median(found)), 1)}, {len(found)}" if found else "–"


def precision_rows(subject, separate, alternating):
    for variant in dict.fromkeys([*separate.pairs(), *alternating.pairs()]):
        one, other = sds(logs(separate, variant)), sds(logs(alternating, variant))
        ratio = f"{one[0] / other[0]:.1f} | {(one[0] / other[0]) ** 2:.0f}" if one and other and other[0] > 0 else "– | –"
        yield (f"| {subject} | {variant} | {shown(one)} | {shown(other)} | {ratio} | {middle(separate, variant)} | "
               f"{middle(alternating, variant)} |")


def ratio(pairs):
    ratios = [one / other for one, other in pairs]
    return f"{statistics.median(ratios):.3f} ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else "–"


def absolute_row(subject, separate, alternating):
    one, other = separate.baselines(), alternating.baselines()
    # A round of one design and that of the other lie beside each other: their ratio does not know how the machine drifts.
    designs = ratio((other[number], one[number]) for number in one if other.get(number))
    stretches = ratio((blocks, alone) for alone, blocks in alternating.alone().values())
    cells = [f"{statistics.median(values.values()):.1f}" if values else "–" for values in (one, other)]
    seconds = [f"{it:.0f}" if it else "–" for it in (separate.seconds_per_round(), alternating.seconds_per_round())]
    return f"| {subject} | {cells[0]} | {cells[1]} | {designs} | {stretches} | {seconds[0]} | {seconds[1]} |"


def spread(groups, digits=1):
    """The common standard deviation of several groups about their own means."""
    groups = [group for group in groups if len(group) > 2]
    squares = sum((one - statistics.mean(group)) ** 2 for group in groups for one in group)
    return percent(math.sqrt(squares / sum(len(group) - 1 for group in groups)), digits) if groups else "–"


def latency_rows(subject, separate, alternating):
    """Median over the rounds of the bare service's latency by quantile, and how far apart a round's difference comes out."""
    parts = [separate.latencies("window"), alternating.latencies("alone"), alternating.latencies("blocks")]
    for quantile in QUANTILES:
        middles, spreads = [], []
        for part in parts:
            bare = {number: it[quantile] for number, it in part.get("baseline", {}).items()}
            middles.append(f"{statistics.median(bare.values()):.0f}" if bare else "–")
            spreads.append(spread([math.log(it[quantile] / bare[number]) for number, it in part.get(variant, {}).items()
                                   if bare.get(number) and it[quantile]] for variant in ("placebo", "more")))
        yield f"| {subject} | {quantile} | {' | '.join(middles)} | {' | '.join(spreads)} |"


def length_rows(subject):
    """Blocks of several lengths: what a request costs in them and alone, and how far apart a round's difference comes out."""
    found = sorted(RUNS.glob(f"{subject}-alternating@*ms"), key=lambda path: float(path.name.split("@")[1][:-2]))
    for folder in [Folder(subject, path.name.removeprefix(f"{subject}-")) for path in found]:
        pairs = folder.alone()
        if len(pairs) < 3:
            continue
        alone, blocks = (statistics.median(it) for it in zip(*pairs.values()))
        cold = [run["blocks"]["cold_ns"] / 1e3 for run in folder.journal()
                if run.get("void") is None and run["kind"] == "baseline" and (run.get("blocks") or {}).get("cold_ns") is not None]
        ratio = statistics.median(blocks / alone for alone, blocks in pairs.values())
        yield (f"| {subject} | {folder.design.split('@')[1].replace('ms', ' ms')} | {blocks:.1f} | {alone:.1f} | {ratio:.3f} | "
               f"{f'{statistics.median(cold):.0f}' if cold else '–'} | {spread((logs(folder, variant) for variant in ('placebo', 'more')), 2)} | {len(pairs)} |")


def text():
    folders = {subject: [Folder(subject, design) for design in DESIGNS] for subject in SUBJECTS}
    folders = {subject: pair for subject, pair in folders.items() if any(folder.rounds_done() for folder in pair)}
    days = sorted(set().union(*(folder.days() for pair in folders.values() for folder in pair), *(
        Folder(path.name.split("-")[0], path.name.partition("-")[2]).days() for path in RUNS.glob("*@*ms"))))
    if not days:
        sys.exit(f"{RUNS} holds no round yet: run {sys.argv[0]} without --table first")
    lines = [
        f"{marked.machine()}; {' to '.join(dict.fromkeys([days[0], days[-1]]))}. Standard deviation of log(variant / baseline) over the "
        "rounds, in brackets a robust one (median distance from the median × 1.4826).", "",
        "| subject | variant | separate | alternating | ratio | its square | difference, rounds: separate | alternating |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
        *(row for subject, pair in folders.items() for row in precision_rows(subject, *pair)), "",
        "CPU per request of the bare service (of a JVM without its compiler), median over the rounds; the ratio of the designs, other "
        "processes, in rounds that were measured one after the other; and of the same processes, in their last blocks and alone "
        "right after (with the compiler): medians (least to largest).", "",
        "| subject | separate, µs | alternating, µs | alternating / separate | blocks / alone | s per round: separate | alternating |",
        "|---|--:|--:|--:|--:|--:|--:|",
        *(absolute_row(subject, *pair) for subject, pair in folders.items()), "",
        "Latency of the bare service, µs, median over the rounds, by where it comes from (separate runs; the stretch alone and the "
        "blocks of alternating rounds), and the standard deviation of a round's log(variant / baseline) of placebo and `more`:", "",
        "| subject | quantile | separate | alone | blocks | sd: separate | alone | blocks |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
        *(row for subject, pair in folders.items() for row in latency_rows(subject, *pair)),
    ]
    lengths = [row for subject in SUBJECTS for row in length_rows(subject)]
    if lengths:
        lines += [
            "", "By the length of a block: CPU per request of the bare service in its last blocks and alone, µs, the median of their ratios in a "
            "round, what the first half of a block takes more than the second, µs, and the standard deviation of a round's difference "
            "(placebo and `more`):", "",
            "| subject | block | in blocks | alone | ratio | cold start | sd | rounds |", "|---|--:|--:|--:|--:|--:|--:|--:|", *lengths,
        ]
    if PACE.exists():
        lengths = re.search(r"LENGTHS_MS\[\] = {(.*?)}", (HERE / "pace.c").read_text())[1].split(", ")
        lines += [
            "", "Identical work, 500 times a second (`pace.c`), dealt out to two sides in blocks of so many ms: the standard deviation of "
            "log(one side / the other) over windows of 4 s a side; before it how far apart tenths of a second are.", "",
            f"| reads | takes, µs | sd of 0.1 s | {' | '.join(f'{it} ms' for it in lengths)} |",
            f"|--:|--:|--:|{'--:|' * len(lengths)}", PACE.read_text().strip(),
        ]
    return "\n".join(lines)


def pace(seconds):
    """Measures identical work on the last core."""
    RUNS.mkdir(parents=True, exist_ok=True)
    program, core = RUNS / "pace", str(max(os.sched_getaffinity(0)))
    subprocess.run(["gcc", "-O2", "-Wall", "-o", program, HERE / "pace.c", "-lm"], check=True)
    rows = [subprocess.run(["taskset", "-c", core, program, size, str(seconds)], check=True, capture_output=True, text=True).stdout
            for size in SIZES]
    PACE.write_text("".join(rows))


def measure(subject, designs, options, deadline):
    """Measures the subject to its end, or until the time is up."""
    folders = [Folder(subject, design) for design in designs]
    for folder in folders:
        if options.fresh:
            shutil.rmtree(folder.path, ignore_errors=True)
    wanted = options.rounds or rounds_of_study(subject)
    while time.monotonic() < deadline:
        # Whoever is behind is next; which design is first changes from round to round.
        done = min(folder.rounds_done() for folder in folders)
        if done >= wanted:
            return
        behind = [folder for folder in folders if folder.rounds_done() == done]
        folder = behind[done % len(behind)]
        folder.one_more(options.more)
        print(f"{subject}, {folder.design}: {folder.rounds_done()} of {wanted} rounds", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(SUBJECTS))
    parser.add_argument("--designs", default=",".join(DESIGNS))
    parser.add_argument("--rounds", type=int, help="of every subject, instead of its study's")
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--pace", type=int, metavar="SECONDS")
    parser.add_argument("more", nargs="*")
    options = parser.parse_args()
    deadline = time.monotonic() + options.seconds
    if options.pace:
        pace(options.pace)
    for subject in [] if options.table or options.pace else options.only.split(","):
        measure(subject, options.designs.split(","), options, deadline)
    marked.write(README, "bench-precision", text())


if __name__ == "__main__":
    main()
