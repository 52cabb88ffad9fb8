//! The pages of the server: what the templates print. Numbers come from `findings.json` and are formatted, never computed.

use std::path::Path;

use minijinja::Error;
use minijinja::value::{Serde, Value};
use serde::Serialize;
use unladen_judge::findings::{Finding, Findings, Place, VariantFindings, VariantKind};
use unladen_judge::history::{self, Change, Pair, Trend};
use unladen_judge::units::{self, Scale};
use unladen_report::template_environment;

use super::folders::{Folder, Line};

const TEMPLATES: [(&str, &str); 6] = [
    ("layout", include_str!("layout.html.j2")),
    ("list", include_str!("list.html.j2")),
    ("study", include_str!("study.html.j2")),
    ("compare", include_str!("compare.html.j2")),
    ("live", include_str!("live.html.j2")),
    ("files", include_str!("files.html.j2")),
];

fn render(name: &str, context: impl Serialize) -> Result<String, Error> {
    let mut environment = template_environment()?;
    // What is encoded has nothing left that could act on a page.
    environment.add_filter("encoded", |text: String| Value::from_safe_string(encoded(&text)));
    environment.add_global("version", env!("CARGO_PKG_VERSION"));
    for (name, template) in TEMPLATES {
        environment.add_template(name, template)?;
    }
    environment.get_template(name)?.render(Serde(context))
}

/// As it stands in the path or the query of an address; slashes stay.
pub(super) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => encoded.push(byte.into()),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[derive(Serialize)]
struct Study {
    name: String,
    runs: Vec<Run>,
    /// Whether a trend can be shown.
    judged: usize,
}

#[derive(Serialize)]
struct Run {
    line: Line,
    when: String,
    report: bool,
    judged: bool,
}

impl Run {
    fn of(folder: &Folder) -> Self {
        let line = folder.line();
        Self {
            when: line.started.get(..16).unwrap_or_default().replace('T', " "),
            report: folder.path.join("report.html").is_file(),
            judged: folder.findings.is_some(),
            line,
        }
    }
}

/// All studies with their runs.
pub(super) fn list(folders: &[Folder]) -> Result<String, Error> {
    let mut studies: Vec<Study> = Vec::new();
    for folder in folders {
        let name = folder.study();
        let at = studies.iter().position(|it| it.name == name).unwrap_or_else(|| {
            studies.push(Study { name, runs: Vec::new(), judged: 0 });
            studies.len() - 1
        });
        studies[at].judged += usize::from(folder.findings.is_some());
        studies[at].runs.push(Run::of(folder));
    }
    #[derive(Serialize)]
    struct Context {
        studies: Vec<Study>,
        runs: usize,
    }
    render("list", Context { studies, runs: folders.len() })
}

/// The trends of a study; its run folders come the oldest first.
pub(super) fn trends(folders: &[Folder]) -> Vec<Trend> {
    let judged = folders.iter().filter_map(|it| Some((it, it.findings.as_deref()?)));
    let results: Vec<_> = judged.map(|(folder, findings)| history::Result { id: &folder.id, findings }).collect();
    history::trends(&results)
}

/// A study over its runs.
pub(super) fn study(name: &str, folders: &[Folder]) -> Result<String, Error> {
    #[derive(Serialize)]
    struct Context<'a> {
        name: &'a str,
        runs: Vec<Run>,
        changes: Vec<String>,
        judged: usize,
        data: String,
    }
    #[derive(Serialize)]
    struct Data<'a> {
        trends: &'a [Trend],
        /// When each run started.
        started: Vec<(&'a str, String)>,
    }
    let trends = trends(folders);
    let data = Data { trends: &trends, started: folders.iter().map(|it| (it.id.as_str(), it.started())).collect() };
    let context = Context {
        name,
        runs: folders.iter().rev().map(Run::of).collect(),
        changes: trends.iter().flat_map(|trend| changes(trend, folders)).collect(),
        judged: folders.iter().filter(|it| it.findings.is_some()).count(),
        data: in_element(&data),
    };
    render("study", context)
}

/// `CPU per request of OpenTelemetry: more in b (+25 % [23, 27]) than in a (+17 % [16, 19]).`
fn changes(trend: &Trend, folders: &[Folder]) -> Vec<String> {
    let mut before: Option<&str> = None;
    let mut found = Vec::new();
    for point in trend.points.iter().filter(|it| it.difference.is_some()) {
        if let (Some(change), Some(before)) = (point.change, before) {
            let of = |id: &str| {
                let findings = folders.iter().find(|it| it.id == id)?.findings.as_deref()?;
                trend.key.find(findings).and_then(|(_, finding)| units::estimate(finding, trend.relative))
            };
            let (then, now) = (of(before).unwrap_or_default(), of(&point.id).unwrap_or_default());
            let what = if change == Change::Up { "more" } else { "less" };
            let whose = trend.key.service.as_ref().map(|it| format!(" · {it}")).unwrap_or_default();
            found.push(format!(
                "{}{whose}, {}: {what} in {} ({now}) than in {before} ({then}).",
                trend.title, trend.label, point.id
            ));
        }
        before = Some(&point.id);
    }
    found
}

#[derive(Serialize)]
struct Row {
    variant: String,
    metric: String,
    baselines: [String; 2],
    before: String,
    after: String,
    /// `more`, `less`, `same`, `unknown`.
    change: &'static str,
    words: &'static str,
    detail: bool,
}

/// A row of the comparison; the placebo has none, being the baseline once more.
fn row(pair: &Pair<'_>) -> Option<Row> {
    let (variant, finding) = pair.after.or(pair.before)?;
    if variant.kind == VariantKind::Placebo {
        return None;
    }
    let without = |finding: &Finding| format!("{}, no interval", Scale::of_values(finding).with_unit(finding.value));
    let side = |side: Option<(&VariantFindings, &Finding)>| {
        let words = |finding: &Finding| units::estimate(finding, pair.relative).unwrap_or_else(|| without(finding));
        side.map_or_else(|| "–".to_owned(), |(_, finding)| words(finding))
    };
    let baseline = |side: Option<(&VariantFindings, &Finding)>| {
        side.map_or_else(|| "–".to_owned(), |(_, finding)| Scale::of_values(finding).with_unit(finding.baseline))
    };
    let (change, words) = match pair.change {
        Some(Change::Up) => ("more", "more"),
        Some(Change::Down) => ("less", "less"),
        None if pair.comparable => ("same", "intervals overlap"),
        None => ("unknown", "cannot be compared"),
    };
    let of = |name: &Option<String>| name.as_ref().map(|it| format!(" · {it}")).unwrap_or_default();
    Some(Row {
        variant: variant.label.clone(),
        metric: format!("{}{}{}", finding.title, of(&finding.service), of(&finding.operation)),
        baselines: [baseline(pair.before), baseline(pair.after)],
        before: side(pair.before),
        after: side(pair.after),
        change,
        words,
        detail: finding.place == Place::Detail,
    })
}

/// Two results of a study side by side.
pub(super) fn compare(
    before: &Folder,
    of_before: &Findings,
    after: &Folder,
    of_after: &Findings,
) -> Result<String, Error> {
    #[derive(Serialize)]
    struct Context {
        study: String,
        before: Run,
        after: Run,
        rows: Vec<Row>,
        setting: Vec<[String; 3]>,
        losses: Vec<[String; 3]>,
    }
    let context = Context {
        study: after.study(),
        before: Run::of(before),
        after: Run::of(after),
        rows: history::compare(of_before, of_after).iter().filter_map(row).collect(),
        setting: setting(of_before, of_after),
        losses: losses(of_before, of_after),
    };
    render("compare", context)
}

/// What was different about the machine, the load and the commands: whoever compares has to know.
fn setting(before: &Findings, after: &Findings) -> Vec<[String; 3]> {
    const KEYS: [&str; 8] =
        ["unladen", "commit", "cpu", "cores", "kernel", "distribution", "virtualisation", "subject_cores"];
    let of = |findings: &Findings, key: &str| match findings.host.get(key) {
        None | Some(serde_json::Value::Null) => String::new(),
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let mut rows: Vec<[String; 3]> = KEYS.map(|key| [key.replace('_', " "), of(before, key), of(after, key)]).into();
    let load = |it: &Findings| format!("{}, {}, windows of {} s", it.load.url, it.load.pacing, it.load.window_s);
    rows.push(["load".to_owned(), load(before), load(after)]);
    rows.push(["rounds".to_owned(), before.rounds.to_string(), after.rounds.to_string()]);
    let commands = |it: &Findings| {
        let line = |it: &unladen_judge::findings::CommandLine| match &it.variant {
            Some(variant) => format!("{} ({variant}): {}", it.service, it.command),
            None => format!("{}: {}", it.service, it.command),
        };
        it.commands.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    rows.push(["commands".to_owned(), commands(before), commands(after)]);
    rows.retain(|[_, before, after]| before != after);
    rows
}

/// Lost spans on both sides, of every variant that wanted any.
fn losses(before: &Findings, after: &Findings) -> Vec<[String; 3]> {
    let words = |findings: &Findings, name: &str| {
        let variant = findings.variants.iter().find(|it| it.name == name);
        let ledger = variant.and_then(|it| it.ledger.as_ref()).filter(|it| it.wanted > 0);
        ledger.map_or_else(
            || "–".to_owned(),
            |it| format!("{} of {} ({})", units::count(it.lost), units::count(it.wanted), units::share(it.loss_ratio)),
        )
    };
    let rows = after.variants.iter().map(|it| [it.label.clone(), words(before, &it.name), words(after, &it.name)]);
    rows.filter(|[_, before, after]| before != "–" || after != "–").collect()
}

/// A study under way.
pub(super) fn live(folder: &Folder) -> Result<String, Error> {
    #[derive(Serialize)]
    struct Context {
        study: String,
        id: String,
        running: bool,
    }
    render("live", Context { study: folder.study(), id: folder.id.clone(), running: folder.live.is_some() })
}

/// What is in a folder.
pub(super) fn files(folder: &Folder, path: &Path, entries: &[(String, Option<u64>)]) -> Result<String, Error> {
    #[derive(Serialize)]
    struct Context {
        study: String,
        id: String,
        path: String,
        entries: Vec<(String, Option<String>)>,
    }
    let size = |bytes: u64| Scale::of("B", bytes as f64, None).with_unit(bytes as f64);
    let entries = entries.iter().map(|(name, bytes)| (name.clone(), bytes.map(size))).collect();
    render("files", Context { study: folder.study(), id: folder.id.clone(), path: path.display().to_string(), entries })
}

/// As JSON that cannot end the element around it.
fn in_element(data: &impl Serialize) -> String {
    serde_json::to_string(data).unwrap_or_default().replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_keep_their_slashes_and_nothing_else() {
        assert_eq!(encoded("runs/a b?c#d&é"), "runs/a%20b%3Fc%23d%26%C3%A9");
    }
}
