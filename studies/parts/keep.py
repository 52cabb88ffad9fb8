#!/usr/bin/env python3
"""Keeps the findings of a run folder with its study: keep.py RUN_FOLDER studies/NAME/results/DATE.json [METRIC or METRIC@SERVICE…]

Details (services and operations apart) but for those that are named, and the values of single rounds are left out, so that what is kept
is small and can be read; so are paths of the machine, and what is null or empty. Everything else is as the judge wrote it: floating-point
numbers to six digits, one line for each finding.
"""

import json
import sys


def small(value, details):
    if isinstance(value, list):
        return [small(one, details) for one in value if not is_left_out(one, details)]
    if isinstance(value, dict):
        is_metric = "metric" in value and "verdict" in value
        kept = {key: small(one, details) for key, one in value.items() if not (is_metric and key == "rounds")}
        return {key: one for key, one in kept.items() if one not in (None, "", [], {})}
    return float(f"{value:.6g}") if isinstance(value, float) else value


def is_left_out(one, details):
    if not isinstance(one, dict) or one.get("place") != "detail":
        return False
    return "@".join(filter(None, (one["metric"], one.get("service")))) not in details


def is_flat(value):
    inner = value.values() if isinstance(value, dict) else value
    return not any(isinstance(one, (dict, list)) for one in inner)


def written(value, indent="\n"):
    """As JSON; what holds no objects and lists stands in one line."""
    if not isinstance(value, (dict, list)) or is_flat(value):
        return json.dumps(value, ensure_ascii=False)
    inner = indent + " "
    if isinstance(value, list):
        return f"[{inner}{f',{inner}'.join(written(one, inner) for one in value)}{indent}]"
    pairs = (f"{json.dumps(key, ensure_ascii=False)}: {written(one, inner)}" for key, one in value.items())
    return f"{{{inner}{f',{inner}'.join(pairs)}{indent}}}"


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    with open(f"{sys.argv[1]}/findings.json", encoding="utf-8") as source:
        findings = small(json.load(source), sys.argv[3:])
    for key in ("study_dir", "command", "hostname", "ports"):
        findings["host"].pop(key, None)
    with open(sys.argv[2], "w", encoding="utf-8") as kept:
        kept.write(written(findings) + "\n")


if __name__ == "__main__":
    main()
