//! A study with which nothing is wrong: what stands between a text and a plan.

use super::cells::problem_of_cells;
use super::check;
use super::problem::Problem;
use super::spec::Study;
use super::spec::script::Script;

/// Something with which nothing is wrong.
#[derive(Debug)]
pub(super) struct Checked<T>(T);

impl<T> Checked<T> {
    /// What it is.
    pub(super) fn into_inner(self) -> T {
        self.0
    }
}

impl Checked<Study> {
    /// # Errors
    /// Everything that is wrong with the study.
    pub(super) fn study(study: Study) -> Result<Self, Vec<Problem>> {
        let problems = problems(&study);
        if problems.is_empty() { Ok(Self(study)) } else { Err(problems) }
    }
}

impl Checked<Script> {
    /// # Errors
    /// Everything that is wrong with the script.
    pub(super) fn script(script: Script) -> Result<Self, Vec<Problem>> {
        let problems = check::script(&script);
        if problems.is_empty() { Ok(Self(script)) } else { Err(problems) }
    }
}

/// Everything that is wrong with a study; empty if nothing is. Its cells are looked at when all else is in order.
pub(super) fn problems(study: &Study) -> Vec<Problem> {
    let problems = check::check(study);
    if problems.is_empty() { problem_of_cells(study).into_iter().collect() } else { problems }
}
