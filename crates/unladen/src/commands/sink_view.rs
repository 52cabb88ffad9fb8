//! The numbers of a sink as people read them: a live table, a line, the summary at the end. Pure but for the instants that the
//! caller hands in.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Instant;

use indicatif::HumanBytes;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};
use unladen_judge::units::count;
use unladen_ledger::summary::Summary;

/// Services in the live table; the others are summed up.
const SERVICES: usize = 15;
/// Columns of a service and of an operation, with the space after them.
const SERVICE: usize = 32;
const OPERATION: usize = 40;

/// What was shown last: rates are differences.
#[derive(Debug, Default)]
pub(super) struct Live {
    last: Option<Last>,
}

#[derive(Debug)]
struct Last {
    at: Instant,
    by_service: BTreeMap<String, u64>,
    received: u64,
    bytes: u64,
}

impl Live {
    /// Rates per second since the last time: by service, of all spans received, of bytes.
    fn rates(&mut self, summary: &Summary, now: Instant) -> (BTreeMap<String, f64>, f64, f64) {
        let last = self.last.replace(Last {
            at: now,
            by_service: summary.by_service.clone(),
            received: summary.received,
            bytes: summary.bytes,
        });
        let seconds = last.as_ref().map_or(0.0, |last| (now - last.at).as_secs_f64());
        let rate =
            |now: u64, before: u64| if seconds > 0.0 { now.saturating_sub(before) as f64 / seconds } else { 0.0 };
        let Some(last) = last else { return (BTreeMap::new(), 0.0, 0.0) };
        let by_service = summary.by_service.iter().map(|(service, spans)| {
            (service.clone(), rate(*spans, last.by_service.get(service).copied().unwrap_or(0)))
        });
        (by_service.collect(), rate(summary.received, last.received), rate(summary.bytes, last.bytes))
    }

    /// Several lines; the largest services first.
    pub(super) fn table(&mut self, summary: &Summary, now: Instant) -> String {
        let (rates, received, bytes) = self.rates(summary, now);
        let mut text = format!(
            "{:>14} spans received   {:>10}/s   {:>12}/s\n",
            count(summary.received),
            count(received.round() as u64),
            HumanBytes(bytes as u64).to_string()
        );
        let mut services: Vec<(&String, u64)> = summary.by_service.iter().map(|(name, spans)| (name, *spans)).collect();
        services.sort_by_key(|(_, spans)| std::cmp::Reverse(*spans));
        if services.is_empty() {
            text.push_str("  no spans yet");
            return text + &troubles(summary);
        }
        let lost = |service: &str| {
            summary.reported_losses.iter().filter(|it| it.service == service).map(|it| it.spans).sum::<u64>()
        };
        let _ =
            writeln!(text, "  {:<SERVICE$}{:>14}{:>12}{:>18}", "service", "spans", "per second", "lost, by its word");
        for (service, spans) in services.iter().take(SERVICES) {
            let lost = match lost(service) {
                0 => "–".to_owned(),
                lost => count(lost),
            };
            let rate = count(rates.get(*service).copied().unwrap_or(0.0).round() as u64);
            let _ = writeln!(text, "  {}{:>14}{rate:>12}{lost:>18}", cell(service, SERVICE), count(*spans));
        }
        if services.len() > SERVICES {
            let spans = services[SERVICES..].iter().map(|(_, spans)| spans).sum();
            let _ = writeln!(text, "  {:<SERVICE$}{:>14}", format!("{} more", services.len() - SERVICES), count(spans));
        }
        text.trim_end().to_owned() + &troubles(summary)
    }

    /// One line; `None` if nothing has come since the last.
    pub(super) fn line(&mut self, summary: &Summary, now: Instant) -> Option<String> {
        let before = self.last.as_ref().map(|last| last.received);
        let (_, received, bytes) = self.rates(summary, now);
        (before != Some(summary.received) && summary.received > 0).then(|| {
            format!(
                "{} spans of {} services received, {}/s, {}/s{}",
                count(summary.received),
                summary.by_service.len(),
                count(received.round() as u64),
                HumanBytes(bytes as u64),
                troubles(summary).replace('\n', "; ").replace("  ", "")
            )
        })
    }
}

/// What is not as it should be, on a line of its own; empty if all is well.
fn troubles(summary: &Summary) -> String {
    let lost: u64 = summary.reported_losses.iter().map(|loss| loss.spans).sum();
    let counts = [
        (lost, "lost in the agents, by their word"),
        (summary.duplicates, "received twice"),
        (summary.rejected, "rejected"),
        (summary.dropped, "dropped on purpose"),
        (summary.faulted, "requests not served on purpose"),
        (summary.undecodable, "requests undecodable"),
        (summary.late, "late"),
    ];
    let parts: Vec<String> = counts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{} {what}", count(*number)))
        .collect();
    if parts.is_empty() { String::new() } else { format!("\n  {}", parts.join(", ")) }
}

/// A name that comes from outside, in at most so many columns of a terminal: characters of East Asia take two. What is too long
/// loses its middle, as methods of a class differ at the end.
fn shortened(name: &str, columns: usize) -> String {
    let clean: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if clean.width() <= columns {
        return clean;
    }
    let room = columns.saturating_sub(1);
    let head: String = fitting(clean.chars(), room.div_ceil(2)).collect();
    let tail: Vec<char> = fitting(clean.chars().rev(), room / 2).collect();
    [&head, "…"].into_iter().flat_map(str::chars).chain(tail.into_iter().rev()).collect()
}

/// The first of these characters, as many as have room in so many columns.
fn fitting(characters: impl Iterator<Item = char>, columns: usize) -> impl Iterator<Item = char> {
    let mut left = columns;
    characters.take_while(move |c| {
        let width = c.width().unwrap_or(0);
        let fits = width <= left;
        left = left.saturating_sub(width);
        fits
    })
}

/// The same, filled up with spaces to so many columns, of which the last is one.
fn cell(name: &str, columns: usize) -> String {
    let mut text = shortened(name, columns - 1);
    text.extend(std::iter::repeat_n(' ', columns.saturating_sub(text.width())));
    text
}

/// The end of it all.
pub(super) fn summary_text(summary: &Summary) -> String {
    let mut text = format!(
        "{} spans received ({} bytes), {} stored in {} bytes, {} traces{}\n",
        count(summary.received),
        count(summary.bytes),
        count(summary.saved),
        count(summary.stored_bytes),
        count(summary.traces),
        troubles(summary)
    );
    if summary.received > 0 {
        let delay = summary.delay_ms;
        let _ = writeln!(
            text,
            "  spans arrived within {} ms of their end at the median, {} ms at p99, {} ms at worst",
            delay.p50, delay.p99, delay.max
        );
    }
    for loss in &summary.reported_losses {
        let _ = writeln!(
            text,
            "  {} says that it lost {} spans at {}",
            shortened(&loss.service, SERVICE - 1),
            count(loss.spans),
            loss.stage
        );
    }
    if !summary.operations.is_empty() {
        let (spans, p50, p99) = ("spans", "p50 ms", "p99 ms");
        let _ = writeln!(text, "\n  {:<SERVICE$}{:<OPERATION$}{spans:>12}{p50:>12}{p99:>12}", "service", "operation");
    }
    for row in &summary.operations {
        let _ = writeln!(
            text,
            "  {}{}{:>12}{:>12.3}{:>12.3}",
            cell(&row.service, SERVICE),
            cell(&row.operation, OPERATION),
            count(row.spans),
            row.p50_us / 1e3,
            row.p99_us / 1e3
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use unladen_ledger::summary::{Operation, ReportedLoss};

    use super::*;

    fn summary(received: u64, services: &[(&str, u64)]) -> Summary {
        let by_service = services.iter().map(|(name, spans)| ((*name).to_owned(), *spans)).collect();
        Summary { received, saved: received, bytes: received * 400, by_service, ..Summary::default() }
    }

    #[test]
    fn rates_are_differences() {
        let (mut live, start) = (Live::default(), Instant::now());
        let first = live.table(&summary(1_000, &[("shop", 1_000)]), start);
        assert!(first.contains("1,000 spans received            0/s"), "{first}");
        let reported_losses = vec![ReportedLoss { service: "shop".into(), stage: "queue".into(), spans: 12 }];
        let second = Summary { reported_losses, duplicates: 3, ..summary(6_000, &[("shop", 5_000), ("till", 1_000)]) };
        let second = live.table(&second, start + Duration::from_secs(2));
        let lines: Vec<String> =
            second.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            lines,
            [
                "6,000 spans received 2,500/s 976.56 KiB/s",
                "service spans per second lost, by its word",
                "shop 5,000 2,000 12",
                "till 1,000 500 –",
                "12 lost in the agents, by their word, 3 received twice",
            ]
        );
    }

    #[test]
    fn a_line_is_said_once() {
        let (mut live, start) = (Live::default(), Instant::now());
        assert_eq!(live.line(&summary(0, &[]), start), None);
        let spoken = live.line(&summary(10, &[("a", 10)]), start + Duration::from_secs(10));
        assert_eq!(spoken.as_deref(), Some("10 spans of 1 services received, 1/s, 400 B/s"));
        assert_eq!(live.line(&summary(10, &[("a", 10)]), start + Duration::from_secs(20)), None);
    }

    #[test]
    fn many_services_and_odd_names_keep_the_table_in_shape() {
        let names: Vec<String> =
            (0..40).map(|number| format!("service\n{number:02}-with-a-very-long-name-indeed")).collect();
        let services: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 5)).collect();
        let table = Live::default().table(&summary(200, &services), Instant::now());
        assert_eq!(table.lines().count(), 2 + SERVICES + 1, "{table}");
        assert!(table.lines().all(|line| line.chars().count() <= 80) && table.contains("25 more"), "{table}");
    }

    #[test]
    fn what_is_too_long_loses_its_middle() {
        assert_eq!(shortened("HttpURLConnection.getHeaderField", 16), "HttpURLC…erField");
        assert_eq!(shortened("注文サービス", 8), "注文…ス");
        assert_eq!([shortened("shop", 4), shortened("shop", 1)], ["shop", "…"]);
    }

    #[test]
    fn wide_characters_keep_their_columns() {
        let names = [
            "注文サービス",
            "店铺",
            "shop",
            "e\u{301}tude",
            "とても長い名前のサービスで三十二桁に収まらないもの",
            "長い名前のサービスで三十一桁ちょうどx",
        ];
        let services: Vec<(&str, u64)> = names.iter().map(|name| (*name, 5)).collect();
        let mut summary = summary(30, &services);
        let table = Live::default().table(&summary, Instant::now());
        summary.operations = names
            .iter()
            .map(|name| Operation {
                service: (*name).into(),
                operation: format!("GET /{name}/{name}"),
                spans: 5,
                of_load: 0,
                p50_us: 1.0,
                p90_us: 1.0,
                p99_us: 1.0,
            })
            .collect();
        let end = summary_text(&summary);
        let widths = |text: &str, from: usize| text.lines().skip(from).map(UnicodeWidthStr::width).collect::<Vec<_>>();
        assert_eq!(widths(&table, 2), [78; 6], "{table}");
        assert_eq!(widths(&end, 3), [2 + SERVICE + OPERATION + 36; 7], "{end}");
        assert!(end.contains("  とても長い名前…収まらないもの   GET"), "{end}");
    }
}
