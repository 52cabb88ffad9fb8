//! From journals to reports: run folders with known effects and mishaps in, findings and printed reports out.

mod golden;
mod sketch;
