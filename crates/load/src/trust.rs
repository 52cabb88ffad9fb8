//! From which numbers on a load is not to be believed. One table for the generator, which warns ([`crate::warning`]), and for whoever
//! judges a run by its load: what is only remarkable to the one may make the run void to the other.

/// Share of the wanted rate that must be answered.
pub const MIN_RATE_SHARE: f64 = 0.98;
/// The generator may send this late (99th percentile), µs …
const LATE_US: f64 = 1_000.0;
/// … or this share of the median service time, whichever is more.
const LATE_SHARE: f64 = 0.1;
/// Share of a core above which a thread has nothing left.
pub const SATURATED: f64 = 0.95;
/// Share of its core that the generator may use where a limit of the service is measured.
pub const BUSY_AT_LIMIT: f64 = 0.85;
/// Share of the requests that may wait for a connection before it is worth a warning …
pub const WAITING: f64 = 0.01;
/// … and before the load says nothing of the service. Between the two a pause of the service may be the reason.
pub const WAITING_VOID: f64 = 0.25;
/// Both sides of Little's law may be this far apart, as a share of the larger, besides what chance allows …
pub const LITTLE_SHARE: f64 = 0.1;
/// … and, where they are farther apart than that, before the load says nothing of the service.
pub const LITTLE_VOID: f64 = 0.25;
/// Samples below which Little's law says nothing.
pub const LITTLE_SAMPLES: u64 = 20;

/// How late the generator may send (99th percentile), µs, where the service takes this long (median, µs).
#[must_use]
pub fn late_limit_us(service_time_us: f64) -> f64 {
    LATE_US.max(LATE_SHARE * service_time_us)
}
