#!/usr/bin/env python3
"""Keeps the findings of a run folder with its study: keep.py RUN_FOLDER studies/NAME/results/DATE.json [METRIC or METRIC@SERVICE…]

What is kept is small and can be read: everything that the judge prints and the value of every round of it, as `[round, baseline, variant]`; of the
details (services and operations apart) those that the README of the study and the pages of the book ask for, and those that are named; the command
and how long it took; of the packages that are asked for (`pin:NAME`) the versions that the commit pins, in the files that the README names:
`<!-- pins ../../subjects/FILE… -->`. What is null or empty is left out, and so are paths of the machine. Everything else is as the judge wrote it, one
line for each finding: floating-point numbers to eight digits, the values of rounds to six. (With six, a number that lies almost halfway is rounded another
way than the judge rounds it.) Findings of sources that no commit holds are refused: nobody could measure them again.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

STUDIES = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(STUDIES / "tables"))
from markers import came, words_of  # noqa: E402
from write import pages  # noqa: E402
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


def shortened(number, digits=8):
    return float(f"{number:.{digits}g}")


def rounds(values):
    return [[one["round"], shortened(one["baseline"], 6), shortened(one["value"], 6)] for one in values]


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


def asked_for(target):
    """The words of the pages that show findings of this folder."""
    studies = target.resolve().parent.parent.parent
    words = set()
    for page in filter(Path.is_file, pages(studies)):
        named = re.findall(r"<!-- findings (\S+) -->", came(page.read_text(encoding="utf-8"), page.parent, at_once=True))
        if page.resolve() == target.resolve().parent.parent / "README.md" or any((page.parent / it).resolve().parent == target.resolve().parent for it in named):
            words |= words_of(page)
    return words


def versions(text, name):
    """What a file pins, by name: a `package-lock.json`, a `go.mod` or a script with modules of Go, a `pom.xml` (artifacts, and `NAME` of
    its properties `NAME.version`), or requirements of pip."""
    if name.endswith((".mod", ".sh")):
        return dict(re.findall(r"(?:^\t|=)([\w./-]+\.[\w./-]+)[ @]v(\S+)", text, re.M))
    if name.endswith("pom.xml"):
        artifacts = re.findall(r"<artifactId>([^<]+)</artifactId>\s*<version>([^<$]+)<", text)
        return dict(artifacts + re.findall(r"<([\w.-]+)\.version>([^<$]+)<", text))
    if not name.endswith(".json"):
        return dict(re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.M))
    packages = json.loads(text)["packages"]
    return {path.removeprefix("node_modules/"): it["version"] for path, it in packages.items() if path.count("node_modules/") == 1}


def pins(readme, commit, words):
    """The versions that pages ask for, as that commit has them."""
    wanted = {word.removeprefix("pin:").removeprefix("*=") for word in words if word.startswith(("pin:", "*="))}
    found = {}
    for name in " ".join(re.findall(r"<!-- pins (.*?) -->", readme.read_text(encoding="utf-8"))).split():
        shown = subprocess.run(["git", "show", f"{commit}:./{name}"], cwd=readme.parent, capture_output=True, text=True)
        if shown.returncode:
            sys.exit(f"{readme} names {name} for the versions, and commit {commit} has no such file: mend the path")
        # Agents bring the packages of others along, in versions of their own: the file that is named first is the package's.
        found = versions(shown.stdout, name) | found
    return {name: version for name, version in sorted(found.items()) if name in wanted}


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
    words = asked_for(target)
    kept = small(findings, set(details) | words)
    kept["kept"] = {
        "command": command(host),
        "duration_s": duration_s((run_folder / "journal.jsonl").read_text(encoding="utf-8"), instant(host["started"])),
    }
    if readme.is_file() and (pinned := pins(readme, commit, words)):
        kept["kept"]["pins"] = pinned
    for key in ("study_dir", "command", "hostname", "ports"):
        kept["host"].pop(key, None)
    target.parent.mkdir(exist_ok=True)
    target.write_text(written(kept) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    keep(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
