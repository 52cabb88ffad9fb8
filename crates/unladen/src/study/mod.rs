//! The study file: read, checked, resolved, planned.

pub mod plan;
pub mod spec;
pub mod units;
