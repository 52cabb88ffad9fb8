//! Findings as cells and lines of text, shared by the reports for people.

use unladen_judge::findings::{
    Cell, Conclusion, Finding, Findings, Judgement, LedgerFindings, MoneyFindings, Number, Place, Range, Section,
    VariantFindings, VariantKind,
};
use unladen_judge::units::{self, Scale};

/// One line of a table.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(super) struct Row {
    /// `CPU per request, µs`, with the service if it is one service's.
    pub(super) name: String,
    /// The name where the row of the whole subject stands above: `· vets, µs`.
    pub(super) short: String,
    pub(super) baseline: String,
    pub(super) value: String,
    /// `+62.2 [57.1, 67.3]`.
    pub(super) difference: String,
    /// `+18.4 % [16.9, 19.8]`.
    pub(super) ratio: String,
    pub(super) verdict: Judgement,
}

pub(super) fn row(variant: &VariantFindings, finding: &Finding) -> Row {
    let scale = Scale::of_values(finding);
    let difference = finding.range(false).map(|range| Number::estimate(scale, range));
    let ratio = finding.range(true).map(|range| Number::estimate_with_unit(Scale::of_ratio(finding), range));
    let (mut difference, mut ratio) = (Cell::from(difference).to_string(), Cell::from(ratio).to_string());
    if finding.difference.is_none() {
        // Too few for an interval: then every round speaks for itself.
        let written = |numbers: Vec<f64>, scale: Scale| {
            numbers.into_iter().map(|number| scale.signed(number)).collect::<Vec<_>>().join(" ")
        };
        let ratios: Option<Vec<f64>> = finding.rounds.iter().map(|round| round.ratio).collect();
        match ratios {
            Some(ratios) if finding.relative => {
                ratio = format!("{} %", written(ratios, units::percent(0.1, Some(0.01))))
            }
            _ => difference = written(finding.rounds.iter().map(|round| round.difference).collect(), scale),
        }
    }
    let operation = finding.operation.as_ref().map_or_else(String::new, |name| format!(" · {}", clean(name)));
    Row {
        name: units::named(&whose(finding), scale.unit()),
        short: match &finding.service {
            Some(service) => units::named(&format!("  · {}{operation}", clean(service)), scale.unit()),
            None => units::named(&finding.title, scale.unit()),
        },
        baseline: scale.number(finding.baseline),
        value: scale.number(finding.value),
        difference,
        ratio,
        verdict: variant.judgement(finding),
    }
}

/// What a style sheet calls it.
pub(super) fn class(verdict: Judgement) -> String {
    verdict.words().replace(' ', "-")
}

/// What stands above a table, if it is not what it is folded away under.
pub(super) fn title(section: &Section) -> String {
    if section.fold.as_ref() == Some(&section.title) { String::new() } else { clean(&section.title) }
}

/// The findings for a short table: the prominent ones and whatever has a budget.
pub(super) fn prominent(variant: &VariantFindings) -> Vec<&Finding> {
    variant.metrics.iter().filter(|finding| finding.place != Place::Detail || finding.budget.is_some()).collect()
}

/// `OpenTelemetry (otel)`.
pub(super) fn heading(variant: &VariantFindings) -> String {
    let bought = variant.ledger.as_ref().is_some_and(|ledger| ledger.bought_with_loss);
    let mark = if bought { ", bought with lost spans" } else { "" };
    if variant.label == variant.name || variant.kind == VariantKind::Placebo {
        format!("{}{mark}", clean(&variant.label))
    } else {
        format!("{} ({}){mark}", clean(&variant.label), clean(&variant.name))
    }
}

/// What stands under the table of an A/A control of which a row says that it differs: "costs" is not to be believed there.
pub(super) fn measurement_error(variant: &VariantFindings) -> Option<&'static str> {
    let differs = |finding: &&Finding| variant.judgement(finding).is_difference();
    let is_wrong = variant.kind == VariantKind::Placebo && prominent(variant).iter().any(differs);
    is_wrong.then_some("Both sides are the same service: a difference here is measurement error. See the noise floor.")
}

/// What the sink did wrong on purpose.
pub(super) fn faults(variant: &VariantFindings) -> Option<String> {
    let faults = variant.faults.as_deref()?;
    let faulted = |count: u64, what: &str| (count > 0).then(|| format!("{} {what}", units::count(count)));
    let counts = variant
        .ledger
        .iter()
        .flat_map(|ledger| [faulted(ledger.faulted, "requests not served"), faulted(ledger.dropped, "spans dropped")]);
    let counts: Vec<String> = counts.flatten().collect();
    let counts = if counts.is_empty() { String::new() } else { format!(" ({} in all runs)", counts.join(", ")) };
    Some(format!("the sink {}{counts}", clean(faults)))
}

/// The sentences in the order in which they are read: the variants', then the noise floor, which says how much of the rest to
/// believe. A void study has only the latter.
pub(super) fn answers(findings: &Findings) -> (Vec<&Conclusion>, Vec<&Conclusion>) {
    let placebo = findings.placebo().map(|it| it.name.as_str());
    let (floor, answers): (Vec<_>, Vec<_>) =
        findings.conclusions.iter().partition(|it| Some(it.variant.as_str()) == placebo);
    if findings.void.is_some() { (Vec::new(), floor) } else { (answers, floor) }
}

/// The sentences of the ladders and doses; a void study has none.
pub(super) fn ladder_words(findings: &Findings) -> Vec<String> {
    let ladders = findings.ladders.iter().map(|ladder| &ladder.words);
    let words = ladders.chain(findings.doses.iter().map(|dose| &dose.words));
    words.filter(|_| findings.void.is_none()).cloned().collect()
}

/// What was measured, and how, in sentences.
pub(super) fn setting_and_design(findings: &Findings) -> String {
    let setting = format!("{}.", setting(findings));
    match &findings.design {
        Some(design) => format!("{setting} {}", design.words),
        None => setting,
    }
}

/// What was measured, in one line.
pub(super) fn setting(findings: &Findings) -> String {
    let load = &findings.load;
    let rounds = match findings.rounds_begun {
        1 => "1 round".to_owned(),
        begun if begun == findings.rounds => format!("{begun} rounds"),
        begun => format!("{begun} rounds ({} of them complete)", findings.rounds),
    };
    if let Some(tools) = &load.imported {
        return format!("{rounds}, imported from {}", clean(tools));
    }
    let windows = if load.fixed_work { "windows that end with the work, about" } else { "windows of" };
    let (to, requests) = if load.url.is_empty() {
        (String::new(), String::new())
    } else {
        let counts = (units::count(load.requests), units::count(load.errors));
        (format!(" to {}", clean(&load.url)), format!("; {} requests answered, {} failed", counts.0, counts.1))
    };
    format!("{rounds}, {windows} {} s, {}{to}{requests}", plain(load.window_s), clean(&load.pacing))
}

/// The account of the spans, in parts.
pub(super) fn ledger(ledger: &LedgerFindings) -> Vec<String> {
    let mut parts = vec![
        format!("{} wanted", units::count(ledger.wanted)),
        format!("{} {}", units::count(ledger.saved), where_to(ledger)),
    ];
    parts.push(match ledger.lost {
        0 => "none lost".to_owned(),
        lost => {
            let stages: Vec<String> = ledger
                .by_stage
                .iter()
                .map(|(stage, spans)| format!("{} {}", clean(stage), units::count(*spans)))
                .collect();
            let stages = if stages.is_empty() { String::new() } else { format!("; {}", stages.join(", ")) };
            let (share, worst) = (units::share(ledger.loss_ratio), units::share(ledger.worst_loss_ratio));
            format!("{} lost ({share}, worst run {worst}{stages})", units::count(lost))
        }
    });
    for (count, name) in [(ledger.duplicates, "twice"), (ledger.foreign, "of other traffic")] {
        if count > 0 {
            parts.push(format!("{} {name}", units::count(count)));
        }
    }
    if ledger.sampled_out > 0 {
        parts.push(format!("{} sampled out", units::count(ledger.sampled_out)));
    }
    if ledger.unexplained != 0 {
        parts.push(format!("{} unexplained", units::signed_count(ledger.unexplained)));
    }
    let how = match (ledger.declared, ledger.calibrated) {
        (true, _) => "declared",
        (_, true) => "by calibration",
        _ => "learned",
    };
    parts.push(format!("{} per request ({how})", plain(ledger.spans_per_request)));
    if ledger.lost > 0 && !ledger.by_operation.is_empty() {
        let worst = ledger.by_operation.iter().take(3).map(|it| {
            format!("{} `{}` lacks {}", clean(&it.service), clean(&it.operation), units::share(it.loss_ratio))
        });
        parts.push(worst.collect::<Vec<_>>().join(", "));
    }
    if ledger.by_count {
        parts.push("by count alone: not tied to requests".to_owned());
    }
    if let Some(cost) = delivered(ledger) {
        parts.push(cost);
    }
    parts
}

fn where_to(ledger: &LedgerFindings) -> String {
    match &ledger.counted_by {
        Some(service) => format!("counted by {}", clean(service)),
        None => "arrived".to_owned(),
    }
}

/// `15.5 µs [14.3, 16.8] of CPU per span that arrived`, or `… of CPU without JIT …`.
pub(super) fn delivered(ledger: &LedgerFindings) -> Option<String> {
    let range = Range {
        value: ledger.cpu_us_per_delivered_span?,
        low: ledger.cpu_us_per_delivered_span_low?,
        high: ledger.cpu_us_per_delivered_span_high?,
    };
    let cost =
        Number { signed: false, ..Number::estimate_with_unit(Scale::of("us", range.high, range.half_width()), range) };
    let cpu = if ledger.cpu_without_jit { "CPU without JIT" } else { "CPU" };
    Some(format!("{cost} of {cpu} per span that arrived"))
}

/// At the user's traffic and prices, in one line: `+0.4 cores [0.3, 0.5], +1,000 MiB [990, 1,010], …`.
pub(super) fn money(money: &MoneyFindings) -> String {
    let amount = |range: Range, unit: &str| Number::estimate_with_unit(Scale::of_range(unit, range), range);
    let mut parts: Vec<String> = Vec::new();
    parts.extend(money.cores.map(|it| format!("{} cores", amount(it, ""))));
    parts.extend(money.memory_bytes.map(|it| format!("{} of memory", amount(it, "B"))));
    parts.extend(money.machines.map(|it| format!("{} machines", amount(it, ""))));
    parts.extend(money.per_year.map(|it| format!("{} {} a year", amount(it, ""), clean(&money.currency))));
    let instances =
        if money.instances == 1 { "1 instance".to_owned() } else { format!("{} instances", money.instances) };
    format!("At {} requests/s on {instances}: {}.", plain(money.requests_per_second), parts.join(", "))
}

/// What the instrument took, in one line.
pub(super) fn instrument(findings: &Findings) -> Option<String> {
    let instrument = &findings.instrument;
    let cost = |before: &str, value: Option<f64>, after: &str| {
        value.map(|it| format!("{before}{}{after}", Scale::of("us", it, Some(it / 10.0)).with_unit(it)))
    };
    let mut parts: Vec<String> = [
        cost("load generator ", instrument.load_cpu_us_per_request, " of CPU per request"),
        cost("sink ", instrument.sink_cpu_us_per_span, " per span"),
        cost("requests sent ", instrument.send_lag_p99_us, " late at p99 in the worst run"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() {
        return None;
    }
    if !instrument.load_parts.is_empty() {
        parts.push("from other machines".to_owned());
    } else if let Some(apart) = instrument.cores_apart {
        parts.push(if apart { "on cores of its own" } else { "on the same cores as the subject" }.to_owned());
    }
    Some(format!("The instrument: {}.", parts.join(", ")))
}

/// How to read the tables.
pub(super) fn reading(findings: &Findings) -> Vec<String> {
    let mut lines = Vec::new();
    let levels = || findings.variants.iter().flat_map(|variant| &variant.metrics).filter_map(|finding| finding.level);
    if let Some(level) = levels().reduce(f64::min) {
        lines.push(format!(
            "Baseline and variant are medians over the rounds; differences are Hodges-Lehmann estimates from the \
             differences within each round, with their exact signed-rank interval ({}).",
            Scale::of("share", level, Some(0.01)).with_unit(level)
        ));
    }
    lines.extend(agreement(findings));
    lines.extend(noise_by_level(findings));
    if findings.comparisons.made > 0 {
        let chance = findings.comparisons.expected_by_chance;
        lines.push(format!(
            "Of {} comparisons about {} would look real by chance; metrics without a budget are exploratory.",
            findings.comparisons.made,
            if chance < 1.0 { format!("{chance:.1}") } else { format!("{chance:.0}") }
        ));
    }
    lines
}

/// A variant in a list of all of them.
fn short_label(variant: &VariantFindings) -> String {
    if variant.kind == VariantKind::Placebo { variant.kind.name().to_owned() } else { clean(&variant.label) }
}

/// Whether blocks show what users see.
fn agreement(findings: &Findings) -> Option<String> {
    let baseline = findings.design.as_ref().and_then(|design| design.baseline_against_alone);
    let variants = findings.variants.iter().filter_map(|it| Some((short_label(it), it.blocks_against_alone?)));
    let all = baseline.map(|ratio| ("baseline".to_owned(), ratio)).into_iter().chain(variants);
    let parts = all.map(|(label, ratio)| {
        let scale = units::percent(ratio.magnitude(), ratio.half_width());
        format!("{label} {}", scale.signed_range(ratio))
    });
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| format!("CPU per request in blocks against alone: {}.", parts.join(", ")))
}

/// Where the noise of CPU per request comes from.
fn noise_by_level(findings: &Findings) -> Option<String> {
    let parts = findings.variants.iter().filter_map(|it| Some((short_label(it), it.variance.as_ref()?)));
    let parts = parts.map(|(label, it)| {
        let percent = |sd: f64| units::percent(sd, None).with_unit(sd);
        let helps = if it.rounds_help { "more rounds help" } else { "a longer window helps" };
        format!("{label} {} and {} ({helps})", percent(it.between), percent(it.within))
    });
    let parts: Vec<String> = parts.collect();
    let what = "Noise of a round's CPU per request over the baseline's, between starts and within a start";
    (!parts.is_empty()).then(|| format!("{what}: {}.", parts.join(", ")))
}

/// A number as it was given.
fn plain(number: f64) -> String {
    units::chosen("", number)
}

/// A space at which no line ends.
pub(super) const NO_BREAK: &str = "\u{a0}";

/// With units held to their numbers, and single spaces.
pub(super) fn glued(text: &str) -> String {
    const UNITS: [&str; 10] = ["%", "µs", "ms", "ms/s", "s", "B", "KiB", "MiB", "GiB", "requests/s"];
    let mut glued = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        let unit = UNITS.contains(&word.trim_end_matches([',', '.', ';', ':', ')']));
        if unit && glued.ends_with(|c: char| c.is_ascii_digit()) {
            glued.push_str(NO_BREAK);
        } else if !glued.is_empty() {
            glued.push(' ');
        }
        glued.push_str(word);
    }
    glued
}

/// Lines of at most `width` characters, broken at spaces (not at `NO_BREAK`); a longer word has one to itself.
#[must_use]
pub fn lines(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Without control characters: a label must not move the cursor or end the line.
pub(super) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A metric, and whose it is: `heap growth · vets`.
pub(super) fn whose(finding: &Finding) -> String {
    let of = [&finding.service, &finding.operation].into_iter().flatten().map(|name| format!(" · {}", clean(name)));
    std::iter::once(finding.title.clone()).chain(of).collect()
}

/// At most `width` characters, the end cut off.
pub(super) fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let start: String = text.chars().take(width - 1).collect();
    format!("{}…", start.trim_end())
}
