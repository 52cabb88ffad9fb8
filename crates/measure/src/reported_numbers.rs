//! What a program says of its work: numbers by name, as a JSON object in the last line of its output.

use std::collections::BTreeMap;

/// Numbers by name.
pub(super) type Numbers = BTreeMap<String, f64>;

/// What the end of an output says.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ReportedNumbers {
    /// The numbers.
    pub(super) numbers: Numbers,
    /// The last line, if it looks like numbers and is none.
    pub(super) unread: Option<String>,
}

/// Reads the last line that is a JSON object of numbers alone. A runtime may still say something behind it.
pub(super) fn read(tail: &str) -> ReportedNumbers {
    if let Some(numbers) = tail.lines().rev().find_map(numbers) {
        return ReportedNumbers { numbers, unread: None };
    }
    let last = tail.lines().rev().map(str::trim).find(|line| !line.is_empty());
    let unread = last.filter(|line| line.starts_with('{')).map(str::to_owned);
    ReportedNumbers { numbers: Numbers::new(), unread }
}

/// The numbers of a line that holds nothing else.
fn numbers(line: &str) -> Option<Numbers> {
    let line = line.trim();
    if !line.starts_with('{') {
        return None;
    }
    let numbers: Numbers = serde_json::from_str(line).ok()?;
    (!numbers.is_empty() && numbers.values().all(|number| number.is_finite())).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers_of(tail: &str) -> Vec<(String, f64)> {
        read(tail).numbers.into_iter().collect()
    }

    #[test]
    fn the_last_line_of_numbers_is_taken() {
        let both = [("sent".to_owned(), 100_000.0), ("stored".to_owned(), 99_999.5)];
        assert_eq!(numbers_of("up\n{\"sent\": 100000, \"stored\": 99999.5}\n"), both);
        assert_eq!(
            numbers_of("{\"sent\": 1}\n  {\"stored\": 99999.5, \"sent\": 1e5}  \nWARN: shutting down\n\n"),
            both
        );
        assert_eq!(
            numbers_of("{\"sent\": 100000, \"stored\": 99999.5}\n{\"level\": \"info\"}\n"),
            both,
            "a log of JSON"
        );
        for nothing in ["", "done\n", "(it wrote nothing)", "{}", "[1, 2]", "5"] {
            assert_eq!(read(nothing).numbers, Numbers::new(), "{nothing}");
        }
    }

    #[test]
    fn what_was_meant_and_is_no_numbers_is_told() {
        for line in ["{\"sent\": \"100000\"}", "{\"sent\": 5, \"ok\": true}", "{sent: 5}", "{\"sent\": 1e999}", "{}"] {
            let read = read(&format!("up\n{line}\n"));
            assert_eq!((read.numbers, read.unread.as_deref()), (Numbers::new(), Some(line)));
        }
        assert_eq!(read("up\n{\"sent\": \"x\"}\nbye\n").unread, None, "that was something else");
    }
}
