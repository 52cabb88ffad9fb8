#!/usr/bin/env python3
"""Keeps the findings of a run folder with its study: keep.py RUN_FOLDER studies/NAME/results/DATE.json

Details (services and operations apart) and the values of single rounds are left out, so that what is kept is small and can be read; so
are paths of the machine. Everything else is as the judge wrote it.
"""

import json
import sys


def small(value):
    if isinstance(value, list):
        return [small(one) for one in value if not (isinstance(one, dict) and one.get("place") == "detail")]
    if isinstance(value, dict):
        is_metric = "metric" in value and "verdict" in value
        return {key: small(one) for key, one in value.items() if not (is_metric and key == "rounds")}
    return float(f"{value:.6g}") if isinstance(value, float) else value


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(f"{sys.argv[1]}/findings.json", encoding="utf-8") as source:
        findings = small(json.load(source))
    for key in ("study_dir", "command", "hostname", "ports"):
        findings["host"].pop(key, None)
    with open(sys.argv[2], "w", encoding="utf-8") as kept:
        json.dump(findings, kept, ensure_ascii=False, indent=1)
        kept.write("\n")


if __name__ == "__main__":
    main()
