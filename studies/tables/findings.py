"""What words ask of kept findings: `otel cpu_without_jit @vets ms` is the text that a table or a sentence shows.

The words stand in any order. Who: a variant, `baseline`, or `ladder:NAME:VARIANT` (a step). What: a metric, with `@service`. How: one of
the aspects below, by default the difference with its interval and what the verdict makes of it. Then a unit, `.2` for so many decimals,
`optional` for "–" where there is nothing. What the findings refuse is written as "no verdict", whatever is asked for.
"""

import json
import re
from functools import lru_cache
from pathlib import Path

import measured
from written import UNITS, Interval, Unknown, decimals, factor, number, percent, plain

TOO_FEW = "too few rounds"


@lru_cache(maxsize=None)
def load(path):
    if not Path(path).is_file():
        raise Unknown(f"there is no file {path}")
    return Findings(json.loads(Path(path).read_text(encoding="utf-8")))


class Findings:
    def __init__(self, content):
        self.all = content
        self.variants = {it["name"]: it for it in content["variants"]}
        self.metrics = {it["metric"] for variant in content["variants"] for it in variant["metrics"]}

    def text(self, words):
        """What the words ask for."""
        asked = Asked(self, words)
        try:
            return asked.text()
        except Unknown:
            if asked.optional:
                return "–"
            raise

    def interval(self, words):
        """Relative difference and ends, and the verdict; `None` instead of numbers where there is none. For the forest plot."""
        asked = Asked(self, words)
        finding = asked.finding()
        verdict = asked.refused(finding) and "no verdict" or finding["verdict"].replace("_", " ")
        ends = [finding.get(key) for key in ("ratio", "ratio_low", "ratio_high")]
        if verdict == "no verdict" or None in ends:
            return None, verdict if verdict == "no verdict" else TOO_FEW
        return ends, verdict

    def lacks(self):
        """What a series that is kept today has and this one has not."""
        host, metrics = self.all["host"], [it for variant in self.all["variants"] for it in variant["metrics"]]
        missing = []
        if not any(it.get("rounds") for it in metrics):
            missing.append("values of single rounds")
        if not host.get("commit"):
            missing.append("commit")
        elif host["commit"].endswith("-dirty"):
            missing.append("a clean commit")
        if not self.all.get("runs"):
            missing.append("list of runs")
        missing += [key for key in ("duration", "command") if not any(it.startswith(key) for it in self.all.get("kept", {}))]
        return missing


class Asked:
    """Words, sorted by what they are."""

    def __init__(self, findings, words):
        self.findings, self.words = findings, words
        self.who = self.metric = self.aspect = self.unit = self.places = self.service = None
        self.optional = False
        for word in words.split():
            self._sort(word)

    def _sort(self, word):
        if word == "optional":
            self.optional = True
        elif word.startswith("@"):
            self._set("service", word[1:])
        elif re.fullmatch(r"\.\d", word):
            self._set("places", int(word[1:]))
        elif word in UNITS:
            self._set("unit", word)
        elif word == "baseline" or word in self.findings.variants or word.startswith("ladder:"):
            self._set("who", word)
        elif word in self.findings.metrics:
            self._set("metric", word)
        elif word.split(":")[0] in ASPECTS:
            self._set("aspect", word)
        else:
            raise Unknown(
                f"`{word}` is no variant ({', '.join(self.findings.variants)}), no metric ({', '.join(sorted(self.findings.metrics))}), "
                f"no aspect ({', '.join(ASPECTS)}) and no unit ({', '.join(UNITS)}) of these findings"
            )

    def _set(self, kind, value):
        if getattr(self, kind) is not None:
            raise Unknown(f"`{self.words}` names two of a kind: `{getattr(self, kind)}` and `{value}`")
        setattr(self, kind, value)

    def text(self):
        name, *arguments = (self.aspect or "estimate").split(":")
        return ASPECTS[name](self, *arguments)

    def variant(self):
        if self.who is None:
            raise Unknown(f"`{self.words}` names no variant")
        if self.who.startswith("ladder:"):
            return self.findings.variants[self.who.split(":")[-1]]
        return self.findings.variants[self.who]

    def finding(self):
        if self.metric is None:
            raise Unknown(f"`{self.words}` names no metric")
        if self.who == "baseline":
            # Every variant has been held against the same baseline, but for a matrix, which has one for each cell.
            if any(it.get("cell") for it in self.findings.variants.values()):
                raise Unknown(f"`{self.words}`: a matrix has a baseline for each cell; name the variant and `bare`")
            places = [variant["metrics"] for variant in self.findings.variants.values()]
        else:
            places = [self._step()["metrics"] if (self.who or "").startswith("ladder:") else self.variant()["metrics"]]
        for metrics in places:
            for one in metrics:
                if one["metric"] == self.metric and one.get("service") == self.service and not one.get("operation"):
                    return one
        of = f" of service {self.service}" if self.service else ""
        raise Unknown(f"`{self.words}`: the findings have no {self.metric}{of} there; `studies/parts/keep.py` keeps what a README asks for")

    def _step(self):
        _, name, to = self.who.split(":")
        for ladder in self.findings.all.get("ladders", []):
            for step in ladder["steps"]:
                if (ladder["name"], step["to"]) == (name, to):
                    return step
        raise Unknown(f"`{self.who}`: no ladder has such a step")

    def refused(self, finding):
        return finding.get("refused") or (self.who != "baseline" and self.variant().get("refused"))

    def side(self):
        """Where numbers stand that are no metrics, and on which side: every variant holds the bare service's beside its own."""
        if self.who == "baseline":
            return next(iter(self.findings.variants.values())), "baseline"
        return self.variant(), "value"

    def ledger(self):
        """The books of the spans; `None` of a bare service, and of a variant that exports nothing."""
        return None if self.who == "baseline" else self.variant().get("ledger")

    def scale(self, finding):
        return factor(finding["unit"], self.unit)

    def whole(self, finding):
        return finding["unit"] == "count"


def _estimate(asked, relative=False):
    finding = asked.finding()
    if asked.who == "baseline":
        return "" if relative else _of(asked, "baseline")
    if asked.refused(finding):
        return "no verdict"
    keys = ["ratio", "ratio_low", "ratio_high"] if relative else ["difference", "difference_low", "difference_high"]
    if finding.get("difference") is None:
        return TOO_FEW
    ends = [finding.get(key) for key in keys]
    if None in ends:
        raise Unknown(f"`{asked.words}` has no relative difference: its baseline is 0")
    scale = 1.0 if relative else asked.scale(finding)
    written = Interval(*ends, scale, asked.places, asked.whole(finding) and not relative, relative)
    if finding["verdict"] in ("costs", "saves"):
        return str(written)
    if written.is_point() and finding["verdict"] == "no_difference":
        return "no difference"
    return f"{finding['verdict'].replace('_', ' ')} {written.ends()}{written.unit}"


def _part(asked, key, form):
    """A part of the interval alone; `%` at the end of the aspect's name asks for the relative one."""
    finding = asked.finding()
    if asked.refused(finding):
        return "no verdict"
    ends = [finding.get(it) for it in (key, f"{key}_low", f"{key}_high")]
    if None in ends:
        raise Unknown(f"`{asked.words}` has no interval")
    relative = key == "ratio"
    return form(Interval(*ends, 1.0 if relative else asked.scale(finding), asked.places, asked.whole(finding) and not relative, relative))


def _half(interval):
    return number((interval.high - interval.low) / 2, interval.places) + interval.unit


def _of(asked, key):
    finding = asked.finding()
    if finding.get(key) is None:
        raise Unknown(f"`{asked.words}`: the findings have no {key} there")
    value = finding[key] * asked.scale(finding)
    return plain(value, asked.places, finding["unit"] in ("count", "1/s"))


def _delta(asked, relative=False):
    """Of the medians, without an interval: for series of too few rounds."""
    finding = asked.finding()
    if asked.who == "baseline":
        return ""
    if relative:
        return percent(finding["value"] / finding["baseline"] - 1, signed=True)
    value = (finding["value"] - finding["baseline"]) * asked.scale(finding)
    return number(value, decimals(value, None, 2) if asked.places is None else asked.places, signed=True)


def _rounds(asked, side, which=None):
    """In one round (`round:3`), the mean of all (`round:mean`), or the least and the largest."""
    finding = asked.finding()
    if which == "mean":
        return _of(asked, ("baseline_mean", "value_mean")[side])
    if not finding.get("rounds"):
        raise Unknown(f"`{asked.words}`: the findings hold no values of single rounds; they were kept before `keep.py` kept them")
    values = {number_: (bare, value)[side] * asked.scale(finding) for number_, bare, value in finding["rounds"]}
    if which is not None:
        return plain(values[int(which)], asked.places, asked.whole(finding))
    low, high = min(values.values()), max(values.values())
    places = asked.places if asked.places is not None else decimals(high, (high - low) / 2)
    return f"{number(low, places)} to {number(high, places)}"


def _ledger(asked, form):
    ledger = asked.ledger()
    return "" if not ledger else form(ledger)


def _per_span(asked, ledger):
    ends = [ledger.get(f"cpu_us_per_delivered_span{it}") for it in ("", "_low", "_high")]
    if None in ends:
        raise Unknown(f"`{asked.words}`: no cost per span was found")
    interval = Interval(*ends, factor("us", asked.unit), asked.places)
    return f"{interval.point(signed=False)} {interval.ends()}"


def _cost(asked, metric="cpu_per_request"):
    """What a request costs more, µs: the estimate, or of too few rounds the difference of the medians."""
    asked.metric = metric
    finding = asked.finding()
    return finding["value"] - finding["baseline"] if finding.get("difference") is None else finding["difference"]


def _with_backend(asked):
    """The same, collector and storage included."""
    total = _cost(asked)
    for metric in ("collector_cpu", "storage_cpu"):
        asked.metric = metric
        try:
            total += asked.finding()["value"]
        except Unknown:
            pass
    return total


def _over_spans(asked, ledger, cost, delivered):
    spans = ledger["spans_per_request"] * (ledger["saved"] / ledger["wanted"] if delivered else 1)
    return plain(cost / spans, asked.places)


def _of_a_core(asked):
    """µs per request times requests per second: per cent of a core."""
    per_request = asked.finding()["value"]
    asked.metric = "throughput"
    return f"{number(per_request * asked.finding()['value'] / 1e4, 0)} %"


def _said(asked, name):
    held, side = asked.side()
    for one in held.get("said", []):
        if one["name"] == name:
            return plain(one[side], asked.places, whole=True)
    raise Unknown(f"`{asked.words}`: nobody said `{name}`")


def _answers(asked, request, quantile):
    held, side = asked.side()
    for one in held.get("answers", []):
        is_it = one["from"] == "iteration" and "request" not in one if request == "iteration" else one.get("request") == request
        if is_it and "kind" not in one:
            return plain(one[side][f"{quantile}_us"]["value"] * factor("us", asked.unit), asked.places)
    raise Unknown(f"`{asked.words}`: the findings have no answers to `{request}`")


def _sampled(asked, request, what, quantile=None, which=None):
    """What spans tell: `sampled:result:from_spans:p50:3` in round 3, `…:mean` the mean of the rounds; `from_clients`, `error`, `sampling`,
    `spans`."""
    for one in asked.findings.all.get("sampled", []):
        if (one["variant"], one["request"]) != (asked.who, request):
            continue
        if what in ("error", "sampling"):
            interval = Interval(*(one[f"{what}_{quantile}"][it] for it in ("value", "low", "high")), places=asked.places, percent=True)
            return interval.point(False)[:-2] if interval.is_point() else f"{interval.point(False)[:-2]} {interval.ends()}"
        if what in ("spans", "requests"):
            return plain(one[what], whole=True)
        if which in (None, "mean"):
            place, what = one, what if which is None else f"mean_{what}"
        else:
            place = next(it for it in one["rounds"] if it["round"] == int(which))
        return plain(place[what][f"{quantile}_us"] * factor("us", asked.unit), asked.places)
    raise Unknown(f"`{asked.words}`: spans of {asked.who} tell nothing of `{request}`")


def _missing(ledger):
    traces = ledger["complete"] + ledger["partial"] + ledger["missing"]
    return percent(ledger["missing"] / traces)


def _lost_where(ledger):
    """`17: queue 12, 5 unexplained`: what the agent said of where; the rest is known to be missing, but not from where."""
    if not ledger["lost"] and not ledger["unexplained"]:
        return "0"
    told = [f"{name} {number(spans, 0)}" for name, spans in ledger.get("by_stage", {}).items()]
    untold = ledger["lost"] - sum(ledger.get("by_stage", {}).values())
    told += [f"not told {number(untold, 0)}"] if untold else []
    told += [f"unexplained {number(ledger['unexplained'], 0)}"] if ledger["unexplained"] else []
    return f"{number(ledger['lost'], 0)}: {', '.join(told)}"


def _arrived(ledger):
    """Of requests that rightly make different numbers of spans only the traces can be held against what is wanted."""
    if not ledger["wanted"]:
        return "none wanted"
    if (ledger["spans_per_request"] % 1 or ledger["saved"] > ledger["wanted"]) and ledger.get("complete"):
        return f"{ledger['saved']:,} spans, {ledger['complete']:,} of {ledger['complete'] + ledger['missing']:,} traces"
    return f"{ledger['saved']:,} of {ledger['wanted']:,}"


def count(key):
    return lambda asked: _ledger(asked, lambda ledger: number(ledger[key], 0))


ASPECTS = {
    # Of a finding.
    "estimate": _estimate,
    # Of the bare service nothing, where the estimate gives its median.
    "difference": lambda asked: "" if asked.who == "baseline" else _estimate(asked),
    "ratio": lambda asked: _estimate(asked, relative=True),
    "point": lambda asked: _part(asked, "difference", Interval.point),
    "point%": lambda asked: _part(asked, "ratio", Interval.point),
    "interval": lambda asked: _part(asked, "difference", Interval.ends),
    "interval%": lambda asked: _part(asked, "ratio", Interval.ends),
    "half": lambda asked: _part(asked, "difference", _half),
    "half%": lambda asked: _part(asked, "ratio", _half),
    "bare": lambda asked: _of(asked, "baseline"),
    "value": lambda asked: _of(asked, "baseline" if asked.who == "baseline" else "value"),
    "mean": lambda asked: _of(asked, "baseline_mean" if asked.who == "baseline" else "value_mean"),
    "delta": _delta,
    "delta%": lambda asked: _delta(asked, relative=True),
    "needs": lambda asked: _of(asked, "rounds_needed"),
    "round": lambda asked, which: _rounds(asked, 1, which),
    "bare-round": lambda asked, which: _rounds(asked, 0, which),
    "range": lambda asked: _rounds(asked, 1),
    "bare-range": lambda asked: _rounds(asked, 0),
    "of-a-core": _of_a_core,
    # Of the spans.
    "spans-per-request": lambda asked: _ledger(asked, lambda it: plain(it["spans_per_request"], asked.places, whole=True)),
    "wanted": count("wanted"),
    "arrived": count("saved"),
    "lost": count("lost"),
    "unexplained": count("unexplained"),
    "duplicates": count("duplicates"),
    "arrived-of-wanted": lambda asked: _ledger(asked, _arrived),
    "lost-where": lambda asked: _ledger(asked, _lost_where),
    "lost%": lambda asked: _ledger(asked, lambda it: percent(it["loss_ratio"]) if it["lost"] else "0"),
    "unexplained%": lambda asked: _ledger(asked, lambda it: percent(it["unexplained"] / it["wanted"])),
    "missing-traces%": lambda asked: _ledger(asked, _missing),
    "per-span": lambda asked: _ledger(asked, lambda it: _per_span(asked, it)),
    "per-span-made": lambda asked: _ledger(asked, lambda it: _over_spans(asked, it, _cost(asked), delivered=False)),
    "per-span-delivered": lambda asked: _ledger(asked, lambda it: _over_spans(asked, it, _cost(asked), delivered=True)),
    "per-span-whole": lambda asked: _ledger(asked, lambda it: _over_spans(asked, it, _with_backend(asked), delivered=True)),
    # Of what programs and requests said.
    "said": _said,
    "answers": _answers,
    "sampled": _sampled,
    # Of the series.
    "requests": lambda asked: measured.load(asked, "requests"),
    "failed": lambda asked: measured.load(asked, "errors"),
    "window": lambda asked: measured.load(asked, "window_s"),
    "pacing": measured.pacing,
    "level": measured.level,
    "runs": lambda asked: number(len(asked.findings.all["runs"]), 0),
    "rounds": lambda asked: number(asked.findings.all["rounds"], 0),
    "comparisons": lambda asked: number(asked.findings.all["comparisons"]["made"], 0),
    "by-chance": lambda asked: number(asked.findings.all["comparisons"]["expected_by_chance"], 0),
    "notice": measured.notice,
    # Of where it was measured, and with what.
    "begun": measured.begun,
    "host": measured.host,
    "unladen": measured.unladen,
    "pin": measured.pin,
    "toolchain": measured.toolchain,
}
