//! From journals to reports: run folders with known effects and mishaps in, findings and printed reports out.

mod alternating;
mod blocks;
mod book;
mod budgets;
mod by_request;
mod chromium;
mod docs;
mod exported;
mod files;
mod golden;
mod losses;
mod machines;
mod page;
mod prometheus;
mod relabel;
mod safety;
mod samples;
mod schema;
mod secrets;
mod serve;
mod sketch;
mod steady;
mod verdicts;
