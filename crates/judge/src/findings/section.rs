//! Tables of a report as data: the judge fills them in ([`crate::sections`]), and every format for people prints whatever stands in them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Finding, Judgement, Outcome, Place, Range};
use crate::units::{self, Scale};

/// What an unknown number looks like.
pub const MISSING: &str = "–";

/// A table of the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Section {
    /// What it belongs to: `budgets`, `variants`, `parts` (of the cost), `answers`, `sampled`, `operations` or `rounds`.
    #[schemars(with = "String")]
    pub topic: Topic,
    /// `table` (in every report) or `detail` (in the long ones).
    #[schemars(with = "String")]
    pub place: Place,
    /// What it is called.
    pub title: String,
    /// Heading under which it is folded away, with its neighbours of the same heading; `null`: it is in sight.
    pub fold: Option<String>,
    /// How to read it; a terminal has no room for that.
    pub notes: Vec<String>,
    /// Its columns; the first has the names of the rows.
    pub columns: Vec<Column>,
    /// Its rows: a cell for each column.
    pub rows: Vec<Vec<Cell>>,
    /// A drawing of it, relative to the run folder.
    pub drawing: Option<String>,
}

/// What a table belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// The user's limits.
    Budgets,
    /// Baseline and variants.
    Variants,
    /// Where the cost comes from.
    Parts,
    /// Answers by request and kind.
    Answers,
    /// What sampling hides.
    Sampled,
    /// Operations, from their spans.
    Operations,
    /// Every round.
    Rounds,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Column {
    /// What is in it.
    pub title: String,
    /// Unit of its numbers as it is printed; empty: they have none, or one each.
    pub unit: String,
    /// `left`, `right` or `wrapped`.
    #[schemars(with = "String")]
    pub align: Align,
}

/// How the cells of a column stand below each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Align {
    /// Names.
    Left,
    /// Numbers.
    Right,
    /// Sentences, which may go over several lines.
    Wrapped,
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cell {
    /// There is no such number.
    Missing,
    /// A name, or words.
    Text(String),
    /// A number.
    Number(Number),
    /// `costs`, `saves`, `no_difference`, `cannot_tell`, `too_few_rounds` or `no_verdict`.
    Verdict(#[schemars(with = "String")] Judgement),
    /// How a budget came out: `pass`, `fail` or `undecided`.
    Outcome(#[schemars(with = "String")] Outcome),
}

/// A number, perhaps with its interval, in the unit in which it is printed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Number {
    /// It, not rounded.
    pub value: f64,
    /// Low end of its interval, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// High end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Decimals that mean something.
    pub decimals: usize,
    /// Whether it is a difference, and a plus stands before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub signed: bool,
    /// Its unit, if the head of the column does not name it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// What is said of it alone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl Section {
    pub(crate) fn new(topic: Topic, title: String, columns: Vec<Column>, rows: Vec<Vec<Cell>>) -> Self {
        let (fold, notes, drawing) = (None, Vec::new(), None);
        Self { topic, place: Place::Table, title, fold, notes, columns, rows, drawing }
    }

    /// Of columns with their cells, and the names of the rows under a head.
    pub(crate) fn of_columns(
        topic: Topic,
        title: String,
        head: &str,
        names: Vec<String>,
        columns: Vec<(Column, Vec<Cell>)>,
    ) -> Self {
        let mut rows: Vec<Vec<Cell>> = names.into_iter().map(|name| vec![name.into()]).collect();
        let mut heads = vec![Column::left(head)];
        for (column, cells) in columns {
            heads.push(column);
            rows.iter_mut().zip(cells).for_each(|(row, cell)| row.push(cell));
        }
        Self::new(topic, title, heads, rows)
    }
}

impl Column {
    fn new(title: impl Into<String>, unit: &str, align: Align) -> Self {
        Self { title: title.into(), unit: unit.to_owned(), align }
    }

    pub(crate) fn left(title: impl Into<String>) -> Self {
        Self::new(title, "", Align::Left)
    }

    /// Numbers without a unit, or each with its own.
    pub(crate) fn right(title: impl Into<String>) -> Self {
        Self::new(title, "", Align::Right)
    }

    /// Numbers on one scale.
    pub(crate) fn on(scale: Scale, title: impl Into<String>) -> Self {
        Self::new(title, scale.unit(), Align::Right)
    }

    /// `CPU per request, µs`.
    #[must_use]
    pub fn head(&self) -> String {
        units::named(&self.title, &self.unit)
    }
}

impl Number {
    pub(crate) fn of(scale: Scale, value: f64) -> Self {
        Self { value: scale.scaled(value), decimals: scale.decimals, ..Self::default() }
    }

    pub(crate) fn count(value: u64) -> Self {
        Self { value: value as f64, ..Self::default() }
    }

    pub(crate) fn difference(scale: Scale, value: f64) -> Self {
        Self { signed: true, ..Self::of(scale, value) }
    }

    /// The difference that was found, with its interval if it has one.
    pub(crate) fn found(scale: Scale, finding: &Finding) -> Self {
        match finding.range(false) {
            Some(range) => Self::estimate(scale, range),
            None => Self::difference(scale, finding.value - finding.baseline),
        }
    }

    /// A difference with its interval.
    #[must_use]
    pub fn estimate(scale: Scale, range: Range) -> Self {
        let ends = [range.low, range.high].map(|end| Some(scale.scaled(end)));
        Self { low: ends[0], high: ends[1], ..Self::difference(scale, range.value) }
    }

    /// The same with its unit: `+18.4 % [16.9, 19.8]`.
    #[must_use]
    pub fn estimate_with_unit(scale: Scale, range: Range) -> Self {
        Self { unit: scale.unit().to_owned(), ..Self::estimate(scale, range) }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = |value: f64, signed: bool| units::write_number(value, self.decimals, signed);
        out.write_str(&written(self.value, self.signed))?;
        if !self.unit.is_empty() {
            write!(out, " {}", self.unit)?;
        }
        if let (Some(low), Some(high)) = (self.low, self.high) {
            write!(out, " [{}, {}]", written(low, false), written(high, false))?;
        }
        if self.note.is_empty() { Ok(()) } else { write!(out, " {}", self.note) }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => out.write_str(MISSING),
            Self::Text(text) => out.write_str(text),
            Self::Number(number) => number.fmt(out),
            Self::Verdict(verdict) => out.write_str(verdict.words()),
            Self::Outcome(outcome) => out.write_str(outcome.name()),
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Number> for Cell {
    fn from(number: Number) -> Self {
        Self::Number(number)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(known: Option<T>) -> Self {
        known.map_or(Self::Missing, Into::into)
    }
}
