"""The rows of all reports: a table of what was printed beside what is true here, the rows that are still undecided, and the forest plot.

  <!-- rows img/forest.svg
  # EaseAgent
  CPU per request, vets | +79 % | 5 % = easeagent/results/2026-11-23.json easeagent cpu_without_jit @vets
  mean TPS, openGauss | −0.1 % | 2 % = -
  -->

`#` begins a report. A row is what was compared, what was printed (with a number in per cent it is drawn as well), the half-width that is wanted, and
the words of the relative difference here; `-`: not measured, or nothing wanted. A row is decided when unladen gives a verdict and the interval is as
narrow as wanted.

  <!-- plot img/agents-python.svg What each agent costs
  # CPU per request
  OpenTelemetry = otel cpu_per_request
  -->

is a drawing alone, of rows that nobody printed, the least first below each `#`.
"""

import math
import re
from dataclasses import dataclass, field
from html import escape

from findings import TOO_FEW, Unknown
from written import Interval, number

WIDTH, RIGHT, TOP, ROW, HEAD = 1030, 762, 64, 22, 34


@dataclass
class Axis:
    """Its left end on the page, its ends as ratios, and where it is labelled. Beyond the ends an arrow stands for the rest."""

    left: int
    low: float
    high: float
    ticks: tuple

    def place(self, ratio):
        """Of a ratio on the axis, which is logarithmic: half and double are equally far from no difference."""
        share = (math.log1p(ratio) - math.log1p(self.low)) / (math.log1p(self.high) - math.log1p(self.low))
        return round(self.left + share * (RIGHT - self.left), 1)

    def clipped(self, ratio):
        return self.place(min(max(ratio, self.low), self.high))


# Of the reports, whose rows save as well as cost; and of agents, which cost.
REPORTS = Axis(336, -0.6, 3.0, (-0.5, -0.25, 0, 0.5, 1.0, 2.0))
COSTS = Axis(210, -0.2, 4.0, (0, 0.25, 0.5, 1.0, 2.0, 3.0))


@dataclass
class Row:
    report: str
    label: str
    printed: str
    wanted: float | None
    verdict: str = "not measured"
    ends: list = field(default_factory=list)

    @property
    def interval(self):
        return Interval(*self.ends, percent=True) if self.ends else None

    @property
    def half(self):
        """Of the interval, as a share."""
        return (self.ends[2] - self.ends[1]) / 2 if self.ends else None

    @property
    def told(self):
        """Whether unladen gives a verdict."""
        return self.verdict in ("costs", "saves", "no difference")

    @property
    def decided(self):
        return self.told and (self.wanted is None or self.half <= self.wanted)

    def goal(self):
        return "–" if self.wanted is None else f"±{self.wanted * 100:g} %"

    def half_width(self):
        return f"±{number(self.half * 100, 0 if self.half >= 0.0995 else 1)} %" if self.ends else "–"


def share(text):
    """`+9.5 %` at the beginning of a text, as a number."""
    found = re.match(r"([+−-]?)(\d+(?:\.\d+)?) %", text)
    return None if not found else float(found[2]) / 100 * (-1 if found[1] in ("−", "-") else 1)


def rows(text, findings):
    """Rows of reports: what, what was printed, what is wanted, and the words."""
    report, found = "", []
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("#"):
            report = line.removeprefix("#").strip()
            continue
        label, separator, words = line.partition(" = ")
        parts = [part.strip() for part in label.split("|")]
        if not separator or len(parts) != 3 or (parts[2] != "-" and share(parts[2]) is None):
            raise Unknown(f"`{line}`: expected `what | what was printed | half-width that is wanted, per cent, or - = words`, or `= -`")
        row = Row(report, parts[0], parts[1], share(parts[2]))
        if words != "-":
            of, rest = findings(words)
            ends, row.verdict = of.interval(rest)
            row.ends = ends or []
        found.append(row)
    return found


def ranked(text, findings):
    """Rows of a plot: a label and the words, the least first below each `#`; what has no interval comes last."""
    lines = [line if line.strip().startswith("#") else line.replace(" = ", " | | - = ", 1) for line in text.splitlines()]
    found = rows("\n".join(lines), findings)
    groups = list(dict.fromkeys(row.report for row in found))
    return sorted(found, key=lambda row: (groups.index(row.report), row.ends[0] if row.ends else math.inf))


def table(rows):
    lines = ["| | printed | here | verdict | half-width | wanted | decided |", "|:--|--:|--:|:--|--:|--:|:--|"]
    report = None
    for row in rows:
        if row.report != report:
            report = row.report
            lines.append(f"| **{report}** | | | | | | |")
        here = f"{row.interval.point()} {row.interval.ends()}" if row.ends else "–"
        decided = "yes" if row.decided else "no" if row.told or row.ends else "–"
        lines.append(f"| {row.label} | {row.printed or '–'} | {here} | {row.verdict} | {row.half_width()} | {row.goal()} | {decided} |")
    return "\n".join(lines)


def undecided(rows):
    """Those without a verdict, those whose interval is too wide, those that nobody measured; by report."""
    decided, told = sum(row.decided for row in rows), sum(row.told for row in rows)
    lines = [f"Of {len(rows)} rows {told} have a verdict, and {decided} {'is' if decided == 1 else 'are'} decided. The others:", ""]
    reports = dict.fromkeys(row.report for row in rows)
    for report in reports:
        texts = "; ".join(f"{row.label}: {state(row)}" for row in rows if row.report == report and not row.decided)
        if texts:
            lines.append(f"- **{report}**: {texts}.")
    return "\n".join(lines)


def state(row):
    if not row.ends:
        return row.verdict
    wanted = "" if row.wanted is None else f", wanted {row.goal()}"
    return f"{'' if row.told else f'{row.verdict}, '}{row.half_width()}{wanted}"


STYLE = """.page{fill:#fff}.ink{fill:#1b1f24}.soft{fill:#57606a}.grid{stroke:#e3e7ec}.zero{stroke:#1b1f24;stroke-width:1.5}
.told{stroke:#0b5c8a;fill:#0b5c8a}.open{stroke:#5f6871;fill:none}.hollow{fill:#fff}.printed{stroke:#a84c06;fill:none}
@media (prefers-color-scheme:dark){.page,.hollow{fill:#0f1216}.ink{fill:#e6e9ed}.soft{fill:#9aa4af}.grid{stroke:#262d35}.zero{stroke:#e6e9ed}
.told{stroke:#63b8e0;fill:#63b8e0}.open{stroke:#9aa4af}.printed{stroke:#f0a35e}}"""


def text_at(x, y, text, style="ink", anchor="start", more=""):
    return f'<text class="{style}" x="{x}" y="{y}" text-anchor="{anchor}"{more}>{escape(text)}</text>'


def arrow(x, y, towards, style):
    return f'<path class="{style}" d="M{x} {y - 4}l{7 * towards} 4l{-7 * towards} 4z"/>'


def diamond(x, y):
    return f'<path class="printed" stroke-width="1.5" d="M{x} {y - 5}l5 5l-5 5l-5 -5z"/>'


def mark(told, x, y):
    return f'<circle class="told" cx="{x}" cy="{y}" r="5"/>' if told else f'<circle class="open hollow" cx="{x}" cy="{y}" r="4.5" stroke-width="1.5"/>'


def drawn(row, y, axis):
    """Interval, estimate, what was printed, and the texts at both sides."""
    parts = [text_at(axis.left - 14, y + 4, row.label, anchor="end")]
    if row.ends:
        value, low, high = row.ends
        style = 'class="told" stroke-width="3"' if row.told else 'class="open" stroke-width="1.5" stroke-dasharray="4 3"'
        parts.append(f'<line {style} x1="{axis.clipped(low)}" x2="{axis.clipped(high)}" y1="{y}" y2="{y}"/>')
        parts += [arrow(axis.clipped(end), y, towards, "told" if row.told else "soft")
                  for end, towards in ((low, -1), (high, 1)) if not axis.low <= end <= axis.high]
        parts.append(mark(row.told, axis.clipped(value), y))
    printed = share(row.printed)
    if printed is not None:
        is_beyond = (printed > axis.high) - (printed < axis.low)
        parts.append(diamond(axis.clipped(printed) - 14 * is_beyond, y))
        if is_beyond:
            parts.append(arrow(axis.clipped(printed) - 7 * is_beyond, y, is_beyond, "soft"))
    here = f"{row.interval.point()} {row.interval.ends()}" if row.ends else ""
    verdict = f"{here}, {row.verdict}" if here else row.verdict
    parts.append(text_at(RIGHT + 16, y + 4, verdict, "ink" if row.told else "soft"))
    return "".join(parts)


def legend(y, printed):
    parts, x = [], 16
    for told, label in ((True, "unladen gives a verdict"), (False, "cannot tell")):
        style = 'class="told" stroke-width="3"' if told else 'class="open" stroke-width="1.5" stroke-dasharray="4 3"'
        parts.append(f'<line {style} x1="{x}" x2="{x + 40}" y1="{y}" y2="{y}"/>{mark(told, x + 20, y)}{text_at(x + 48, y + 4, label, "soft")}')
        x += 230 if told else 150
    if printed:
        parts.append(f"{diamond(x + 6, y)}{text_at(x + 18, y + 4, 'what the report printed, one run a side or a few', 'soft')}")
    parts.append(text_at(16, y + 22, "Line: exact interval of at least 95 %, from the rounds. Logarithmic axis: half and double are equally far from 0. An arrow: beyond the axis.", "soft"))
    return "".join(parts)


def drawing(rows, title, axis=REPORTS):
    reports = list(dict.fromkeys(row.report for row in rows))
    bottom = TOP + len(reports) * HEAD + len(rows) * ROW + 8
    height = bottom + 76
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
        f'font-family="system-ui, -apple-system, \'Segoe UI\', Roboto, \'DejaVu Sans\', sans-serif" font-size="12.5">',
        f"<title>{title}</title>", f"<style>{STYLE}</style>", f'<rect class="page" width="{WIDTH}" height="{height}"/>',
        text_at(16, 28, title, more=' font-size="16" font-weight="600"'),
    ]
    for tick in axis.ticks:
        x, label = axis.place(tick), f"{number(tick * 100, 0, True)} %"
        parts.append(f'<line class="{"grid" if tick else "zero"}" x1="{x}" x2="{x}" y1="{TOP - 4}" y2="{bottom}"/>')
        parts += [text_at(x, y, label, "soft", "middle") for y in (TOP - 10, bottom + 16)]
    y, report = TOP, None
    for row in rows:
        if row.report != report:
            report = row.report
            parts.append(text_at(16, y + 24, report, more=' font-weight="600"'))
            y += HEAD
        parts.append(drawn(row, y + ROW / 2, axis))
        y += ROW
    parts += [legend(bottom + 40, any(row.printed for row in rows)), "</svg>"]
    return "\n".join(parts) + "\n"
