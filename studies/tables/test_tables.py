"""What `make tables` writes, from findings that are small enough to see through: python3 -m unittest discover -s studies/tables"""

import contextlib

import io
import json
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "parts")]
import findings  # noqa: E402
import forest  # noqa: E402
import keep  # noqa: E402
import write  # noqa: E402
from written import Interval, number, percent, plain  # noqa: E402



def finding(metric, unit, baseline, value, difference, ratio, verdict, **more):
    keys = ("difference", "difference_low", "difference_high", "ratio", "ratio_low", "ratio_high")
    numbers = dict(zip(keys, [*(difference or [None] * 3), *(ratio or [None] * 3)]))
    return {
        "metric": metric, "title": metric, "place": "table", "unit": unit, "baseline": baseline, "value": value, "level": 0.95752,
        "verdict": verdict, **{key: it for key, it in numbers.items() if it is not None}, **more,
    }


def study():
    """One variant that costs, one that cannot be told, one that is refused."""
    cpu = finding("cpu", "us", 2380.78, 3100.79, (984.081, 611.148, 1450.46), (0.4525, 0.269, 0.6643), "costs")
    vets = finding("cpu", "us", 1416.2, 1997.4, (757.7, 482.7, 1129.2), (0.58, 0.32, 0.85), "costs", service="vets")
    classes = finding("classes", "count", 30067.0, 39875.0, (9808.0, 9803.0, 9815.0), (0.326, 0.326, 0.3265), "costs", place="detail")
    memory = finding("rss", "B", 627438000.0, 818139000.0, (191857000.0, 183994000.0, 197421000.0), (0.3, 0.29, 0.31), "costs")
    unclear = finding("cpu", "us", 2380.78, 2400.0, (20.0, -110.0, 440.0), (0.01, -0.05, 0.2), "cannot_tell")
    same = finding("rss", "B", 627438000.0, 627438000.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), "no_difference")
    p90 = finding("p90", "us", 10.0, 20.0, (10.0, 9.0, 11.0), (1.0, 0.9, 1.1), "cannot_tell", refused="the machine was full")
    ledger = {"wanted": 1000, "saved": 750, "lost": 200, "loss_ratio": 0.2, "unexplained": 50, "spans_per_request": 10.0,
              "cpu_us_per_delivered_span": 39.0012, "cpu_us_per_delivered_span_low": 21.7583, "cpu_us_per_delivered_span_high": 62.4407}
    return {
        "rounds": 12, "load": {"requests": 174720, "errors": 0}, "comparisons": {"made": 9, "expected_by_chance": 0.4},
        "variants": [
            {"name": "otel", "valid_runs": 12, "runs": 13, "metrics": [cpu, vets, classes, memory, p90], "ledger": ledger},
            {"name": "placebo", "valid_runs": 12, "runs": 12, "metrics": [unclear, same]},
            {"name": "blind", "valid_runs": 12, "runs": 12, "refused": "other work", "metrics": [cpu]},
        ],
        "ladders": [{"name": "steps", "steps": [{"from": "baseline", "to": "otel", "metrics": [unclear]}]}],
        "notices": [{"code": "runs_void", "severity": "warning", "text": "otel: 1 of 13 runs do not count"},
                    {"code": "too_few", "severity": "note", "text": "p99.9 not shown"}],
        "host": {"started": "2026-11-23T09:42:56Z", "seed": 7, "unladen": "0.1.0", "commit": "594d2907d3fc-dirty"},
    }


def of(words):
    return findings.Findings(study()).text(words)


class Numbers(unittest.TestCase):
    def test_digits_follow_the_width_of_the_interval(self):
        # As `crates/judge/src/units.rs` writes them.
        self.assertEqual(str(Interval(62.15, 57.05, 67.25)), "+62 [57, 67]")
        self.assertEqual(str(Interval(-62.15, -65.35, -58.95)), "−62.1 [−65.3, −59.0]")
        self.assertEqual(str(Interval(0.184, 0.1693, 0.1981, percent=True)), "+18.4 % [16.9, 19.8]")

    def test_an_end_that_is_not_0_does_not_look_like_0(self):
        self.assertEqual(str(Interval(0.98, 0.02, 2.99)), "+0.98 [0.02, 2.99]")

    def test_digits_are_those_of_the_judge(self):
        # Its words stand in the committed findings: `costs 45 % [27, 66]`.
        compared = 0
        for path in Path(__file__).parent.parent.glob("*/results/*.json"):
            for variant in json.loads(path.read_text())["variants"]:
                for one in variant["metrics"]:
                    words = re.fullmatch(r"costs (\S+ %) (\[.*\])", one["words"])
                    if words and one["relative"] and not one["metric"].startswith("throughput"):
                        interval = Interval(*(one[key] for key in ("ratio", "ratio_low", "ratio_high")), percent=True)
                        self.assertEqual((interval.point().lstrip("+"), interval.ends()), words.groups(), f"{path} {variant['name']} {one['metric']}")
                        compared += 1
        self.assertGreater(compared, 200)

    def test_numbers_by_themselves(self):
        self.assertEqual([plain(it) for it in (2.38078, 76.12, 598.4, 30067.0)], ["2.38", "76.1", "598", "30,067"])
        self.assertEqual([number(-0.001, 1, True), number(1234.5, 0, True)], ["0.0", "+1,234"])
        self.assertEqual([percent(it) for it in (0.1239, 0.00031)], ["12 %", "0.031 %"])


class Words(unittest.TestCase):
    def test_an_estimate_with_what_the_verdict_makes_of_it(self):
        self.assertEqual(of("otel cpu ms"), "+1.0 [0.6, 1.5]")
        self.assertEqual(of("otel cpu ratio"), "+45 % [27, 66]")
        self.assertEqual(of("otel @vets cpu"), "+758 [483, 1,129]")
        self.assertEqual(of("otel rss MiB"), "+183 [175, 188]")
        self.assertEqual(of("placebo cpu"), "cannot tell [−110, 440]")
        self.assertEqual(of("placebo rss MiB"), "no difference")
        self.assertEqual(of("ladder:steps:otel cpu"), "cannot tell [−110, 440]")

    def test_the_bare_service_has_medians_and_no_differences(self):
        self.assertEqual([of("baseline cpu ms"), of("baseline classes"), of("baseline cpu difference")], ["2.38", "30,067", ""])

    def test_what_is_refused_is_not_written(self):
        self.assertEqual([of("otel p90"), of("blind cpu"), of("blind cpu point")], ["no verdict"] * 3)

    def test_spans(self):
        self.assertEqual([of("otel arrived-of-wanted"), of("otel lost%"), of("otel unexplained%")], ["750 of 1,000", "20 %", "5.0 %"])
        self.assertEqual(of("otel per-span"), "39 [22, 62]")
        self.assertEqual([of("baseline arrived"), of("placebo per-span")], ["", ""])

    def test_where_spans_were_lost(self):
        content = study()
        self.assertEqual(of("otel lost-where"), "200: not told 200, unexplained 50")
        content["variants"][0]["ledger"].update(by_stage={"queue": 150}, unexplained=0)
        self.assertEqual(findings.Findings(content).text("otel lost-where"), "200: queue 150, not told 50")
        content["variants"][0]["ledger"].update(lost=0, by_stage={})
        self.assertEqual(findings.Findings(content).text("otel lost-where"), "0")

    def test_of_requests_with_different_numbers_of_spans_traces_are_counted(self):
        content = study()
        content["variants"][0]["ledger"].update(spans_per_request=1.85, complete=510, missing=2)
        self.assertEqual(findings.Findings(content).text("otel arrived-of-wanted"), "750 spans, 510 of 512 traces")
        content["variants"][0]["ledger"].update(spans_per_request=1.0, wanted=512, missing=2)
        self.assertEqual(findings.Findings(content).text("otel arrived-of-wanted"), "750 spans, 510 of 512 traces")

    def test_when_where_and_with_what(self):
        content = study()
        content["host"].update(cpu="Intel(R) Xeon(R) Processor", cores=2, virtualisation="hypervisor", kernel="6.18.44-fc-v657",
                               distribution="Debian GNU/Linux 12 (bookworm)", toolchains={"python3": "Python 3.11.7", "go": "go version go1.26.8 linux/amd64"})
        content["kept"] = {"pins": {"@sentry/node": "11.12.0"}}
        for words, text in (
            ("begun", "23 November 2026"), ("toolchain:python3", "Python 3.11.7"), ("toolchain:go", "Go 1.26.8"), ("pin:@sentry/node", "11.12.0"),
            ("unladen", "0.1.0, commit `594d290`"),
            ("host", "2 cores of an Intel Xeon virtual machine, Debian GNU/Linux 12 (bookworm), Linux 6.18"),
        ):
            self.assertEqual(findings.Findings(content).text(words), text)
        with self.assertRaises(findings.Unknown) as raised:
            findings.Findings(content).text("pin:flask")
        self.assertIn("no version of flask", str(raised.exception))

    def test_errors_say_what_there_is(self):
        for words, part in (
            ("otel cpuu", "`cpuu` is no variant (otel, placebo, blind), no metric (classes, cpu, p90, rss)"),
            ("otel placebo cpu", "names two of a kind"),
            ("otel cpu @gateway", "no cpu of service gateway"),
            ("otel cpu MiB", "cannot be written in `MiB`"),
            ("otel cpu round:3", "no values of single rounds"),
        ):
            with self.assertRaises((findings.Unknown, ValueError)) as raised:
                of(words)
            self.assertIn(part, str(raised.exception))
        self.assertEqual(of("placebo p90 optional"), "–")


README = """# A study

<!-- findings results/a.json -->
Of <!-- = requests -->0<!-- / --> requests.

<!-- table
| | bare = baseline | OpenTelemetry = otel | lost where
CPU, ms = cpu ms
spans | the queue = arrived-of-wanted
-->
<!-- end -->

<!-- series -->
<!-- end -->
"""


class Pages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.studies = Path(folder.name)
        (self.studies / "a/results").mkdir(parents=True)
        (self.studies / "a/results/a.json").write_text(json.dumps(study()))
        self.readme = self.studies / "a/README.md"
        self.readme.write_text(README)
        (self.studies / "README.md").write_text(
            "<!-- rows img/f.svg\n# A\nCPU | +50 % | 25 % = a/results/a.json otel cpu\nplacebo | | - = a/results/a.json placebo cpu\n"
            "P90 | | - = a/results/a.json otel p90\nsoak | | 1 % = -\n-->\n<!-- end -->\n<!-- undecided -->\n<!-- end -->\n"
        )

    def run_it(self, *arguments):
        findings.load.cache_clear()
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            code = write.main(list(arguments), self.studies)
        return code, said.getvalue()

    def test_writes_and_then_changes_nothing(self):
        self.assertEqual(self.run_it()[0], 0)
        text = self.readme.read_text()
        self.assertIn("Of <!-- = requests -->174,720<!-- / --> requests.", text)
        self.assertIn("| CPU, ms | 2.38 | +1.0 [0.6, 1.5] | |\n| spans | | 750 of 1,000 | the queue |", text)
        self.assertIn("`594d290`, dirty | 7 | 12 | 36 of 37, without the baseline's | not recorded | values of single rounds, a clean commit", text)
        self.assertIn("- a: otel: 1 of 13 runs do not count", text)
        self.assertNotIn("p99.9", text)
        self.assertEqual(self.run_it(), (0, ""))
        self.assertEqual(self.run_it("--check"), (0, ""))

    def test_check_names_file_line_and_command(self):
        self.run_it()
        self.readme.write_text(self.readme.read_text().replace("174,720", "174,721"))
        code, said = self.run_it("--check")
        self.assertEqual(code, 1)
        self.assertIn(f"{self.readme}:4: says", said)
        self.assertIn("run `make tables`", said)
        self.assertIn("174,721", self.readme.read_text())

    def test_a_number_that_was_typed_into_a_table_is_found(self):
        self.run_it()
        self.readme.write_text(self.readme.read_text().replace("+1.0 [0.6, 1.5]", "+1.1 [0.6, 1.5]"))
        self.assertEqual(self.run_it("--check")[0], 1)

    def test_errors_name_the_line(self):
        for old, new, part in (
            ("= requests", "= reqests", ":4: `reqests` is no variant"),
            ("requests.\n", "requests, +3 [1, 5].\n", ":4: the interval [1, 5] is typed"),
            ("Of <!--", "<!--", ":4: a line that begins with a marker"),
            ("-->\n<!-- end -->\n\n<!-- series", "-->\n\n<!-- series", ":6: `<!-- table` has no `<!-- end -->`"),
            ("the queue =", "the queue | and more =", ":6: row `spans | the queue | and more = arrived-of-wanted` has more texts"),
            ("results/a.json", "results/b.json", ":3: there is no file"),
        ):
            self.readme.write_text(README.replace(old, new, 1))
            code, said = self.run_it()
            self.assertEqual((code, part in said), (1, True), said)

    def test_rows_of_all_reports(self):
        self.run_it()
        text = (self.studies / "README.md").read_text()
        self.assertIn("| CPU | +50 % | +45 % [27, 66] | costs | ±20 % | ±25 % | yes |", text)
        self.assertIn("Of 4 rows 1 have a verdict, and 1 is decided.", text)
        self.assertIn("- **A**: placebo: cannot tell, ±12 %; P90: no verdict; soak: not measured.", text)
        drawing = xml.fromstring((self.studies / "img/f.svg").read_text())
        texts = [it.text for it in drawing.iter("{http://www.w3.org/2000/svg}text")]
        self.assertIn("+45 % [27, 66], costs", texts)
        self.assertIn("0 %", texts)

    def test_what_waits_for_findings_comes_with_them(self):
        waits = "# A study\n\n<!-- waiting for late\nAs measured.\n\n<!~~ findings late/NEWEST ~~>\nOf <!~~ = requests ~~>?<!~~ / ~~> requests.\n-->\n\nThe end.\n"
        self.readme.write_text(waits)
        self.run_it()
        self.assertEqual((self.readme.read_text(), self.run_it("--check")), (waits, (0, "")))
        (self.studies / "a/late").mkdir()
        for name in ("2026-11-26.json", "2026-11-27.json"):
            (self.studies / "a/late" / name).write_text(json.dumps(study()))
        code, said = self.run_it("--check")
        self.assertEqual((code, "run `make tables`" in said), (1, True), said)
        self.run_it()
        self.assertEqual(self.readme.read_text(), "# A study\n\nAs measured.\n\n<!-- findings late/2026-11-27.json -->\nOf <!-- = requests -->174,720<!-- / --> requests.\n\nThe end.\n")
        self.assertEqual(self.run_it("--check"), (0, ""))

    def test_the_least_comes_first(self):
        self.readme.write_text(
            "<!-- findings results/a.json -->\n<!-- ranked cpu\n| | CPU, ms = cpu ms\nnone = blind\nmuch = otel\nlittle = placebo *=x\n"
            "bare = baseline\n-->\n<!-- end -->\n<!-- plot img/g.svg What it costs\n# CPU\nnone = blind cpu\nmuch = otel cpu\nlittle = placebo cpu\n-->\n<!-- end -->\n"
        )
        self.assertEqual(self.run_it()[0], 0)
        text = self.readme.read_text()
        labels = re.findall(r"^\| (\w+) \|", text, re.M)
        self.assertEqual(labels, ["little", "bare", "much", "none"])
        self.assertIn("![What it costs](img/g.svg)", text)
        drawing = (self.studies / "a/img/g.svg").read_text()
        self.assertLess(drawing.index(">little<"), drawing.index(">much<"))
        self.assertLess(drawing.index(">much<"), drawing.index(">none<"))
        self.assertIn("What it costs", drawing)
        self.assertNotIn("what the report printed", drawing)


class Axis(unittest.TestCase):
    def test_half_and_double_are_equally_far_from_no_difference(self):
        axis = forest.REPORTS
        self.assertAlmostEqual(axis.place(1.0) - axis.place(0), axis.place(0) - axis.place(-0.5), delta=0.2)
        self.assertEqual(axis.clipped(9.0), forest.RIGHT)

    def test_what_was_printed_is_drawn_only_if_it_begins_with_per_cent(self):
        self.assertEqual([forest.share(it) for it in ("+9.5 %", "−50 % (MySQL)", "50 to 60 % less", "+3 s")], [0.095, -0.5, None, None])


class Keeping(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.run = Path(folder.name, "run")
        self.target = Path(folder.name, "studies/a/results/a.json")
        self.run.mkdir()
        self.target.parent.mkdir(parents=True)
        content = study()
        for variant in content["variants"]:
            for one in variant["metrics"]:
                one["rounds"] = [{"round": 3, "baseline": 1.23456789, "value": 2.0, "difference": 0.8, "ratio": None}]
        content["sections"] = [{"place": "detail", "rows": []}]
        content["host"].update(commit="594d2907d3fc", study_dir="/home/me/unladen/studies/a", command=[
            "/home/me/unladen/target/release/unladen", "run", "studies/a", "--set", "agent=/opt/agents/agent.jar", "--out", "/tmp/x"])
        (self.run / "findings.json").write_text(json.dumps(content))
        (self.run / "journal.jsonl").write_text(json.dumps({"started": "2026-11-23T09:52:56Z", "phases": {"start_s": 10.5, "window_s": 20}}) + "\n")
        self.content = content

    def kept(self, *details):
        keep.keep(self.run, self.target, list(details))
        return json.loads(self.target.read_text())

    def test_rounds_duration_and_command_are_kept(self):
        kept = self.kept()
        self.assertEqual(kept["variants"][0]["metrics"][0]["rounds"], [[3, 1.23457, 2.0]])
        self.assertEqual(kept["kept"], {"command": "unladen run studies/a --set agent=…/agent.jar", "duration_s": 630})
        self.assertNotIn("sections", kept)
        self.assertNotIn("study_dir", kept["host"])
        self.assertEqual(findings.Findings(kept).lacks(), ["list of runs"])
        self.assertEqual(findings.Findings(kept).text("otel cpu round:3 .1"), "2.0")

    def test_details_are_kept_if_named_or_asked_for_by_the_readme(self):
        def metrics(kept):
            return [it["metric"] for it in kept["variants"][0]["metrics"]]

        self.assertNotIn("classes", metrics(self.kept()))
        self.assertIn("classes", metrics(self.kept("classes")))
        (self.target.parent.parent / "README.md").write_text("<!-- table\n| | a = otel\nclasses = classes\n-->\n<!-- end -->\n")
        self.assertIn("classes", metrics(self.kept()))

    def test_versions_are_those_of_the_commit(self):
        folder = self.target.parent.parent
        (folder / "pins.txt").write_text("flask==3.1.3 \\\n    --hash=sha256:00\nwaitress==3.0.2\n")
        (folder / "others.txt").write_text("flask==3.0\n")
        (folder / "go.mod").write_text("module x\n\ngo 1.26.0\n\nrequire (\n\tgo.elastic.co/apm/v2 v2.7.1\n\tgolang.org/x/net v0.59.0 // indirect\n)\n")
        (folder / "build.sh").write_text("AGENT=go.opentelemetry.io/auto@v0.24.0\n")
        (folder / "pom.xml").write_text(
            "<properties><java.version>17</java.version><aws.version>1.32.0</aws.version></properties>\n<parent>\n  <artifactId>spring-boot-starter-parent</artifactId>\n"
            "  <version>3.5.16</version>\n</parent>\n<artifactItem><artifactId>aws-opentelemetry-agent</artifactId>\n<version>${aws.version}</version></artifactItem>\n")
        (folder / "lock.json").write_text(json.dumps({"packages": {
            "": {"name": "x"}, "node_modules/@sentry/node": {"version": "11.12.0"}, "node_modules/a/node_modules/flask": {"version": "9"}}}))
        git = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@x"]
        for arguments in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "pins"]):
            subprocess.run([*git, *arguments], check=True)
        self.content["host"]["commit"] = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
        (self.run / "findings.json").write_text(json.dumps(self.content))
        (folder / "pins.txt").write_text("flask==4.0\n")
        book = self.target.parents[3] / "docs"
        book.mkdir()
        (folder / "README.md").write_text("<!-- pins pins.txt others.txt lock.json go.mod build.sh pom.xml -->\n")
        (book / "agents.md").write_text(
            "<!-- findings ../studies/a/results/a.json -->\nOf <!-- = pin:flask -->?<!-- / -->.\n<!-- table\n| | version = pin:*\nSentry = otel *=@sentry/node\n-->\n<!-- end -->\n"
            "<!-- waiting for ../studies/a/results\n<!~~ findings ../studies/a/results/NEWEST ~~>\n"
            "Java <!~~ = pin:aws ~~>?<!~~ / ~~>, <!~~ = pin:spring-boot-starter-parent ~~>?<!~~ / ~~>\n"
            "Go <!~~ = pin:go.elastic.co/apm/v2 ~~>?<!~~ / ~~>, <!~~ = pin:go.opentelemetry.io/auto ~~>?<!~~ / ~~>\n-->\n")
        self.assertEqual(self.kept()["kept"]["pins"], {
            "@sentry/node": "11.12.0", "aws": "1.32.0", "flask": "3.1.3", "go.elastic.co/apm/v2": "2.7.1", "go.opentelemetry.io/auto": "0.24.0",
            "spring-boot-starter-parent": "3.5.16"})

    def test_what_no_commit_holds_is_refused(self):
        self.content["host"]["commit"] = "594d2907d3fc-dirty"
        (self.run / "findings.json").write_text(json.dumps(self.content))
        with self.assertRaises(SystemExit) as refused:
            self.kept()
        self.assertIn("commit what has changed, and measure again", str(refused.exception))
        self.assertFalse(self.target.exists())


if __name__ == "__main__":
    unittest.main()
