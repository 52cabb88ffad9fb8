//! The histograms of a load, and their file.
//!
//! Values are nanoseconds with three significant digits, in HdrHistograms of fixed size: memory does not grow with the
//! number of requests. `latency.hdr` is a histogram log (the text format that HdrHistogram's own tools and plotters read,
//! version 1.3) with one line per histogram, tagged `latency`, `service_time`, `send_lag` and `lateness`; each holds it in the
//! V2 compressed encoding, in base64. The column of maxima is in milliseconds. With several requests there are `0-latency`,
//! `0-service_time` and perhaps `0-sampled` for the first one, and so on; with kinds `kind-0-latency` and `kind-0-iteration`; of a
//! sequence `iterations`.

use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};

use crate::error::LoadError;
use crate::outcome::Quantiles;

/// Name of the file in the plan's folder.
pub const FILE_NAME: &str = "latency.hdr";
/// Largest value that is told apart, nanoseconds (more than an hour); larger ones are counted there.
const LARGEST_NS: u64 = 1 << 42;

/// Response time, service time, send lag and lateness of one thread or of all, nanoseconds.
#[derive(Debug, Clone)]
pub struct Histograms {
    /// From due to answered.
    pub latency: Histogram<u64>,
    /// From sent to answered.
    pub service_time: Histogram<u64>,
    /// From due to sent.
    pub send_lag: Histogram<u64>,
    /// The same for requests that did not wait for a connection.
    pub lateness: Histogram<u64>,
    /// Latency and service time by request, if the plan has several.
    pub named: Vec<(Histogram<u64>, Histogram<u64>)>,
    /// Service time by request of those with the sampled flag, if only some have it.
    pub sampled: Vec<Histogram<u64>>,
    /// Latency of the request and of its iteration up to there, by kind of answer, if the plan has kinds.
    pub kinds: Vec<(Histogram<u64>, Histogram<u64>)>,
    /// From the first request due to the last answer, if iterations have several requests.
    pub iterations: Option<Histogram<u64>>,
}

/// An empty one.
///
/// # Errors
/// Never with the bounds compiled in; the crate's constructor checks them.
pub(crate) fn empty() -> Result<Histogram<u64>, LoadError> {
    Histogram::new_with_bounds(1, LARGEST_NS, 3)
        .map_err(|error| LoadError::System { what: "make a histogram", source: std::io::Error::other(error) })
}

impl Histograms {
    /// Empty ones.
    ///
    /// # Errors
    /// Never with the bounds compiled in; the crate's constructor checks them.
    pub(crate) fn new() -> Result<Self, LoadError> {
        Ok(Self {
            latency: empty()?,
            service_time: empty()?,
            send_lag: empty()?,
            lateness: empty()?,
            named: Vec::new(),
            sampled: Vec::new(),
            kinds: Vec::new(),
            iterations: None,
        })
    }

    /// A request was sent so late, nanoseconds.
    #[inline]
    pub(crate) fn sent(&mut self, lag: u64, waited: bool) {
        self.send_lag.saturating_record(lag);
        if !waited {
            self.lateness.saturating_record(lag);
        }
    }

    /// A request was answered well after so long, nanoseconds.
    #[inline]
    pub(crate) fn served(&mut self, latency: u64, service_time: u64) {
        self.latency.saturating_record(latency);
        self.service_time.saturating_record(service_time);
    }

    /// Adds another thread's, or another process's.
    pub(crate) fn add(&mut self, other: &Self) {
        add(&mut self.latency, &other.latency);
        add(&mut self.service_time, &other.service_time);
        add(&mut self.send_lag, &other.send_lag);
        add(&mut self.lateness, &other.lateness);
        add_pairs(&mut self.named, &other.named);
        add_pairs(&mut self.kinds, &other.kinds);
        if self.sampled.is_empty() {
            self.sampled.clone_from(&other.sampled);
        } else {
            self.sampled.iter_mut().zip(&other.sampled).for_each(|(sum, part)| add(sum, part));
        }
        match (&mut self.iterations, &other.iterations) {
            (Some(sum), Some(part)) => add(sum, part),
            (None, Some(part)) => self.iterations = Some(part.clone()),
            (_, None) => {}
        }
    }

    /// With their tags, in the order of the file: the four, then two (or three) for each request, two for each kind, by their
    /// numbers, and that of the iterations.
    pub(crate) fn tagged(&self) -> Vec<(String, &Histogram<u64>)> {
        let four = [
            ("latency", &self.latency),
            ("service_time", &self.service_time),
            ("send_lag", &self.send_lag),
            ("lateness", &self.lateness),
        ];
        let mut all: Vec<_> = four.into_iter().map(|(tag, histogram)| (tag.to_owned(), histogram)).collect();
        for ((latency, service_time), number) in self.named.iter().zip(0..) {
            all.push((format!("{number}-latency"), latency));
            all.push((format!("{number}-service_time"), service_time));
        }
        for (sampled, number) in self.sampled.iter().zip(0..) {
            all.push((format!("{number}-sampled"), sampled));
        }
        for ((latency, iteration), number) in self.kinds.iter().zip(0..) {
            all.push((format!("kind-{number}-latency"), latency));
            all.push((format!("kind-{number}-iteration"), iteration));
        }
        all.extend(self.iterations.iter().map(|iterations| ("iterations".to_owned(), iterations)));
        all
    }

    /// From the lines of a file.
    ///
    /// # Errors
    /// The tag that is missing.
    pub(crate) fn from_tagged(lines: Vec<(String, Histogram<u64>)>) -> Result<Self, String> {
        let mut lines: std::collections::HashMap<_, _> = lines.into_iter().collect();
        let mut take = |tag: &str| lines.remove(tag).ok_or_else(|| format!("no histogram is tagged {tag}"));
        let (latency, service_time, send_lag) = (take("latency")?, take("service_time")?, take("send_lag")?);
        // Files of earlier versions have none.
        let lateness =
            take("lateness").or_else(|_| Self::new().map(|all| all.lateness).map_err(|error| error.to_string()))?;
        let mut named = Vec::new();
        while let Ok(latency) = take(&format!("{}-latency", named.len())) {
            let service_time = take(&format!("{}-service_time", named.len()))?;
            named.push((latency, service_time));
        }
        let mut sampled = Vec::new();
        while let Ok(found) = take(&format!("{}-sampled", sampled.len())) {
            sampled.push(found);
        }
        let mut kinds = Vec::new();
        while let Ok(latency) = take(&format!("kind-{}-latency", kinds.len())) {
            let iteration = take(&format!("kind-{}-iteration", kinds.len()))?;
            kinds.push((latency, iteration));
        }
        let iterations = take("iterations").ok();
        Ok(Self { latency, service_time, send_lag, lateness, named, sampled, kinds, iterations })
    }
}

/// Adds pairs, number by number; to none as yet they are copied.
fn add_pairs(sums: &mut Vec<(Histogram<u64>, Histogram<u64>)>, parts: &[(Histogram<u64>, Histogram<u64>)]) {
    if sums.is_empty() {
        sums.extend_from_slice(parts);
        return;
    }
    for (sum, part) in sums.iter_mut().zip(parts) {
        add(&mut sum.0, &part.0);
        add(&mut sum.1, &part.1);
    }
}

/// Adds a histogram of the same bounds. All of ours have them; a file's might not, but then it grows.
pub(crate) fn add<T: hdrhistogram::Counter>(sum: &mut Histogram<T>, part: &Histogram<T>) {
    sum.auto(true);
    let added = sum.add(part);
    debug_assert!(added.is_ok(), "histograms of one kind have the same bounds");
}

/// Quantiles of a histogram of nanoseconds, in microseconds.
pub(crate) fn quantiles<T: hdrhistogram::Counter>(histogram: &Histogram<T>) -> Quantiles {
    let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
    Quantiles {
        count: histogram.len(),
        mean: histogram.mean() / 1e3,
        p50: at(0.5),
        p75: at(0.75),
        p90: at(0.9),
        p95: at(0.95),
        p99: at(0.99),
        p999: at(0.999),
        max: histogram.max() as f64 / 1e3,
    }
}

/// Writes `latency.hdr` into a folder, making the folder if need be. `started` is the window's start since the Unix epoch.
pub(crate) fn write(folder: &Path, all: &Histograms, started: Duration, window: Duration) -> Result<(), LoadError> {
    let path = folder.join(FILE_NAME);
    let written = fs::create_dir_all(folder)
        .map_err(|error| error.to_string())
        .and_then(|()| fs::write(&path, log(&all.tagged(), started, window)?).map_err(|error| error.to_string()));
    written.map_err(|message| LoadError::Write { path, message })
}

/// A histogram log with a line for each histogram. `started` is the window's start since the Unix epoch.
///
/// # Errors
/// A text that says which histogram cannot be encoded.
pub(crate) fn log(all: &[(String, &Histogram<u64>)], started: Duration, window: Duration) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("[Histogram log format version 1.3]")
        .with_start_time(UNIX_EPOCH + started)
        .with_base_time(UNIX_EPOCH + started)
        .with_max_value_divisor(1e6)
        .begin_log_with(&mut text, &mut serializer)
        .map_err(|error| error.to_string())?;
    for (tag, histogram) in all {
        log.write_histogram(*histogram, Duration::ZERO, window, Tag::new(tag))
            .map_err(|error| format!("{tag}: {error:?}"))?;
    }
    Ok(text)
}

/// Reads a `latency.hdr` back: tag and histogram (nanoseconds) of every line.
///
/// # Errors
/// A text that says what is wrong with the file.
pub fn read(path: &Path) -> Result<Vec<(String, Histogram<u64>)>, String> {
    let text = fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    parse(&text).map_err(|error| format!("{} is not a histogram log: {error}", path.display()))
}

/// The same of the file's content.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn parse(text: &[u8]) -> Result<Vec<(String, Histogram<u64>)>, String> {
    let mut found = Vec::new();
    for entry in IntervalLogIterator::new(text) {
        let LogEntry::Interval(line) = entry.map_err(|error| format!("{error:?}"))? else { continue };
        let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, line.encoded_histogram())
            .map_err(|error| error.to_string())?;
        let histogram = Deserializer::new().deserialize(&mut &bytes[..]).map_err(|error| error.to_string())?;
        found.push((line.tag().map(|tag| tag.as_str().to_owned()).unwrap_or_default(), histogram));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let mut all = Histograms::new().expect("bounds are good");
        for value in [1u64, 999, 1_234_567, 190_000_000, 1 << 41] {
            all.latency.saturating_record(value);
        }
        all.send_lag.saturating_record(u64::MAX);
        let of = |value: u64| {
            let mut histogram = empty().expect("bounds are good");
            histogram.saturating_record(value);
            histogram
        };
        (all.named, all.sampled) = (vec![(of(1), of(2)), (of(3), of(4))], vec![of(5), of(6)]);
        (all.kinds, all.iterations) = (vec![(of(7), of(8))], Some(of(9)));
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("runs/01");
        write(&inner, &all, Duration::from_secs(1_700_000_000), Duration::from_secs(5)).expect("written");
        let read = read(&inner.join(FILE_NAME)).expect("read");
        assert_eq!(read.len(), 13);
        for ((tag, histogram), (expected_tag, expected)) in read.iter().zip(all.tagged()) {
            assert_eq!(tag, &expected_tag);
            assert_eq!(histogram, expected);
        }
        let mut twice = Histograms::from_tagged(read).expect("all are there");
        assert_eq!((twice.named.len(), twice.sampled.len(), twice.kinds.len()), (2, 2, 1));
        twice.add(&all);
        let counts = [&twice.latency, &twice.named[1].1, &twice.sampled[1], &twice.kinds[0].1].map(Histogram::len);
        assert_eq!((counts, twice.iterations.map(|it| it.len())), ([10, 2, 2, 2], Some(2)));
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_reported_with_its_path() {
        let all = Histograms::new().expect("bounds are good");
        let error =
            write(Path::new("/proc/none"), &all, Duration::ZERO, Duration::ZERO).expect_err("no folder in /proc");
        assert!(error.to_string().contains("/proc/none/latency.hdr"), "{error}");
    }

    #[test]
    fn quantiles_are_in_microseconds() {
        let mut all = Histograms::new().expect("bounds are good");
        for value in 1..=1000u64 {
            all.latency.saturating_record(value * 1_000_000);
        }
        let found = quantiles(&all.latency);
        assert_eq!(found.count, 1000);
        // Three significant digits.
        for (value, expected) in [(found.p50, 500e3), (found.p99, 990e3), (found.max, 1000e3), (found.mean, 500.5e3)] {
            assert!((value / expected - 1.0f64).abs() < 1e-3, "{value} {expected}");
        }
    }
}
