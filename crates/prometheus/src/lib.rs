#![doc = include_str!("../README.md")]

use std::fmt;
use std::str::FromStr;

/// Which series: a name, and labels that must or must not have a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    name: String,
    labels: Vec<Matcher>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Matcher {
    label: String,
    value: String,
    /// Whether the label must have the value, or must not.
    is_equal: bool,
}

/// A text that is no selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a metric such as `spans_total` or `spans_total{{reason=\"full\",kind!=\"log\"}}`")]
pub struct SelectorError(String);

/// A line that is no sample.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is not in Prometheus' text format")]
pub struct FormatError {
    line: usize,
}

/// One line with a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample<'a> {
    /// Name of the metric.
    pub name: &'a str,
    /// Its labels with their values.
    pub labels: Vec<(&'a str, String)>,
    /// The value; may be infinite or no number.
    pub value: f64,
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let error = || SelectorError(text.to_owned());
        let (name, rest) = name(text.trim()).ok_or_else(error)?;
        let mut selector = Self { name: name.to_owned(), labels: Vec::new() };
        if rest.is_empty() {
            return Ok(selector);
        }
        let mut rest = rest.strip_prefix('{').ok_or_else(error)?.trim_start();
        while !rest.starts_with('}') {
            let (label, after) = self::name(rest).ok_or_else(error)?;
            let after = after.trim_start();
            let (is_equal, after) = match after.strip_prefix("!=") {
                Some(after) => (false, after),
                None => (true, after.strip_prefix('=').ok_or_else(error)?),
            };
            let (value, after) = quoted(after.trim_start()).ok_or_else(error)?;
            selector.labels.push(Matcher { label: label.to_owned(), value, is_equal });
            rest = next_label(after).ok_or_else(error)?;
        }
        if rest == "}" { Ok(selector) } else { Err(error()) }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.labels.is_empty() {
            return Ok(());
        }
        let labels = self.labels.iter().map(|Matcher { label, value, is_equal }| {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            format!("{label}{}\"{value}\"", if *is_equal { "=" } else { "!=" })
        });
        write!(f, "{{{}}}", labels.collect::<Vec<_>>().join(","))
    }
}

impl Selector {
    fn picks(&self, sample: &Sample<'_>) -> bool {
        sample.name == self.name
            && self.labels.iter().all(|Matcher { label, value, is_equal }| {
                // As in PromQL, a label that is not there is empty.
                let found =
                    sample.labels.iter().find(|(name, _)| name == label).map_or("", |(_, value)| value.as_str());
                (found == value) == *is_equal
            })
    }
}

/// Sum of the series that the selector picks; `None` if there are none.
///
/// # Errors
/// When a line is no sample.
pub fn sum(text: &str, selector: &Selector) -> Result<Option<f64>, FormatError> {
    let mut sum = None;
    for sample in samples(text) {
        let sample = sample?;
        if selector.picks(&sample) {
            sum = Some(sum.unwrap_or(0.0) + sample.value);
        }
    }
    Ok(sum)
}

/// All samples of a text.
pub fn samples(text: &str) -> impl Iterator<Item = Result<Sample<'_>, FormatError>> {
    text.lines().zip(1..).filter_map(|(line, number)| {
        let line = line.trim();
        (!line.is_empty() && !line.starts_with('#')).then(|| sample(line).ok_or(FormatError { line: number }))
    })
}

fn sample(line: &str) -> Option<Sample<'_>> {
    let (name, mut rest) = name(line)?;
    let mut labels = Vec::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner.trim_start();
        while !rest.starts_with('}') {
            let (label, after) = self::name(rest)?;
            let (value, after) = quoted(after.trim_start().strip_prefix('=')?.trim_start())?;
            labels.push((label, value));
            rest = next_label(after)?;
        }
        rest = &rest[1..];
    }
    // A timestamp may follow.
    let mut words = rest.split_whitespace();
    let value = words.next()?;
    let has_end = words.next().is_none_or(|timestamp| timestamp.parse::<f64>().is_ok()) && words.next().is_none();
    // Rust reads `+Inf` and `NaN` in any case, as the format writes them.
    has_end.then(|| value.parse().ok()).flatten().map(|value| Sample { name, labels, value })
}

/// A name and what follows it.
fn name(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':')).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    (!name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit())).then_some((name, rest))
}

/// A text in quotes, unescaped, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let inner = text.strip_prefix('"')?;
    let mut value = String::new();
    let mut characters = inner.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &inner[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

/// What follows a label: the next one behind a comma, or the closing brace.
fn next_label(rest: &str) -> Option<&str> {
    let rest = rest.trim_start();
    match rest.strip_prefix(',') {
        Some(next) => Some(next.trim_start()),
        None => rest.starts_with('}').then_some(rest),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = r#"
# HELP spans_total Spans.
# TYPE spans_total counter
spans_total{reason="full",to="a \"b\" \\ c",} 3
spans_total{reason=""} 4 1700000000000
spans_total 1e1
# EOF
spans_total_bytes{reason="full"} 99
other{x="1"} +Inf
"#;

    fn summed(selector: &str) -> Option<f64> {
        sum(TEXT, &selector.parse().expect(selector)).expect("sound")
    }

    #[test]
    fn series_are_picked_and_added_up() {
        assert_eq!(summed("spans_total"), Some(17.0));
        assert_eq!(summed("spans_total{reason=\"full\"}"), Some(3.0));
        assert_eq!(summed("spans_total{reason!=\"full\"}"), Some(14.0), "a label that is not there is empty");
        assert_eq!(summed(r#"spans_total{ reason = "full" , to="a \"b\" \\ c" }"#), Some(3.0));
        assert_eq!(summed("spans"), None);
        assert_eq!(summed("other"), Some(f64::INFINITY));
    }

    #[test]
    fn what_is_no_selector_is_refused() {
        for text in ["", "1x", "a b", "a{", "a{b}", "a{b=c}", "a{b=\"c}", "a{b=\"c\"", "a{b=\"c\"}x", "a{b~=\"c\"}"] {
            assert!(text.parse::<Selector>().is_err(), "{text}");
        }
        for text in ["a", "a_b:c", "a{}", r#"a{b="c",d!="e\"f\\"}"#] {
            let selector: Selector = text.parse().expect(text);
            assert_eq!(selector.to_string().parse(), Ok(selector), "{text}");
        }
    }

    #[test]
    fn broken_lines_are_told() {
        for line in ["a", "a b", "a{b=\"c\" 1", "a{b=c} 1", "a 1 2 3", "a 1 x", "{} 1", "<html>"] {
            let text = format!("fine 1\n{line}\n");
            assert_eq!(sum(&text, &"fine".parse().expect("a selector")), Err(FormatError { line: 2 }), "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,60}") {
            let _ = text.parse::<Selector>();
            let _ = samples(&text).count();
        }

        #[test]
        fn what_is_written_is_read(value in "\\PC{0,20}", number in -1e9..1e9_f64) {
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
            let text = format!("a{{b=\"{escaped}\"}} {number}");
            let all: Vec<_> = samples(&text).collect();
            prop_assert_eq!(&all, &[Ok(Sample { name: "a", labels: vec![("b", value)], value: number })]);
        }
    }
}
