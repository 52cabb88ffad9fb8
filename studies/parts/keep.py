#!/usr/bin/env python3
"""Keeps the findings of a run folder with its study: keep.py RUN_FOLDER studies/NAME/results/DATE.json [METRIC or METRIC@SERVICE…]

What is kept is small and can be read: everything that the judge prints and the value of every round of it, as `[round, baseline, variant]`; of the
details (services and operations apart) those that the README of the study asks for, and those that are named; the command and how long it
took. What is null or empty is left out, and so are paths of the machine. Everything else is as the judge wrote it: floating-point
numbers to six digits, one line for each finding. Findings of sources that no commit holds are refused: nobody could measure them again.
"""

import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tables"))
from markers import words_of  # noqa: E402
from written import instant  # noqa: E402

# Tables for people, charts and stacks: the numbers in them stand elsewhere in the findings, or take more room than a summary has.
TOO_LARGE = ("sections", "profiles")


def small(value, details):
    if isinstance(value, list):
        return [small(one, details) for one in value if not is_left_out(one, details)]
    if isinstance(value, dict):
        is_metric = "metric" in value and "verdict" in value
        kept = {key: rounds(one) if is_metric and key == "rounds" else small(one, details) for key, one in value.items()}
        return {key: one for key, one in kept.items() if one not in (None, "", [], {})}
    return shortened(value) if isinstance(value, float) else value


def shortened(number):
    return float(f"{number:.6g}")


def rounds(values):
    return [[one["round"], shortened(one["baseline"]), shortened(one["value"])] for one in values]


def is_left_out(one, details):
    if not isinstance(one, dict) or one.get("place") != "detail":
        return False
    service = one.get("service")
    # A README asks with two words, `rss @relay`; a command line with one.
    asked = one["metric"] in details and (not service or f"@{service}" in details)
    return not asked and "@".join(filter(None, (one["metric"], service))) not in details


def is_flat(value):
    inner = value.values() if isinstance(value, dict) else value
    return not any(isinstance(one, dict) or isinstance(one, list) and any(isinstance(it, dict) for it in one) for one in inner)


def written(value, indent="\n"):
    """As JSON; what holds no objects stands in one line."""
    if not isinstance(value, (dict, list)) or is_flat(value):
        return json.dumps(value, ensure_ascii=False)
    inner = indent + " "
    if isinstance(value, list):
        return f"[{inner}{f',{inner}'.join(written(one, inner) for one in value)}{indent}]"
    pairs = (f"{json.dumps(key, ensure_ascii=False)}: {written(one, inner)}" for key, one in value.items())
    return f"{{{inner}{f',{inner}'.join(pairs)}{indent}}}"


def command(host):
    """What was typed, without where it was typed and where the run folder was to be."""
    root = host.get("study_dir", "").partition("/studies/")[0]
    typed = [Path(host["command"][0]).name]
    for before, argument in zip(host["command"], host["command"][1:]):
        if "--out" in (before, argument) or argument.startswith("--out="):
            continue
        argument = argument.replace(f"{root}/", "") if root else argument
        # What lies elsewhere is somebody's own: only its name says something.
        typed.append(re.sub(r"(?<![\w:/])/(?:[^/\s]+/)+", "…/", argument))
    return " ".join(f"'{it}'" if re.search(r"\s", it) else it for it in typed)


def duration_s(journal, began):
    """From the start to the end of the last run; a study that was gone on with later has the pause in it."""
    ends = [0.0]
    for line in filter(str.strip, journal.splitlines()):
        run = json.loads(line)
        if run.get("started") and run.get("phases"):
            ends.append((instant(run["started"]) - began).total_seconds() + sum(run["phases"].values()))
    return round(max(ends))


def keep(run_folder, target, details):
    findings = json.loads((run_folder / "findings.json").read_text(encoding="utf-8"))
    host = findings["host"]
    commit = host.get("commit") or ""
    if not commit or commit.endswith("-dirty"):
        sys.exit(
            f"{run_folder} was measured with sources that no commit holds ({commit or 'no git'}), so nobody could do it again: "
            "commit what has changed, and measure again"
        )
    for key in TOO_LARGE:
        findings.pop(key, None)
    readme = target.parent.parent / "README.md"
    kept = small(findings, set(details) | (words_of(readme) if readme.is_file() else set()))
    kept["kept"] = {
        "command": command(host),
        "duration_s": duration_s((run_folder / "journal.jsonl").read_text(encoding="utf-8"), instant(host["started"])),
    }
    for key in ("study_dir", "command", "hostname", "ports"):
        kept["host"].pop(key, None)
    target.parent.mkdir(exist_ok=True)
    target.write_text(written(kept) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    keep(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
