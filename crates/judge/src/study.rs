//! A whole study: every variant compared, believed or refused, and said in words.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use unladen_journal::notices::{Notice, RoundsNotice};
use unladen_journal::record::RunRecord;
use unladen_load::target::without_user;
use unladen_stats::estimate::median;
use unladen_stats::rank;
use unladen_study::measured::Measured;
use unladen_study::variables::{PortName, Variables, resolve};

use super::budget::{self, BudgetError, Budgets, Judged};
use super::compare::{Comparison, compare, level};
use super::evidence::{Evidence, VariantRuns, number};
use super::findings::{
    Comparisons, Conclusion, Findings, InstrumentFindings, LadderFindings, LoadFindings, NoticeLine, SCHEMA,
    VariantFindings, VariantKind, Verdict,
};
use super::load_parts::load_parts;
use super::metrics::{METRICS, Metric, NEARLY, Of, Place, delivered};
use super::{
    admitted, agreement, answers, apart, checks, design, distortion, dose, groups, ladder, latency, ledger, levels,
    machines, money, notices, pacing, placebo, reported_numbers, runs, steady, units, values, words, work,
};

/// A variant on its way into the findings.
struct Draft<'e, 'a> {
    variant: &'e VariantRuns<'a>,
    comparisons: Vec<Comparison>,
    refused: Option<String>,
}

pub(super) fn judge(folder: &Measured, limits: &Budgets) -> Result<Findings, BudgetError> {
    let evidence = Evidence::of(folder);
    let mut notices = evidence.notices();
    let metrics = metrics(&evidence, &mut notices);
    let mut void = evidence.baseline.valid.is_empty().then_some(Notice::NoBaseline);

    let against_itself = evidence.placebo.as_ref().map(|variant| {
        let comparisons = with_words(comparisons(&evidence, &metrics, &evidence.baseline, variant));
        let (broken, warnings) = placebo::judge(&folder.study, &comparisons);
        void = void.take().or(broken);
        notices.extend(warnings);
        Draft { variant, comparisons, refused: None }
    });
    if evidence.placebo.is_none() {
        notices.push(Notice::NoPlacebo);
    }
    let mut drafts: Vec<Draft<'_, '_>> = evidence
        .variants
        .iter()
        .map(|variant| draft(&evidence, &metrics, variant, void.as_ref(), &mut notices))
        .collect();

    let mut judged: Vec<Judged<'_>> = drafts
        .iter_mut()
        .map(|draft| Judged {
            variant: &draft.variant.name,
            comparisons: &mut draft.comparisons,
            refused: draft.refused.clone(),
            spans: ledger::sum_up(draft.variant, &[]).map(|ledger| (ledger.lost, ledger.wanted)),
        })
        .collect();
    let budgets = budget::hold(limits, level(&folder.study), &mut judged)?;
    drop(judged);

    let reasons: BTreeMap<String, String> =
        drafts.iter().filter_map(|draft| Some((draft.variant.name.clone(), draft.refused.clone()?))).collect();
    let ladders = ladder::ladders(&evidence, &metrics, |name| {
        void.as_ref().map(|_| "the study is void".to_owned()).or_else(|| reasons.get(name).cloned())
    });
    let doses = dose::doses(&evidence, |name| void.is_some() || reasons.contains_key(name));
    let comparisons_made = made(&drafts, &ladders, &evidence.baseline.name);
    let mut variants = Vec::new();
    let mut conclusions = Vec::new();
    let placebo = against_itself.map(|draft| (VariantKind::Placebo, draft));
    let others = drafts.into_iter().map(|draft| (VariantKind::Variant, draft));
    for (kind, draft) in placebo.into_iter().chain(others) {
        let variant = finish(kind, draft, &evidence, &mut notices);
        let words = if kind == VariantKind::Placebo { words::noise_floor(&variant) } else { words::sentence(&variant) };
        conclusions.push(Conclusion { variant: variant.name.clone(), words });
        variants.push(variant);
    }
    notices.extend(checks::notices(&evidence));
    notices.extend(steady::notices(&evidence));
    notices.extend(apart::notices(&evidence, &metrics));
    let disagreements = machines::disagreements(&evidence, &variants);
    // Where machines disagree, that explains why starts fall into groups.
    notices.extend(groups::notices(&evidence, |variant| disagreements.contains_key(variant)));
    notices.extend(machines::notices(disagreements));
    notices.extend(design::notices(&evidence));
    notices.extend(agreement::notices(&evidence));
    notices.extend(checks::imported(&evidence));
    notices.extend(too_few_rounds(&evidence));
    notices.extend(void.clone());
    Ok(Findings {
        schema: SCHEMA,
        study: folder.study.study.clone(),
        question: folder.study.question.clone(),
        rounds: evidence.complete_rounds(),
        rounds_begun: evidence.rounds_begun(),
        rounds_repeated: evidence.repeated_rounds(),
        void: void.map(|notice| notice.to_string()),
        conclusions,
        variants,
        ladders,
        doses,
        budgets,
        notices: notices::lines(&evidence, &notices),
        comparisons: comparisons_made,
        load: load(&evidence),
        design: design::findings(&evidence),
        instrument: instrument(&evidence),
        profiles: Vec::new(),
        operations: Vec::new(),
        sampled: Vec::new(),
        runs: runs::lines(&evidence),
        commands: runs::commands(&folder.study),
        host: folder.host.clone(),
        sections: Vec::new(),
        curves: None,
    })
}

/// The metrics that this study can speak of. Quantiles for which the runs have too few requests are left out, and told.
pub(super) fn metrics(evidence: &Evidence<'_>, notices: &mut Vec<Notice>) -> Vec<Cow<'static, Metric>> {
    // Where another tool did not say how many requests it made, its quantiles are shown and a notice doubts them.
    let unknown = loads(evidence).next().is_none() && evidence.valid().any(|run| run.imported.is_some());
    let runs: Vec<f64> = evidence.all_variants().map(|variant| variant.valid.len() as f64).collect();
    let runs = median(&runs).unwrap_or(0.0);
    let enough = |metric: &Cow<'static, Metric>| {
        let Some(needed) = metric.requests_needed().filter(|_| !unknown) else { return true };
        let typical = typical_requests(evidence, metric);
        typical * runs >= NEARLY * needed as f64 && metric.has_enough(typical)
    };
    let (shown, hidden): (Vec<_>, Vec<_>) = delivered(evidence.valid()).into_iter().partition(enough);
    notices.extend(not_in_blocks(evidence));
    notices.extend(too_few_requests(evidence, &hidden, runs));
    let open = evidence.folder.study.load.is_open();
    let mut shown: Vec<_> = shown.into_iter().filter(|metric| !(open && metric.of == Of::ClosedLoad)).collect();
    if evidence.valid().any(|run| run.imported.is_some()) {
        // Another tool measures little: what we know of it is worth its place in the table.
        for metric in shown.iter_mut().filter(|metric| metric.place == Place::Detail && metric.is_known()) {
            metric.to_mut().place = Place::Table;
        }
    }
    shown
}

/// Requests behind a quantile in a typical run; 0: none has any.
fn typical_requests(evidence: &Evidence<'_>, metric: &Metric) -> f64 {
    let counts = evidence.valid().filter_map(|run| latency::requests(&metric.name, run));
    median(&counts.map(|count| count as f64).collect::<Vec<_>>()).unwrap_or(0.0)
}

/// Numbers that alternating rounds lack, because no variant had the load for itself.
fn not_in_blocks(evidence: &Evidence<'_>) -> Option<Notice> {
    let alternating = evidence.valid().any(|run| run.blocks.is_some());
    let lacks = |metric: &&Metric| latency::source(&metric.name).is_some() && typical_requests(evidence, metric) == 0.0;
    let lacking: Vec<&Metric> = METRICS.iter().filter(|metric| alternating && lacks(metric)).collect();
    let metrics = words::list(lacking.iter().map(|metric| metric.title.to_string()));
    (!lacking.is_empty()).then_some(RoundsNotice::NotInBlocks { metrics }.into())
}

/// One notice for all quantiles that come from the same requests.
fn too_few_requests(evidence: &Evidence<'_>, hidden: &[Cow<'static, Metric>], runs: f64) -> Vec<Notice> {
    let mut by_requests: BTreeMap<u64, Vec<&Metric>> = BTreeMap::new();
    for metric in hidden {
        by_requests.entry(typical_requests(evidence, metric) as u64).or_default().push(metric);
    }
    let alternating = evidence.valid().any(|run| run.blocks.is_some());
    let notice = |(typical, metrics): (u64, Vec<&Metric>)| {
        let alone = alternating && metrics.iter().any(|it| latency::source(&it.name) == Some(latency::From::Alone));
        Some(Notice::TooFewRequests {
            needed: units::count(metrics.iter().filter_map(|metric| metric.requests_needed()).min()?),
            metrics: words::list(metrics.iter().map(|metric| metric.title.to_string())),
            requests: units::count((typical as f64 * runs) as u64),
            per_run: units::count(typical),
            raise: if alone { "alone" } else { "window" }.to_owned(),
        })
    };
    by_requests.into_iter().filter(|(typical, _)| *typical > 0).filter_map(notice).collect()
}

/// Every metric of one variant: as a whole and, where there are several subject services, for each of them.
pub(super) fn comparisons(
    evidence: &Evidence<'_>,
    metrics: &[Cow<'static, Metric>],
    baseline: &VariantRuns<'_>,
    variant: &VariantRuns<'_>,
) -> Vec<Comparison> {
    let subjects = evidence.subjects();
    let study = &evidence.folder.study;
    let mut all = Vec::new();
    for metric in metrics {
        let spoken_of = |it: &Comparison| !(metric.absent_when_zero && it.is_zero());
        all.extend(compare(study, metric, None, baseline, variant).filter(spoken_of));
        if metric.of == Of::Subject {
            let each = subjects.iter().filter_map(|service| compare(study, metric, Some(service), baseline, variant));
            all.extend(each.filter(spoken_of));
        }
    }
    all
}

fn with_words(mut comparisons: Vec<Comparison>) -> Vec<Comparison> {
    comparisons.iter_mut().for_each(Comparison::say);
    comparisons
}

fn draft<'e, 'a>(
    evidence: &Evidence<'a>,
    metrics: &[Cow<'static, Metric>],
    variant: &'e VariantRuns<'a>,
    void: Option<&Notice>,
    notices: &mut Vec<Notice>,
) -> Draft<'e, 'a> {
    let mut comparisons = with_words(comparisons(evidence, metrics, evidence.baseline_of(variant), variant));
    for distortion in distortion::distortions(evidence, variant) {
        distortion.apply(&mut comparisons);
        let is_known = match distortion.notice {
            // The runs have told of it themselves.
            Notice::Throttled { .. } => true,
            Notice::HostSaturated { .. } => notices.iter().any(|it| matches!(it, Notice::HostSaturated { .. })),
            ref other => notices.contains(other),
        };
        if !is_known {
            notices.push(distortion.notice);
        }
    }
    let reason = if variant.valid.is_empty() {
        Some(Notice::NothingCounts { variant: variant.name.clone() })
    } else {
        work::differs(evidence, variant).or_else(|| steady::refusal(evidence, variant))
    };
    notices.extend(reason.clone());
    let refused = void.map(|_| "the study is void".to_owned()).or_else(|| reason.map(|it| reason_alone(&it)));
    Draft { variant, comparisons, refused }
}

/// The reason without the name of the variant, which stands before it.
fn reason_alone(notice: &Notice) -> String {
    match notice {
        Notice::WorkDiffers { what, .. } => format!("it does not do the same work as the baseline: {what}"),
        Notice::NothingCounts { .. } => "none of its runs counts".to_owned(),
        other => other.to_string(),
    }
}

fn finish(
    kind: VariantKind,
    draft: Draft<'_, '_>,
    evidence: &Evidence<'_>,
    notices: &mut Vec<Notice>,
) -> VariantFindings {
    let prices = evidence.folder.study.prices.as_ref();
    let Draft { variant, comparisons, refused } = draft;
    let mut metrics: Vec<_> = comparisons.into_iter().map(|comparison| comparison.finding).collect();
    if let Some(reason) = &refused {
        metrics.iter_mut().for_each(|finding| finding.take_verdict(reason));
    }
    let ledger = ledger::sum_up(variant, &metrics);
    let of_ledger: Vec<Notice> = ledger.iter().flat_map(|ledger| ledger::notices(&variant.name, ledger)).collect();
    if let Some(bought) = of_ledger.iter().find(|it| matches!(it, Notice::BoughtWithLoss { .. })) {
        let gains = metrics.iter_mut().filter(|finding| finding.verdict == Verdict::Saves);
        gains.for_each(|finding| finding.notices.push(NoticeLine::from(bought)));
    }
    notices.extend(of_ledger);
    VariantFindings {
        name: variant.name.clone(),
        label: variant.label.clone(),
        cell: variant.cell.clone(),
        kind,
        valid_runs: variant.valid_runs(),
        runs: number(variant.all.len()),
        faults: variant.all.iter().find_map(|run| run.faults.as_ref()).map(ToString::to_string),
        money: prices
            .filter(|_| kind == VariantKind::Variant && refused.is_none())
            .and_then(|it| money::of(it, &metrics)),
        reported_numbers: reported_numbers::of(evidence, variant),
        answers: answers::of(evidence, variant),
        blocks_against_alone: agreement::of(variant),
        variance: levels::of(evidence.baseline_of(variant), variant),
        admitted: admitted::of(evidence, variant),
        refused,
        metrics,
        ledger,
    }
}

/// One notice for all variants that lack the same number of rounds; those without any run have a notice of their own.
fn too_few_rounds(evidence: &Evidence<'_>) -> Vec<Notice> {
    let needed = number(rank::min_rounds(level(&evidence.folder.study)));
    let mut short: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for variant in evidence.placebo.iter().chain(&evidence.variants).filter(|variant| !variant.valid.is_empty()) {
        let rounds = evidence.paired_rounds(variant);
        if rounds < needed {
            short.entry(rounds).or_default().push(variant.name.clone());
        }
    }
    let notice = |(rounds, names): (u32, Vec<String>)| Notice::TooFewRounds {
        variants: words::list(names.into_iter()),
        rounds,
        needed,
    };
    short.into_iter().map(notice).collect()
}

/// How many comparisons could have raised a false alarm: those with an interval whose numbers differ at all.
fn made(drafts: &[Draft<'_, '_>], ladders: &[LadderFindings], baseline: &str) -> Comparisons {
    let judged = drafts.iter().filter(|draft| draft.refused.is_none());
    let of_variants = judged.flat_map(|draft| &draft.comparisons).map(|comparison| &comparison.finding);
    // What is compared with the baseline has been counted among the variants.
    let steps = ladders
        .iter()
        .flat_map(|ladder| ladder.steps.iter().filter(|step| step.refused.is_none() && step.from != baseline));
    let all = of_variants.chain(steps.flat_map(|step| &step.metrics));
    let noisy = all.filter(|finding| finding.rounds.iter().any(|round| round.difference != 0.0));
    let chances: Vec<f64> = noisy.filter_map(|finding| finding.level).map(|level| 1.0 - level).collect();
    Comparisons { made: number(chances.len()), expected_by_chance: chances.iter().sum() }
}

fn loads<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = &'e unladen_load::outcome::Outcome> {
    evidence.valid().filter_map(|run| run.load.as_ref())
}

fn load(evidence: &Evidence<'_>) -> LoadFindings {
    let load = &evidence.folder.study.load;
    LoadFindings {
        url: without_user(&resolved(&load.url, evidence)),
        pacing: pacing::words(load),
        rate: load.rate,
        connections: load.connections,
        requests: loads(evidence).map(|load| load.requests).sum(),
        errors: loads(evidence).map(|load| load.errors).sum(),
        window_s: if load.is_fixed_work() {
            median(&evidence.valid().map(|run| run.phases.window_s).collect::<Vec<_>>()).unwrap_or(0.0)
        } else {
            evidence.folder.study.window.as_seconds()
        },
        fixed_work: load.is_fixed_work(),
        imported: imported(evidence),
    }
}

/// The tools whose results were imported, with their requests where they tell.
fn imported(evidence: &Evidence<'_>) -> Option<String> {
    let tools: BTreeSet<&str> =
        evidence.valid().filter_map(|run| run.imported.as_ref()).map(|run| run.tool.as_str()).collect();
    (!tools.is_empty()).then(|| words::list(tools.into_iter().map(str::to_owned)))
}

fn instrument(evidence: &Evidence<'_>) -> InstrumentFindings {
    let load: Vec<f64> = loads(evidence).map(|load| load.cpu_us_per_request).filter(|it| it.is_finite()).collect();
    let sink: Vec<f64> = evidence.valid().filter_map(sink_cpu).collect();
    let open = evidence.folder.study.load.is_open();
    let lags = loads(evidence).filter(|load| open && load.send_lag_us.count > 0).map(|load| load.send_lag_us.p99);
    let apart = evidence.folder.host.get("cores_apart").and_then(serde_json::Value::as_bool);
    InstrumentFindings {
        load_cpu_us_per_request: median(&load),
        sink_cpu_us_per_span: median(&sink),
        send_lag_p99_us: lags.reduce(f64::max),
        cores_apart: apart,
        load_parts: load_parts(loads(evidence).flat_map(|load| &load.parts)),
    }
}

/// µs per span: CPU is known for the window (or for the blocks that count), spans for the whole run, so the spans are scaled by the requests.
fn sink_cpu(run: &RunRecord) -> Option<f64> {
    let sink = run.sink.as_ref()?;
    let process = run.instrument.iter().find(|process| process.service == "sink")?;
    let spans = sink.received as f64 * values::share_completed(run)?;
    (spans > 0.0).then_some(process.cpu_ns? as f64 / 1e3 / spans)
}

/// The URL with the ports that the study had; as written where something else in it is not known any more.
fn resolved(url: &str, evidence: &Evidence<'_>) -> String {
    let ports = evidence.folder.host.get("ports").and_then(serde_json::Value::as_object);
    let known = ports.into_iter().flatten().filter_map(|(name, port)| {
        let (name, replica) = match name.rsplit_once('.') {
            Some((name, replica)) => (name, replica.parse().ok()?),
            None => (name.as_str(), 0),
        };
        Some((PortName { name: name.to_owned(), replica }, u16::try_from(port.as_u64()?).ok()?))
    });
    let values = evidence.folder.study.variables.clone();
    let variables = Variables { ports: known.collect(), values, ..Variables::default() };
    resolve(url, &variables).unwrap_or_else(|_| url.to_owned())
}
