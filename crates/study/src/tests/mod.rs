//! Tests of the module as a whole; small things are tested beside their code.

mod agents;
mod changes;
mod comparison;
mod documents;
mod files;
mod plans;
mod refusals;
mod resolution;
mod round_trip;

use super::read::parse;
use super::set::Set;
use super::spec::Study;

/// A study with a bit of everything, which the refusals vary too.
pub(super) const SHOP: &str = include_str!("shop.yaml");

/// The study in a text, with changes.
fn study(text: &str, sets: &[&str]) -> Study {
    match parse(text, "study.yaml", &changes(sets)) {
        Ok(study) => study,
        Err(error) => panic!("refused: {error}"),
    }
}

/// What is said of a text with changes.
fn refusal(text: &str, sets: &[&str]) -> String {
    match parse(text, "study.yaml", &changes(sets)) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn changes(sets: &[&str]) -> Vec<Set> {
    sets.iter().map(|set| set.parse().expect("a change")).collect()
}
