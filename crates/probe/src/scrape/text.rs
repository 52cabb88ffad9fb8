//! Answers in the Prometheus text format (OpenMetrics is near enough), with the types that they state.
//!
//! A line that cannot be read is left out: one odd exporter must not hide the rest.

use unladen_prometheus::{Sample, samples};

/// An answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Exposition<'a> {
    /// In the order of the text.
    pub series: Vec<Sample<'a>>,
    /// Types by name.
    types: Vec<(&'a str, &'a str)>,
}

impl<'a> Exposition<'a> {
    /// Reads an answer's body.
    #[must_use]
    pub fn parse(text: &'a str) -> Self {
        let mut exposition = Self::default();
        for line in text.lines().map(str::trim_start) {
            if let Some(comment) = line.strip_prefix('#') {
                let mut words = comment.split_ascii_whitespace();
                if let (Some("TYPE"), Some(name), Some(kind)) = (words.next(), words.next(), words.next()) {
                    exposition.types.push((name, kind));
                }
            } else {
                // OpenMetrics may put an exemplar behind a value.
                let line = line.split(" # ").next().unwrap_or(line);
                exposition.series.extend(samples(line).flatten().filter(|sample| sample.value.is_finite()));
            }
        }
        exposition
    }

    /// Whether a name's numbers only grow: by its type, else by its suffix.
    #[must_use]
    pub fn is_counter(&self, name: &str) -> bool {
        let kind = |name: &str| self.types.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
        match kind(name) {
            Some("gauge") => return false,
            Some("counter") => return true,
            _ => {}
        }
        // A histogram's and a summary's parts, and OpenMetrics' counters, are typed by the name without the suffix.
        ["_total", "_sum", "_count", "_bucket"].iter().any(|suffix| name.ends_with(suffix))
    }

    /// The sum of the series of a name that have these labels; `None` if there is none.
    #[must_use]
    pub fn sum(&self, name: &str, labels: &[(String, String)]) -> Option<f64> {
        let has = |series: &&Sample<'_>| {
            series.name == name
                && labels.iter().all(|(label, value)| {
                    series.labels.iter().any(|(known, is)| *known == label.as_str() && is == value)
                })
        };
        self.series.iter().filter(has).map(|series| series.value).reduce(|a, b| a + b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# HELP go_goroutines Number of goroutines that currently exist.\n# TYPE go_goroutines gauge\n\
        go_goroutines 12\n# TYPE gc_seconds summary\ngc_seconds{quantile=\"0.5\"} 3.1e-05\ngc_seconds_sum 0.25\ngc_seconds_count 7\n\
        # TYPE http_requests_total counter\nhttp_requests_total{method=\"GET\",path=\"/a, \\\"b\\\"}\\n\",} 5 1700000000000\n\
        http_requests_total{ method = \"POST\" } 2\nodd{\nodd 1 2 3\nnot_a_number NaN\ntoo_large +Inf\n\
        # TYPE om counter\nom_total 9 # {trace_id=\"x\"} 1.0\n# EOF\n";

    #[test]
    fn names_labels_and_values_are_read() {
        let text = Exposition::parse(TEXT);
        let sum = |name: &str, labels: &[(&str, &str)]| {
            let labels: Vec<_> = labels.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            text.sum(name, &labels)
        };
        assert_eq!(sum("go_goroutines", &[]), Some(12.0));
        assert_eq!(sum("gc_seconds_sum", &[]), Some(0.25));
        assert_eq!(sum("http_requests_total", &[]), Some(7.0));
        assert_eq!(sum("http_requests_total", &[("method", "POST")]), Some(2.0));
        assert_eq!(sum("http_requests_total", &[("path", "/a, \"b\"}\n")]), Some(5.0));
        assert_eq!(sum("http_requests_total", &[("method", "PUT")]), None);
        assert_eq!(sum("om_total", &[]), Some(9.0));
        assert_eq!((sum("not_a_number", &[]), sum("too_large", &[]), sum("nothing", &[])), (None, None, None));
    }

    #[test]
    fn counters_are_told_by_type_then_by_name() {
        let text =
            Exposition::parse("# TYPE queue_total gauge\nqueue_total 1\n# TYPE done counter\ndone 3\nx_sum 1\nx 2\n");
        for (name, counter) in [("queue_total", false), ("done", true), ("x_sum", true), ("x", false)] {
            assert_eq!(text.is_counter(name), counter, "{name}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_makes_it_panic(text in "[a-z_:]{0,6}[{]?[a-z=\",\\\\}# 0-9é\n]{0,60}", any in "\\PC{0,80}") {
            drop(Exposition::parse(&text));
            drop(Exposition::parse(&any));
        }
    }
}
