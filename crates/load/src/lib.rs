//! When to send, how to send, what came back: unladen's load generator. Usable alone.

pub mod outcome;
pub mod plan;
