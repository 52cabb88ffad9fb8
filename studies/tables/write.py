#!/usr/bin/env python3
"""Writes the numbers of the studies' READMEs, and of what quotes them in docs, from the findings that are committed beside them.

  make tables                          write
  studies/tables/write.py --check       change nothing, fail if a README differs from what its findings give
  studies/tables/write.py --words FILE  say what a README asks for

How a marker looks: markers.py. What the words mean: findings.py.
"""

import os
import sys
from pathlib import Path

from findings import Unknown
from markers import Page, words_of

STUDIES = Path(__file__).resolve().parent.parent


def pages(studies):
    """Every study's page, the one over all, and those of the book that show a study's numbers."""
    book = sorted((studies.parent / "docs").rglob("*.md"))
    return [*sorted(studies.glob("*/README.md")), studies / "README.md", *(it for it in book if "<!-- findings " in it.read_text(encoding="utf-8"))]


def short(text, width=160):
    text = " ".join(text.split())
    return text if len(text) <= width else f"{text[:width]}…"


def first_difference(old, new):
    """The first line in which two blocks differ."""
    for one, other in zip(old.splitlines(), new.splitlines()):
        if one != other:
            return one, other
    return old.splitlines()[-1], new.splitlines()[-1]


def main(arguments, studies=None):
    # Short in messages, wherever one is called from.
    studies = studies or Path(os.path.relpath(STUDIES))
    if arguments[:1] == ["--words"] and len(arguments) == 2:
        print("\n".join(sorted(words_of(arguments[1]))))
        return 0
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    check, differs = bool(arguments), 0
    for path in pages(studies):
        page = Page(path)
        try:
            texts = {path: page.written(), **page.drawings}
        except Unknown as error:
            print(error, file=sys.stderr)
            return 1
        for line, old, new in page.differences if check else []:
            one, other = first_difference(old, new)
            print(f"{path}:{line}: says\n    {short(one)}\n  and its findings give\n    {short(other)}", file=sys.stderr)
        for file, text in texts.items():
            if file.is_file() and file.read_text(encoding="utf-8") == text:
                continue
            differs += 1
            if check:
                print(f"{file} differs from what its findings give: run `make tables`, look at the difference, commit it", file=sys.stderr)
            else:
                file.parent.mkdir(exist_ok=True)
                file.write_text(text, encoding="utf-8")
                print(f"wrote {file}", file=sys.stderr)
    return 1 if check and differs else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
