//! Every number as Parquet, for DuckDB, pandas and the like: one row per finding, and below it one per round of it.
//!
//! | column | type | |
//! |---|---|---|
//! | `study`, `started` | VARCHAR | name of the study; when it started, UTC |
//! | `variant`, `label`, `kind` | VARCHAR | as in `findings.json` |
//! | `metric`, `service`, `operation`, `unit` | VARCHAR | as in `findings.json`; `service` and `operation` may be NULL |
//! | `round` | INTEGER | NULL: the finding over all rounds; else the round |
//! | `baseline`, `value`, `difference`, `ratio` | DOUBLE | of the finding, or of the round |
//! | `difference_low`, `difference_high`, `ratio_low`, `ratio_high`, `level` | DOUBLE | the interval; NULL for a round |
//! | `verdict`, `budget`, `budget_outcome` | VARCHAR | NULL for a round |
//!
//! The ledger's totals are rows without a baseline: `spans_wanted`, `spans_saved`, `spans_lost`, `spans_duplicates`,
//! `spans_unexplained`.

use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use unladen_judge::findings::{Finding, Findings, LedgerFindings, RoundValue, VariantFindings};

const TEXTS: [&str; 12] = [
    "study",
    "started",
    "variant",
    "label",
    "kind",
    "metric",
    "service",
    "operation",
    "unit",
    "verdict",
    "budget",
    "budget_outcome",
];
const NUMBERS: [&str; 9] = [
    "baseline",
    "value",
    "difference",
    "difference_low",
    "difference_high",
    "ratio",
    "ratio_low",
    "ratio_high",
    "level",
];

/// One row: the texts, the round and the numbers, in the order of the columns.
struct Row<'a> {
    texts: [Option<&'a str>; TEXTS.len()],
    round: Option<u32>,
    numbers: [Option<f64>; NUMBERS.len()],
}

pub(super) fn render(findings: &Findings) -> Result<Vec<u8>, ParquetError> {
    let rows = rows(findings);
    let column = |kind: &str, name: &str| format!("optional {kind} {name}");
    let texts = TEXTS.iter().map(|name| format!("{} (UTF8);", column("binary", name)));
    let numbers = NUMBERS.iter().map(|name| format!("{};", column("double", name)));
    let columns: String = texts.chain(["optional int32 round;".to_owned()]).chain(numbers).collect();
    let schema = Arc::new(parse_message_type(&format!("message findings {{ {columns} }}"))?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_created_by(format!("unladen {}", env!("CARGO_PKG_VERSION")))
        .build();
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    let mut number = 0;
    while let Some(mut column) = group.next_column()? {
        if number < TEXTS.len() {
            let (values, known) = known(&rows, |row| row.texts[number].map(ByteArray::from));
            column.typed::<ByteArrayType>().write_batch(&values, Some(&known), None)?;
        } else if number == TEXTS.len() {
            let (values, known) = known(&rows, |row| row.round.and_then(|round| i32::try_from(round).ok()));
            column.typed::<Int32Type>().write_batch(&values, Some(&known), None)?;
        } else {
            let (values, known) = known(&rows, |row| row.numbers[number - TEXTS.len() - 1]);
            column.typed::<DoubleType>().write_batch(&values, Some(&known), None)?;
        }
        column.close()?;
        number += 1;
    }
    group.close()?;
    file.into_inner()
}

/// The values that are there, and which are.
fn known<'a, 'b, T>(rows: &'b [Row<'a>], of: impl Fn(&'b Row<'a>) -> Option<T>) -> (Vec<T>, Vec<i16>) {
    let all: Vec<Option<T>> = rows.iter().map(of).collect();
    let known = all.iter().map(|it| i16::from(it.is_some())).collect();
    (all.into_iter().flatten().collect(), known)
}

fn rows(findings: &Findings) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for variant in &findings.variants {
        for finding in &variant.metrics {
            rows.push(of_finding(findings, variant, finding));
            rows.extend(finding.rounds.iter().map(|round| of_round(findings, variant, finding, round)));
        }
        rows.extend(variant.ledger.iter().flat_map(|ledger| of_ledger(findings, variant, ledger)));
    }
    rows
}

fn of_finding<'a>(findings: &'a Findings, variant: &'a VariantFindings, it: &'a Finding) -> Row<'a> {
    let budget = it.budget.as_ref();
    let mut texts = texts(findings, variant, &it.metric, &it.unit);
    (texts[6], texts[7]) = (it.service.as_deref(), it.operation.as_deref());
    (texts[9], texts[10]) = (Some(it.verdict.name()), budget.map(|it| it.limit.as_str()));
    texts[11] = budget.map(|it| it.outcome.name());
    let numbers = [
        Some(it.baseline),
        Some(it.value),
        it.difference,
        it.difference_low,
        it.difference_high,
        it.ratio,
        it.ratio_low,
        it.ratio_high,
        it.level,
    ];
    Row { texts, round: None, numbers }
}

fn of_round<'a>(findings: &'a Findings, variant: &'a VariantFindings, it: &'a Finding, round: &RoundValue) -> Row<'a> {
    let mut texts = texts(findings, variant, &it.metric, &it.unit);
    (texts[6], texts[7]) = (it.service.as_deref(), it.operation.as_deref());
    let mut numbers = [None; NUMBERS.len()];
    (numbers[0], numbers[1], numbers[2], numbers[5]) =
        (Some(round.baseline), Some(round.value), Some(round.difference), round.ratio);
    Row { texts, round: Some(round.round), numbers }
}

fn of_ledger<'a>(findings: &'a Findings, variant: &'a VariantFindings, ledger: &LedgerFindings) -> [Row<'a>; 5] {
    let totals = [
        ("spans_wanted", ledger.wanted as f64),
        ("spans_saved", ledger.saved as f64),
        ("spans_lost", ledger.lost as f64),
        ("spans_duplicates", ledger.duplicates as f64),
        ("spans_unexplained", ledger.unexplained as f64),
    ];
    totals.map(|(metric, total)| {
        let mut numbers = [None; NUMBERS.len()];
        numbers[1] = Some(total);
        Row { texts: texts(findings, variant, metric, "count"), round: None, numbers }
    })
}

/// The texts that every row has.
fn texts<'a>(
    findings: &'a Findings,
    variant: &'a VariantFindings,
    metric: &'a str,
    unit: &'a str,
) -> [Option<&'a str>; TEXTS.len()] {
    let started = findings.host.get("started").and_then(serde_json::Value::as_str);
    let mut texts = [None; TEXTS.len()];
    (texts[0], texts[1]) = (Some(findings.study.as_str()), started);
    (texts[2], texts[3], texts[4]) =
        (Some(variant.name.as_str()), Some(variant.label.as_str()), Some(variant.kind.name()));
    (texts[5], texts[8]) = (Some(metric), Some(unit));
    texts
}
