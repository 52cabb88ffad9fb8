"""Markdown between markers, written from kept findings.

  <!-- findings results/2026-11-23.json -->            whose numbers all that follows shows, until the next such line
  <!-- = otel cpu_per_request ms -->0.98<!-- / -->     a number in a sentence or a cell; `results/other.json` among the words: of those

  <!-- table                                           a table: the head, then a row in each line
  | | bare = baseline | OpenTelemetry = otel | lost where
  CPU per request, ms = cpu_per_request ms
  spans that arrived = arrived-of-wanted | nowhere
  -->
  …
  <!-- end -->

  <!-- ranked cpu_per_request                          a table whose rows come by this metric, the least first; what has no number, last. Rows of
  …                                                    the bare service and the placebo stay above

  <!-- series -->…<!-- end -->                         what is kept of the study, what each series lacks, and what unladen warned of
  <!-- rows img/forest.svg … -->…<!-- end -->          see `forest.py`
  <!-- plot img/agents.svg TITLE … -->…<!-- end -->    likewise
  <!-- undecided -->…<!-- end -->

  <!-- waiting for results                             what is to stand there as soon as that folder has findings: its markers are written with
  <!~~ findings results/NEWEST ~~>                     `~~`, as comments do not nest, and NEWEST is the newest file. `make tables` then puts the
  …                                                    text in the place of the comment
  -->

A cell of a table is what the words of its row and of its column ask for together (`findings.py`). A column without ` = ` holds text, which stands
in each row's label, between `|`: what comes first goes into the first such column. With `*=jdk` among the words of a row or a column, `jdk` stands for
`*` in all words of its cells.
"""

import math
import re
from pathlib import Path

import forest
import series
from findings import Unknown, load

MARK = re.compile(
    r"<!-- (?P<kind>table|ranked|series|rows|plot|undecided)\b(?P<spec>.*?)-->(?P<block>.*?)<!-- end -->"
    r"|<!-- findings (?P<findings>.*?) -->"
    r"|<!-- = (?P<words>.*?) -->.*?<!-- / -->",
    re.S,
)
# What must not stand between the two ends of a block, or outside of all marks.
STRAY = re.compile(r"<!-- (table|ranked|series|rows|plot|undecided|findings|=|end|/)(?= )")

WAITING = re.compile(r"<!-- waiting for (?P<folder>\S+)\n(?P<text>.*?)\n-->", re.S)

INTERVAL = re.compile(r"\[[−-]?\d[\d.,]*, [−-]?\d[\d.,]*\]")


class Page:
    """A Markdown file with markers."""

    def __init__(self, path):
        self.path, self.folder = path, path.parent
        self.old = came(path.read_text(encoding="utf-8"), path.parent)
        self.of = None
        # The line that is being written, for errors; what differs; drawings by path.
        self.line, self.differences, self.drawings = 1, [], {}
        self.forest_rows = []
        # Pages of studies, and docs/agents.md; elsewhere in the book there are examples, too.
        self.is_all_measured = path.name == "README.md" or path.parent.name == "docs"

    def written(self):
        """The page as its findings give it."""
        done, position = [], 0
        for mark in MARK.finditer(self.old):
            done.append(self.old[position : mark.start()])
            self.line = self.old.count("\n", 0, mark.start()) + 1
            try:
                new = self._mark(mark)
            except (Unknown, ValueError, KeyError, StopIteration) as error:
                raise Unknown(f"{self.path}:{self.line}: {error}") from error
            if new != mark[0]:
                self.differences.append((self.line, mark[0], new))
            done.append(new)
            position = mark.end()
            self._no_stray(self.old[:mark.start()], done[-2])
        done.append(self.old[position:])
        self._no_stray(self.old, done[-1])
        return "".join(done)

    def _no_stray(self, before, text):
        """A marker without its other end is a mistake, not a comment; an interval that nothing wrote was typed."""
        if stray := STRAY.search(text):
            line = before.count("\n") - text.count("\n", stray.start()) + 1
            raise Unknown(f"{self.path}:{line}: `<!-- {stray[1]}` stands alone, its other end is missing")
        for number, line in enumerate(text.splitlines() if self.is_all_measured else []):
            if (typed := INTERVAL.search(line)) and "not kept" not in line:
                line_number = before.count("\n") - text.count("\n") + number + 1
                raise Unknown(
                    f"{self.path}:{line_number}: the interval {typed[0]} is typed. Ask the findings for it (`<!-- = WORDS -->?<!-- / -->`), or say in the same "
                    "line that what it was measured with is not kept"
                )

    def _mark(self, mark):
        if mark["findings"]:
            self.of = mark["findings"]
            self.findings("")
            return mark[0]
        if mark["words"]:
            if not self.old[: mark.start()].rpartition("\n")[2].strip(" -*>"):
                raise Unknown("a line that begins with a marker is HTML to Markdown, not text: let a word stand before it")
            return f"<!-- = {mark['words']} -->{self.text(mark['words'])}<!-- / -->"
        if STRAY.search(mark["block"]):
            raise Unknown(f"`<!-- {mark['kind']}` has no `<!-- end -->` before the next marker")
        write = getattr(self, f"_{mark['kind']}")
        return f"<!-- {mark['kind']}{mark['spec']}-->\n\n{write(mark['spec'])}\n\n<!-- end -->"

    def findings(self, words):
        """Whose findings the words speak of, and the words without that."""
        files = [word for word in words.split() if word.endswith(".json")]
        if len(files) > 1:
            raise Unknown(f"`{words}` names two files")
        name = files[0] if files else self.of
        if name is None:
            raise Unknown("which findings? Write `<!-- findings results/DATE.json -->` above")
        return load(self.folder / name), " ".join(word for word in words.split() if word not in files)

    def text(self, words):
        findings, rest = self.findings(words)
        return findings.text(rest)

    def _table(self, spec):
        head, *rows = [line.strip() for line in spec.strip().splitlines() if line.strip()]
        columns = [label_and_words(cell) for cell in cells(head)]
        lines = [row(label for label, _ in columns), f"|{'|'.join(':--' if words is None else '--:' for _, words in columns)}|"]
        for line in rows:
            label, row_words = label_and_words(line)
            texts = iter(cells(label))
            lines.append(row(
                next(texts, "") if words is None else self._cell(row_words, words) if row_words is not None else "" for _, words in columns
            ))
            if left := list(texts):
                raise Unknown(f"row `{line}` has more texts ({', '.join(left)}) than the table has columns without ` = `")
        return "\n".join(lines)

    def _ranked(self, spec):
        by, _, spec = spec.strip().partition("\n")
        head, *rows = [line for line in spec.splitlines() if line.strip()]
        above = [line for line in rows if re.search(r" = (baseline|placebo)\b", line)]

        def place(line):
            words = re.sub(r"(?:^| )\*=\S+", "", label_and_words(line)[1])
            findings, rest = self.findings(f"{words} {by}")
            ends, _ = findings.interval(rest)
            return ends[0] if ends else math.inf

        return self._table("\n".join([head, *above, *sorted((line for line in rows if line not in above), key=place)]))

    def _cell(self, of_row, of_column):
        words = f"{of_row} {of_column}"
        if star := re.search(r"(?:^| )\*=(\S+)", words):
            words = words.replace(star[0], "").replace("*", star[1])
        return self.text(words)

    def _series(self, _):
        return series.table(self.folder)

    def _rows(self, spec):
        name, _, lines = spec.strip().partition("\n")
        self.forest_rows = forest.rows(lines, self.findings)
        title = "Five reports, measured again: relative difference to the bare service"
        self.drawings[self.folder / name] = forest.drawing(self.forest_rows, title)
        return forest.table(self.forest_rows)

    def _plot(self, spec):
        """The image alone; it says nothing that the table beside it does not say."""
        first, _, lines = spec.strip().partition("\n")
        name, _, title = first.partition(" ")
        self.drawings[self.folder / name] = forest.drawing(forest.ranked(lines, self.findings), title, forest.COSTS)
        return f"![{title}]({name})"

    def _undecided(self, _):
        return forest.undecided(self.forest_rows)


def came(text, folder, at_once=False):
    """A page with what waited for findings that have come; `at_once`: with what still waits, too."""

    def one(waiting):
        files = sorted((folder / waiting["folder"]).glob("*.json"))
        if not files and not at_once:
            return waiting[0]
        newest = files[-1].name if files else "NEWEST"
        return waiting["text"].replace("<!~~", "<!--").replace("~~>", "-->").replace("NEWEST", newest)

    return WAITING.sub(one, text)


def cells(line):
    """Of a line of a table; the bars at both ends may be left out."""
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def label_and_words(text):
    label, separator, words = text.partition(" = ")
    return (label.strip(), words.strip()) if separator else (text.strip(), None)


def row(texts):
    return f"| {' | '.join(texts)} |".replace("|  |", "| |").replace("|  |", "| |")


def words_of(readme):
    """All words that a README asks for: `keep.py` keeps the details that are among them."""
    readme = Path(readme)
    words = set()
    for mark in MARK.finditer(came(readme.read_text(encoding="utf-8"), readme.parent, at_once=True)):
        words.update(re.findall(r"\S+", mark["words"] or re.match(r"<!-- (.*?)-->", mark[0], re.S)[1]))
    return words
