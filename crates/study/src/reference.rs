//! `docs/reference/study.md`: the reference of the study file, made from its JSON Schema and a short head with two examples.
//!
//! A test holds the committed copy to what is made here; `UNLADEN_BLESS=1 cargo test -p unladen-study` writes it anew.

use std::fmt::Write as _;

use serde_json::Value;

use super::metrics::{Compared, METRICS, Metric, Worse};
use super::schema::{properties, reference, schema, target};

/// What is written by hand.
const HEAD: &str = include_str!("reference.md");

/// The whole document.
#[must_use]
pub fn reference_markdown() -> String {
    let schema = schema();
    let mut text = HEAD.to_owned();
    text.push_str("\n## All keys\n\nKeys without a default must be there.\n");
    let sections = sections(&schema);
    sections.iter().for_each(|section| section.write(&schema, &sections, &mut text));
    text.push_str("\n## Metrics and budgets\n\n");
    text.push_str(
        "A budget is a percentage of the baseline (`10%`) or an amount in the metric's unit (`50MiB`, `100us`). ",
    );
    text.push_str("What decides a verdict is the ratio or the difference, as below; a budget is checked in the form it is written in.\n\n");
    text.push_str("| metric | unit | decided by | worse | what it is |\n|---|---|---|---|---|\n");
    METRICS.iter().for_each(|metric| metric_row(metric, &mut text));
    text
}

fn metric_row(metric: &Metric, text: &mut String) {
    let compared = match metric.compared {
        Compared::Ratio => "ratio",
        Compared::Difference => "difference",
    };
    let worse = match metric.worse {
        Worse::More => "more",
        Worse::Less => "less",
    };
    let unit = metric.unit.symbol();
    // Writing to a text cannot fail.
    let _ = writeln!(text, "| `{}` | {unit} | {compared} | {worse} | {} |", metric.name, metric.meaning);
}

/// Keys that stand together.
struct Section<'a> {
    /// Where they stand: `services.NAME.ready`.
    path: String,
    schema: &'a Value,
}

/// The study, then everything in it, each type once, at the first place where it stands.
fn sections(root: &Value) -> Vec<Section<'_>> {
    let mut sections = vec![Section { path: String::new(), schema: root }];
    let mut seen: Vec<&Value> = Vec::new();
    let mut next = 0;
    while let Some(Section { path, schema }) = sections.get(next) {
        let mut found = Vec::new();
        for (name, property) in properties(schema) {
            let key = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let (key, property) = match values(property) {
                Some(values) => (format!("{key}.NAME"), values),
                None => (key, property),
            };
            // A list of keys is told of like keys.
            let (key, property) = match property.get("items") {
                Some(items) => (format!("{key}[]"), items),
                None => (key, property),
            };
            let target = target(root, target(root, property));
            if !properties(target).is_empty() && !seen.contains(&target) {
                seen.push(target);
                found.push(Section { path: key, schema: target });
            }
        }
        next += 1;
        // Right behind the section that speaks of them.
        sections.splice(next..next, found);
    }
    sections
}

/// Schema of the values, of a schema of keys that the user names.
fn values(schema: &Value) -> Option<&Value> {
    schema.get("additionalProperties").filter(|values| values.is_object())
}

impl Section<'_> {
    fn write(&self, root: &Value, sections: &[Section<'_>], text: &mut String) {
        if !self.path.is_empty() {
            let description = self.schema.get("description").and_then(Value::as_str).unwrap_or_default();
            let _ = write!(text, "\n### `{}`\n\n{}\n", self.path, one_line(description));
        }
        text.push_str("\n| key | value | default | meaning |\n|---|---|---|---|\n");
        let required: Vec<&str> = self
            .schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        for (name, property) in properties(self.schema) {
            let default = match (required.contains(&name.as_str()), property.get("default")) {
                (true, _) => String::new(),
                (false, default) => default_text(default),
            };
            let description = property.get("description").and_then(Value::as_str).unwrap_or_default();
            let kind = kind(root, property, sections);
            let _ = writeln!(text, "| `{name}` | {kind} | {default} | {} |", one_line(description));
        }
    }
}

/// A default in words.
fn default_text(default: Option<&Value>) -> String {
    let is_empty = match default {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(keys)) => keys.is_empty(),
        Some(_) => false,
    };
    match default {
        _ if is_empty => "none".to_owned(),
        Some(Value::String(text)) => format!("`{text}`"),
        Some(Value::Object(_)) => "see there".to_owned(),
        Some(other) => format!("`{other}`"),
        None => String::new(),
    }
}

/// The kind of value that a schema takes, in words.
fn kind(root: &Value, schema: &Value, sections: &[Section<'_>]) -> String {
    if let Some(name) = reference(schema) {
        return match name {
            "Time" | "Ratio" | "Bytes" | "Command" | "Delay" | "Texts" | "Agent" => match name {
                "Ratio" => "share".to_owned(),
                "Texts" => "text, or list of texts".to_owned(),
                "Agent" => "name, or name with a path or keys".to_owned(),
                "Bytes" => "memory".to_owned(),
                name => name.to_lowercase(),
            },
            _ => kind(root, target(root, schema), sections),
        };
    }
    if let Some(words) = words(schema) {
        return words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    }
    if let Some(values) = values(schema) {
        return match self::values(values) {
            Some(_) => "names, each with keys and their values".to_owned(),
            None => format!("names, each with {}", kind(root, values, sections)),
        };
    }
    if let Some(items) = schema.get("items") {
        let plural = if properties(target(root, items)).is_empty() { "s" } else { "" };
        return format!("list of {}{plural}", kind(root, items, sections));
    }
    let first = match schema.get("type") {
        Some(Value::Array(types)) => types.first().and_then(Value::as_str),
        Some(single) => single.as_str(),
        None => None,
    };
    match first {
        Some("string") => "text".to_owned(),
        Some("integer") => "whole number".to_owned(),
        Some("number") => "number".to_owned(),
        Some("boolean") => "`true`, `false`".to_owned(),
        _ => match sections.iter().find(|section| section.schema == schema) {
            // As Markdown makes anchors of headings.
            Some(section) => format!("[keys](#{})", section.path.to_lowercase().replace(['.', '[', ']'], "")),
            None => "keys".to_owned(),
        },
    }
}

/// The words of an enumeration, whether they have descriptions of their own (`oneOf`) or not (`enum`).
fn words(schema: &Value) -> Option<Vec<&str>> {
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        return Some(words.iter().filter_map(Value::as_str).collect());
    }
    schema.get("oneOf")?.as_array()?.iter().map(|word| word.get("const")?.as_str()).collect()
}

/// A description within a table.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
