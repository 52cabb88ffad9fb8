//! From journals to reports: run folders with known effects and mishaps in, findings and printed reports out.

mod docs;
mod golden;
mod losses;
mod relabel;
mod safety;
mod schema;
mod sketch;
mod verdicts;
