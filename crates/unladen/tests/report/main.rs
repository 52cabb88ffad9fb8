//! From journals to reports: run folders with known effects and mishaps in, findings and printed reports out.

mod chromium;
mod docs;
mod files;
mod golden;
mod losses;
mod page;
mod relabel;
mod safety;
mod schema;
mod secrets;
mod sketch;
mod verdicts;
