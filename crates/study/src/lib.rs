#![doc = include_str!("../README.md")]
//! ## From text to plan
//!
//! `read` → `yaml` (text to tree) → `set` (profiles, `--set`) → `typed` (tree to [`spec::Study`]) → `check` → [`plan`].
//! Only [`read`] and [`measured`] touch a file.

mod check;
pub mod compare;
pub mod error;
mod guess;
pub mod key;
pub mod mask;
pub mod matrix;
pub mod measured;
pub mod metrics;
pub mod plan;
pub mod prices;
pub mod problem;
pub mod read;
pub mod reference;
pub mod resolve;
pub mod schema;
pub mod scrape;
pub mod set;
pub mod spec;
mod tree;
mod typed;
pub mod variables;
pub mod words;
pub mod write;
mod yaml;

pub use check::{BASELINE, PLACEBO};

#[cfg(test)]
mod tests;
