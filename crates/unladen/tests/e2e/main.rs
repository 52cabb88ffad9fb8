//! End to end: the real executable, real processes, real load, the way a user runs it.
//!
//! Tests that measure take turns ([`harness::measuring`]); everything listens on loopback and on free ports.

mod decisions;
mod failures;
mod harness;
mod identical;
mod interrupted;
mod jvm;
mod profile;
mod real_services;
mod scrape;
mod truth;
