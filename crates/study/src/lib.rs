#![doc = include_str!("../README.md")]
//! ## From text to plan
//!
//! `read` → `yaml` (text to tree) → `set` (profiles, `--set`) → `typed` (tree to [`spec::Study`]) → `checked` (`check`, and the
//! `cells` of a matrix) → [`plan`], whose variants are `planned`.
//! Only [`read`] and [`measured`] touch a file.

pub mod agents;
mod cells;
mod check;
mod checked;
pub mod compare;
pub mod compose;
pub mod error;
mod guess;
pub mod key;
pub mod kubernetes;
pub mod mask;
pub mod matrix;
pub mod measured;
pub mod merge;
pub mod metrics;
mod order;
pub mod plan;
mod planned;
mod preset;
pub mod prices;
pub mod problem;
pub mod read;
pub mod reference;
pub mod resolve;
pub mod schema;
pub mod scrape;
pub mod set;
pub mod spec;
pub mod stack;
mod tree;
mod typed;
mod url;
pub mod variables;
pub mod words;
pub mod write;
mod yaml;

pub use spec::{BASELINE, PLACEBO};

#[cfg(test)]
mod tests;
