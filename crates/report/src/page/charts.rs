//! What the charts of the page show: findings and curves, scaled to the units that are printed. Draws nothing; `page.js` does,
//! with plotly.js.

use serde::{Serialize, Serializer};
use unladen_judge::curves::pace::PaceRound;
use unladen_judge::curves::{Band, Course, Curves, Latency, VariantName};
use unladen_judge::findings::{
    DoseFindings, Finding, Findings, LadderFindings, OperationFindings, Place, Range, StepFindings, VariantFindings,
    VariantKind,
};
use unladen_judge::units::Scale;

use super::super::{plot, view};

/// A number with as many digits as a chart can show.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Number(f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // By way of its digits, so that 0.1 + 0.2 does not take 19 bytes.
        let short: f64 = format!("{:.4e}", self.0).parse().unwrap_or(self.0);
        if short.fract() == 0.0 && short.abs() < 1e15 {
            serializer.serialize_i64(short as i64)
        } else {
            serializer.serialize_f64(short)
        }
    }
}

type Numbers = Vec<Option<Number>>;
/// Estimate, low and high end.
type Estimate = [Number; 3];

/// Everything that `page.js` draws.
#[derive(Debug, Serialize)]
pub(super) struct Charts<'a> {
    #[serde(rename = "arms")]
    variants: Vec<VariantName>,
    forest: Vec<plot::Forest>,
    ledger: Vec<Account<'a>>,
    latency: Option<LatencyChart<'a>>,
    courses: Vec<CourseChart<'a>>,
    pace: Pace<'a>,
    runs: Vec<RunPoint<'a>>,
    rounds: Vec<Rounds<'a>>,
    ladders: Vec<LadderChart<'a>>,
    doses: Vec<DoseChart<'a>>,
    costs: Vec<Cost<'a>>,
    operations: Vec<OperationRow<'a>>,
}

/// Where the spans of a variant went.
#[derive(Debug, Serialize)]
struct Account<'a> {
    #[serde(rename = "arm")]
    variant: &'a str,
    wanted: u64,
    /// Name, kind (`saved`, `lost`, `unexplained`) and spans.
    parts: Vec<(String, &'static str, u64)>,
    lost_by_second: &'a [u64],
}

#[derive(Debug, Serialize)]
struct LatencyChart<'a> {
    unit: &'static str,
    quantiles: Vec<f64>,
    limits: Vec<Number>,
    #[serde(rename = "arms")]
    variants: Vec<VariantCurves<'a>>,
}

#[derive(Debug, Serialize)]
struct VariantCurves<'a> {
    #[serde(rename = "arm")]
    variant: &'a str,
    runs: Lines,
    /// Per cent.
    shift: Option<Lines>,
    /// Per cent of the requests.
    shares: Vec<Number>,
}

#[derive(Debug, Serialize)]
struct Lines {
    median: Numbers,
    low: Numbers,
    high: Numbers,
}

#[derive(Debug, Serialize)]
struct CourseChart<'a> {
    title: &'a str,
    unit: &'static str,
    step: f64,
    /// Number of the run, first step, values.
    runs: Vec<(u32, i64, Numbers)>,
}

/// CPU per request over time.
#[derive(Debug, Serialize)]
struct Pace<'a> {
    unit: &'static str,
    rounds: Vec<PaceOfRound<'a>>,
}

#[derive(Debug, Serialize)]
struct PaceOfRound<'a> {
    round: u32,
    /// Seconds.
    t: Vec<Number>,
    /// Variant, its values, and by how much they are more than the baseline's, per cent.
    #[serde(rename = "arms")]
    variants: Vec<(&'a str, Numbers, Option<Numbers>)>,
}

#[derive(Debug, Serialize)]
struct RunPoint<'a> {
    run: u32,
    round: u32,
    slot: u32,
    #[serde(rename = "arm")]
    variant: &'a str,
    void: Option<&'a str>,
    disturbances: &'a [String],
}

/// Number of a round, the baseline's value and the variant's.
type RoundDot = (u32, Number, Number);

/// Dose, difference, its ends.
type DoseDot = (f64, Option<Number>, Option<Number>, Option<Number>);

/// Every round of one metric.
#[derive(Debug, Serialize)]
struct Rounds<'a> {
    title: String,
    unit: &'static str,
    prominent: bool,
    /// Variant, and its rounds.
    #[serde(rename = "arms")]
    variants: Vec<(&'a str, Vec<RoundDot>)>,
}

#[derive(Debug, Serialize)]
struct LadderChart<'a> {
    title: String,
    metric: &'a str,
    unit: &'static str,
    foot: (String, Number),
    steps: Vec<StepBar>,
}

/// Name, and what the step adds; with too few rounds for an interval its ends are `null`. Last the same in words.
type StepBar = (String, Number, Option<Number>, Option<Number>, String);

#[derive(Debug, Serialize)]
struct DoseChart<'a> {
    title: String,
    axis: &'a str,
    unit: &'static str,
    words: &'a str,
    points: Vec<DoseDot>,
    /// The line: dose, value, its ends.
    line: Vec<(f64, Number, Number, Number)>,
}

/// One kind of cost, in parts that can be added.
#[derive(Debug, Serialize)]
struct Cost<'a> {
    title: &'static str,
    unit: &'static str,
    #[serde(rename = "arms")]
    variants: Vec<&'a str>,
    /// Name of the part, and its value for each of `variants`.
    parts: Vec<(&'static str, Numbers)>,
}

#[derive(Debug, Serialize)]
struct OperationRow<'a> {
    #[serde(rename = "arm")]
    variant: &'a str,
    name: String,
    p50: Estimate,
    p90: Estimate,
    p99: Option<Estimate>,
}

impl<'a> Charts<'a> {
    pub(super) fn of(findings: &'a Findings, curves: &'a Curves) -> Self {
        Self {
            variants: variants(findings, curves),
            forest: plot::forests(findings),
            ledger: findings.variants.iter().filter_map(account).collect(),
            latency: curves.latency.as_ref().map(latency),
            courses: curves.courses.iter().map(course).collect(),
            pace: pace(&curves.pace),
            runs: findings.runs.iter().map(run).collect(),
            rounds: rounds(findings),
            ladders: findings.ladders.iter().flat_map(ladder).collect(),
            doses: findings.doses.iter().map(dose).collect(),
            costs: costs(findings),
            operations: operations(&findings.operations),
        }
    }

    pub(super) fn variants(&self) -> impl Iterator<Item = &VariantName> {
        self.variants.iter()
    }

    pub(super) fn forests(&self) -> impl Iterator<Item = (&str, &str, usize)> {
        self.forest.iter().map(|forest| (forest.title.as_str(), forest.axis.as_str(), forest.rows.len()))
    }

    /// Which of the optional sections there is anything for.
    pub(super) fn has(&self) -> AvailableCharts {
        AvailableCharts {
            ledger: self.ledger.iter().any(|it| it.wanted > 0 || !it.parts.is_empty()),
            lost: self.ledger.iter().any(|it| !it.lost_by_second.is_empty()),
            lost_somewhen: self.ledger.iter().flat_map(|it| &it.parts).any(|(_, kind, _)| *kind == "lost"),
            latency: self.latency.is_some(),
            shift: self.latency.iter().flat_map(|it| &it.variants).any(|it| it.shift.is_some()),
            courses: self.courses.iter().map(|it| format!("{}, {}", it.title, it.unit)).collect(),
            pace: self.pace.rounds.iter().map(|it| it.round).collect(),
            rounds: !self.rounds.is_empty(),
            ladders: self.ladders.iter().map(|it| (it.title.clone(), it.steps.len())).collect(),
            doses: self.doses.iter().map(|it| (it.title.clone(), it.words.to_owned())).collect(),
            costs: self.costs.iter().map(|it| (format!("{}, {}", it.title, it.unit), it.variants.len())).collect(),
            operations: self.operations.len(),
        }
    }
}

/// What there is to draw, for the template.
#[derive(Debug, Serialize)]
pub(super) struct AvailableCharts {
    ledger: bool,
    /// By second.
    lost: bool,
    /// Spans that were only counted are lost in no known second.
    lost_somewhen: bool,
    latency: bool,
    shift: bool,
    courses: Vec<String>,
    /// Rounds.
    pace: Vec<u32>,
    rounds: bool,
    ladders: Vec<(String, usize)>,
    doses: Vec<(String, String)>,
    costs: Vec<(String, usize)>,
    operations: usize,
}

fn numbers(values: &[Option<f64>], scale: Scale) -> Numbers {
    values.iter().map(|value| value.map(|it| Number(scale.scaled(it)))).collect()
}

/// The variants as the curves know them, or, without any, as the findings do.
fn variants(findings: &Findings, curves: &Curves) -> Vec<VariantName> {
    let named = |variant: &VariantName| VariantName {
        label: match variant.kind {
            VariantKind::Placebo => "A/A control (baseline vs. itself)".to_owned(),
            _ => view::clean(&variant.label),
        },
        ..variant.clone()
    };
    if !curves.variants.is_empty() {
        return curves.variants.iter().map(named).collect();
    }
    let baseline =
        VariantName { name: "baseline".to_owned(), label: "baseline".to_owned(), kind: VariantKind::Baseline };
    let others = findings
        .variants
        .iter()
        .map(|it| named(&VariantName { name: it.name.clone(), label: it.label.clone(), kind: it.kind }));
    std::iter::once(baseline).chain(others).collect()
}

fn account(variant: &VariantFindings) -> Option<Account<'_>> {
    let ledger = variant.ledger.as_ref()?;
    let mut parts = vec![("arrived".to_owned(), "saved", ledger.saved)];
    let staged: u64 = ledger.by_stage.values().sum();
    parts
        .extend(ledger.by_stage.iter().map(|(stage, spans)| (format!("lost: {}", view::clean(stage)), "lost", *spans)));
    parts.push(("lost: stage unknown".to_owned(), "lost", ledger.lost.saturating_sub(staged)));
    parts.push(("unexplained".to_owned(), "unexplained", u64::try_from(ledger.unexplained).unwrap_or(0)));
    parts.retain(|(_, _, spans)| *spans > 0);
    Some(Account { variant: &variant.name, wanted: ledger.wanted, parts, lost_by_second: &ledger.lost_by_second })
}

fn latency(latency: &Latency) -> LatencyChart<'_> {
    let largest =
        latency.variants.iter().flat_map(|variant| variant.runs.median.iter().flatten()).copied().fold(0.0, f64::max);
    let scale = Scale::of("us", largest.min(999_999.0), None);
    let lines = |band: &Band, scale: Scale| Lines {
        median: numbers(&band.median, scale),
        low: numbers(&band.low, scale),
        high: numbers(&band.high, scale),
    };
    let percent = unladen_judge::units::percent(1.0, None);
    LatencyChart {
        unit: scale.unit(),
        quantiles: latency.quantiles.iter().map(|it| (it * 1e8).round() / 1e8).collect(),
        limits: latency.limits_us.iter().map(|it| Number(scale.scaled(*it))).collect(),
        variants: latency
            .variants
            .iter()
            .map(|variant| VariantCurves {
                variant: &variant.name,
                runs: lines(&variant.runs, scale),
                shift: variant.shift.as_ref().map(|it| lines(it, percent)),
                shares: variant.shares.iter().map(|it| Number(percent.scaled(*it))).collect(),
            })
            .collect(),
    }
}

fn course(course: &Course) -> CourseChart<'_> {
    let values = course.runs.iter().flat_map(|run| run.values.iter().flatten());
    let largest = values.copied().fold(0.0, f64::max);
    let scale = Scale::of(course.unit, largest, None);
    CourseChart {
        title: course.title,
        unit: scale.unit(),
        step: course.step_s,
        runs: course.runs.iter().map(|run| (run.run, run.first, numbers(&run.values, scale))).collect(),
    }
}

fn pace(rounds: &[PaceRound]) -> Pace<'_> {
    let all = rounds.iter().flat_map(|round| &round.variants).flat_map(|variant| variant.cpu_us.iter().flatten());
    let scale = Scale::of("us", all.copied().fold(0.0, f64::max), None);
    let percent = unladen_judge::units::percent(1.0, None);
    let mut chart = Pace { unit: scale.unit(), rounds: Vec::new() };
    for round in rounds {
        let variants = round.variants.iter().map(|variant| {
            let ratio = variant.ratio.as_ref().map(|it| numbers(it, percent));
            (variant.name.as_str(), numbers(&variant.cpu_us, scale), ratio)
        });
        let t = round.t_s.iter().map(|it| Number(*it)).collect();
        chart.rounds.push(PaceOfRound { round: round.round, t, variants: variants.collect() });
    }
    chart
}

fn run(line: &unladen_judge::findings::RunLine) -> RunPoint<'_> {
    RunPoint {
        run: line.run,
        round: line.round,
        slot: line.slot,
        variant: &line.variant,
        void: line.void.as_deref(),
        disturbances: &line.disturbances,
    }
}

/// The rounds of every metric of the subject as a whole, the prominent ones first.
fn rounds(findings: &Findings) -> Vec<Rounds<'_>> {
    let all = || findings.variants.iter().flat_map(|variant| variant.metrics.iter().map(move |it| (variant, it)));
    let mut metrics: Vec<&Finding> = Vec::new();
    for (_, finding) in all().filter(|(_, it)| it.is_of_whole() && !it.rounds.is_empty()) {
        if !metrics.iter().any(|known| known.metric == finding.metric) {
            metrics.push(finding);
        }
    }
    metrics.sort_by_key(|finding| finding.place == Place::Detail);
    let of_metric = |first: &Finding| {
        let same = |it: &(&VariantFindings, &Finding)| it.1.metric == first.metric && it.1.is_of_whole();
        let values = || all().filter(same).flat_map(|(_, it)| it.rounds.iter().flat_map(|it| [it.baseline, it.value]));
        let scale = Scale::of(&first.unit, values().map(f64::abs).fold(0.0, f64::max), None);
        let numbers = |finding: &Finding| {
            let point = |it: &unladen_judge::findings::RoundValue| {
                (it.round, Number(scale.scaled(it.baseline)), Number(scale.scaled(it.value)))
            };
            finding.rounds.iter().map(point).collect()
        };
        Rounds {
            title: unladen_judge::units::named(&first.title, scale.unit()),
            unit: scale.unit(),
            prominent: first.place != Place::Detail,
            variants: all().filter(same).map(|(variant, it)| (variant.name.as_str(), numbers(it))).collect(),
        }
    };
    let differs =
        |it: &Rounds<'_>| it.variants.iter().flat_map(|(_, rounds)| rounds).any(|it| it.1.0 != 0.0 || it.2.0 != 0.0);
    metrics.into_iter().map(of_metric).filter(differs).collect()
}

/// One chart per metric that a reader weighs first: what the machine pays, and what the user waits.
fn ladder(ladder: &LadderFindings) -> Vec<LadderChart<'_>> {
    let chart = |metric: &&'static str| {
        let whole = ladder.whole.finding(metric)?;
        let scale = Scale::of_values(whole);
        let bar = |name: String, step: &StepFindings| {
            let finding = step.finding(metric).filter(|_| step.refused.is_none())?;
            let end = |it: Option<f64>| it.map(|it| Number(scale.scaled(it)));
            let value = finding.difference.unwrap_or(finding.value - finding.baseline);
            let text = match (finding.difference_low, finding.difference_high) {
                (Some(low), Some(high)) => scale.signed_range(Range { value, low, high }),
                _ => scale.signed_with_unit(value),
            };
            let number = Number(scale.scaled(value));
            Some((name, number, end(finding.difference_low), end(finding.difference_high), text))
        };
        let mut steps: Vec<_> =
            ladder.steps.iter().filter_map(|step| bar(format!("+ {}", view::clean(&step.label)), step)).collect();
        steps.extend(bar("= all steps together".to_owned(), &ladder.whole));
        let name = if ladder.name.is_empty() { String::new() } else { format!("{}: ", view::clean(&ladder.name)) };
        Some(LadderChart {
            title: format!("{name}{} by step, {}", whole.title, scale.unit()),
            metric,
            unit: scale.unit(),
            foot: (view::clean(&ladder.foot_label), Number(scale.scaled(whole.baseline))),
            steps,
        })
    };
    ["cpu_per_request", "rss", "latency_p50", "latency_p99"].iter().filter_map(chart).collect()
}

fn dose(dose: &DoseFindings) -> DoseChart<'_> {
    let ends = dose.points.iter().flat_map(|it| [it.difference, it.difference_low, it.difference_high]);
    let largest = ends.flatten().map(f64::abs).fold(0.0, f64::max);
    let scale = Scale::of(&dose.unit, largest, None);
    let number = |it: Option<f64>| it.map(|it| Number(scale.scaled(it)));
    DoseChart {
        title: format!(
            "{}: {} over {}, {}",
            view::clean(&dose.label),
            dose.title,
            view::clean(&dose.axis),
            scale.unit()
        ),
        axis: &dose.axis,
        unit: scale.unit(),
        words: &dose.words,
        points: dose
            .points
            .iter()
            .map(|it| (it.dose, number(it.difference), number(it.difference_low), number(it.difference_high)))
            .collect(),
        line: dose
            .fixed
            .map(|it| (0.0, it))
            .into_iter()
            .chain(dose.points.iter().filter_map(|point| Some((point.dose, point.fitted?))))
            .map(|(dose, it)| {
                (dose, Number(scale.scaled(it.value)), Number(scale.scaled(it.low)), Number(scale.scaled(it.high)))
            })
            .collect(),
    }
}

/// Who pays, by metric: parts of one bar, because they are of one unit and of different processes.
const PARTS: [(&str, &[(&str, &str)]); 2] = [
    ("CPU per request", &[("cpu_per_request", "subject"), ("collector_cpu", "collector"), ("storage_cpu", "storage")]),
    (
        "bytes on the wire per request",
        &[("network_bytes_per_request", "requests and answers"), ("telemetry_bytes_per_request", "telemetry")],
    ),
];

fn costs(findings: &Findings) -> Vec<Cost<'_>> {
    let of_kind = |(title, parts): &(&'static str, &'static [(&'static str, &'static str)])| {
        let (first, _) = parts.first()?;
        let whole: Vec<&Finding> = findings.variants.iter().filter_map(|it| it.finding(first)).collect();
        let largest = whole.iter().flat_map(|it| [it.baseline, it.value]).fold(0.0, f64::max);
        let scale = Scale::of(&whole.first()?.unit, largest, None);
        let mut variants = vec!["baseline"];
        variants.extend(findings.variants.iter().map(|it| it.name.as_str()));
        let parts = parts.iter().filter_map(|(metric, name)| {
            let baseline = findings.variants.iter().find_map(|it| it.finding(metric)).map(|it| it.baseline)?;
            let values = findings.variants.iter().map(|it| it.finding(metric).map(|it| it.value));
            let values: Vec<Option<f64>> = std::iter::once(Some(baseline)).chain(values).collect();
            Some((*name, numbers(&values, scale)))
        });
        Some(Cost { title, unit: scale.unit(), variants, parts: parts.collect() })
    };
    PARTS.iter().filter_map(of_kind).collect()
}

fn operations(all: &[OperationFindings]) -> Vec<OperationRow<'_>> {
    let largest = all.iter().map(|it| it.p99_us.unwrap_or(it.p90_us).value).fold(0.0, f64::max);
    let scale = Scale::of("us", largest.min(999_999.0), None);
    let number = |it: Range| [it.value, it.low, it.high].map(|it| Number(scale.scaled(it)));
    all.iter()
        .map(|it| OperationRow {
            variant: &it.variant,
            name: format!("{} · {} ({})", view::clean(&it.service), view::clean(&it.operation), scale.unit()),
            p50: number(it.p50_us),
            p90: number(it.p90_us),
            p99: it.p99_us.map(number),
        })
        .collect()
}
