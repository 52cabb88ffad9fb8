//! What a study *means*: the variants that run in every round and, for each, the processes to start, in order.
//!
//! Made from [`super::spec::Study`] without touching a file, a clock or a process. Strings may still hold run-time
//! variables (`${port.http}`, `${sink.otlp_grpc}`), which [`super::variables`] fills in when ports are known.

use std::path::{Path, PathBuf};

use super::cells::variants_of_all_cells;
use super::checked::Checked;
use super::error::StudyError;
use super::guess::guess;
use super::key::KeyPath;
use super::planned::once;
pub use super::planned::{Image, PlannedVariant, Process};
use super::problem::{Problem, ProblemKind};
use super::spec::{BASELINE, PLACEBO, Study, Variant};
use super::variables::expand;

/// A study, ready to run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The study as resolved: every default written out, `--set` values applied.
    pub study: Study,
    /// Folder of the study file; relative paths start here.
    pub dir: PathBuf,
    /// Baseline first, then the placebo if wanted, then the variants in the order of the file.
    pub variants: Vec<PlannedVariant>,
}

impl Plan {
    /// What a study means. `dir` is where its relative paths start.
    ///
    /// # Errors
    /// Everything that is wrong with the study.
    pub fn from_study(study: Study, dir: &Path) -> Result<Self, StudyError> {
        Self::of(Checked::study(study).map_err(StudyError::of_no_file)?, dir)
    }

    /// What a study means with which nothing is wrong.
    pub(super) fn of(study: Checked<Study>, dir: &Path) -> Result<Self, StudyError> {
        let study = study.into_inner();
        let variants = variants_of_all_cells(&study)?;
        Ok(Self { study, dir: dir.to_owned(), variants })
    }

    /// The plan with these variants only; baseline and placebo stay. The study in it is narrowed too, so that its
    /// resolved copy says what is run.
    ///
    /// # Errors
    /// When there is no such variant.
    pub fn only(self, names: &[impl AsRef<str>]) -> Result<Self, StudyError> {
        let Self { mut study, dir, .. } = self;
        let known = study.variants.keys().map(String::as_str);
        let problems: Vec<Problem> = names
            .iter()
            .map(AsRef::as_ref)
            .filter(|name| *name != PLACEBO && !study.variants.contains_key(*name))
            .map(|name| {
                let kind = ProblemKind::NoSuchVariant { name: name.to_owned(), guess: guess(name, known.clone()) };
                Problem { path: KeyPath::of(&["variants"]), place: None, kind }
            })
            .collect();
        if !problems.is_empty() {
            return Err(StudyError::refused("--only", None, problems));
        }
        study.variants.retain(|name, _| name == BASELINE || names.iter().any(|wanted| wanted.as_ref() == name));
        study.services.retain(|_, service| {
            let ran_in_all = service.only.is_empty();
            service.only.retain(|name| study.variants.contains_key(name));
            ran_in_all || !service.only.is_empty()
        });
        study.ladder.retain(|step| study.variants.contains_key(step));
        for profile in study.profiles.values_mut() {
            profile.retain(|key, _| {
                let mut steps = key.split('.');
                match (steps.next(), steps.next()) {
                    (Some("variants"), Some(name)) => study.variants.contains_key(name),
                    (Some("services"), Some(name)) => study.services.contains_key(name),
                    _ => true,
                }
            });
        }
        Self::from_study(study, &dir)
    }

    /// The plan without the services and variants whose `when` says no, and the names of the variants among them.
    ///
    /// # Errors
    /// When what is left is no study.
    pub fn of_those_that_take_part(mut self) -> Result<(Self, Vec<String>), StudyError> {
        let variables = self.study.variables.clone();
        let takes_part = |when: &Option<String>| {
            let Some(when) = when else { return true };
            // What cannot be expanded has been refused before.
            let text = expand(when, &variables, |_| None).unwrap_or_default();
            !matches!(text.trim(), "" | "no" | "false")
        };
        self.study.services.retain(|_, service| takes_part(&service.when));
        let services: Vec<String> = self.study.services.keys().cloned().collect();
        for service in self.study.services.values_mut() {
            service.needs.retain(|needed| services.contains(needed));
        }
        let (left, out): (Vec<_>, Vec<_>) =
            self.study.variants.iter().partition(|(_, variant)| takes_part(&variant.when));
        let names = |variants: Vec<(&String, &Variant)>| variants.into_iter().map(|(name, _)| name.clone()).collect();
        let (left, out): (Vec<String>, Vec<String>) = (names(left), names(out));
        Ok((self.only(&left)?, out))
    }

    /// Every process that lives through the study, once, in start order.
    #[must_use]
    pub fn shared(&self) -> Vec<&Process> {
        once(self.variants.iter().flat_map(PlannedVariant::shared))
    }
}
