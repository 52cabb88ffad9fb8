//! Run folders of one study, measured on several machines, as one study: rounds are blocks, and a round on another machine is another round.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use serde_json::{Map, Value, json};
use unladen_journal::notices::Notice;
use unladen_journal::record::{Calibration, RunRecord};

use super::measured::Measured;
use super::spec::Study;
use super::write::resolved_yaml;

/// The key of `host.json` under which a merged study has what each machine is, by its name.
pub const MACHINES: &str = "machines";

/// Run folders that cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// There is nothing to merge.
    #[error("it takes at least two run folders to merge")]
    TooFew,
    /// Two machines of one name.
    #[error("two run folders are of the machine `{machine}`: name them, as in `NAME=DIR`")]
    Twice {
        /// Name of the machine.
        machine: String,
    },
    /// A name that no folder can have.
    #[error("`{machine}` cannot be a machine's name: it has letters, digits, `-`, `_` and `.`")]
    Name {
        /// What was given.
        machine: String,
    },
    /// Studies that do not ask the same.
    #[error(
        "the studies of {first} and {second} are not the same: {differs}. Only rounds of one study are compared; `rounds` and `seed` may differ"
    )]
    Different {
        /// Machine.
        first: String,
        /// Another.
        second: String,
        /// `"window: 5s" and "window: 2s"`.
        differs: String,
    },
    /// Measured by different versions.
    #[error("unladen {first} and unladen {second} may measure differently: use one version for all rounds")]
    Versions {
        /// Version.
        first: String,
        /// Another.
        second: String,
    },
    /// The same run folder twice.
    #[error(
        "the run folders of {first} and {second} are of the same study at the same time: one is a copy of the other"
    )]
    Copy {
        /// Machine.
        first: String,
        /// Another.
        second: String,
    },
    /// A part without any run.
    #[error("{machine} has no runs: leave it out")]
    Empty {
        /// Machine.
        machine: String,
    },
    /// A run that is said to be elsewhere.
    #[error("the journal of {machine} says that a run is in `{dir}`, which is not inside its run folder")]
    Outside {
        /// Machine.
        machine: String,
        /// Where the run is said to be.
        dir: String,
    },
    /// A part that was merged itself.
    #[error("{machine} is a merged study: merge the folders that it was made of")]
    Merged {
        /// Machine.
        machine: String,
    },
}

/// A run folder, with the name of its machine if somebody gave one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFolder {
    /// Name of the machine; `None`: as its `host.json` says.
    pub machine: Option<String>,
    /// The run folder.
    pub dir: PathBuf,
}

impl FromStr for NamedFolder {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.split_once('=') {
            // A folder may have a `=` in its name.
            Some((machine, dir)) if !Path::new(text).exists() => {
                Self { machine: Some(machine.to_owned()), dir: dir.into() }
            }
            _ => Self { machine: None, dir: text.into() },
        })
    }
}

/// A run folder, and the machine that it was measured on.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Name of the machine, for people and for folders.
    pub machine: String,
    /// What the folder holds.
    pub measured: Measured,
}

/// A study of several machines.
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    /// The study, with the rounds of all parts.
    pub study: Study,
    /// For `host.json`: what the first machine is, and what all are, by name.
    pub host: Value,
    /// All runs; their numbers and rounds are those of the merged study.
    pub runs: Vec<RunRecord>,
    /// The calibrations of all parts.
    pub calibrations: Vec<Calibration>,
    /// The notices of all parts.
    pub notices: Vec<Notice>,
    /// Folders of runs and calibrations: number of the part, where it is in its run folder, where it belongs in the merged one.
    pub folders: Vec<(usize, String, String)>,
}

/// Merges the parts of a study.
///
/// # Errors
/// When they are not parts of one study.
pub fn merge(parts: &[Part]) -> Result<Merged, MergeError> {
    check(parts)?;
    let first = parts.first().ok_or(MergeError::TooFew)?;
    let mut host = first.measured.host.clone();
    let machines: Map<String, Value> =
        parts.iter().map(|part| (part.machine.clone(), part.measured.host.clone())).collect();
    if let Some(host) = host.as_object_mut() {
        host.insert(MACHINES.to_owned(), Value::Object(machines));
    } else {
        host = json!({ MACHINES: machines });
    }
    let mut study = first.measured.study.clone();
    study.rounds = parts.iter().map(|part| part.measured.study.rounds).sum();
    study.seed = None;
    let mut merged =
        Merged { study, host, runs: Vec::new(), calibrations: Vec::new(), notices: Vec::new(), folders: Vec::new() };
    for (number, part) in parts.iter().enumerate() {
        merged.add(number, part);
    }
    Ok(merged)
}

impl Merged {
    fn add(&mut self, number: usize, part: &Part) {
        let Part { machine, measured } = part;
        let run_before = self.runs.iter().map(|run| run.run).max().unwrap_or(0);
        // Rounds of groups are told apart by what their numbers leave when divided by that of the groups.
        let groups = self.runs.iter().chain(&measured.runs).map(|run| run.groups).max().unwrap_or(0).max(1);
        let round_before = self.runs.iter().map(|run| run.round).max().unwrap_or(0).next_multiple_of(groups);
        for run in &measured.runs {
            let dir = self.place(number, machine, &run.dir);
            let (run_number, round) = (run_before + run.run, round_before + run.round);
            self.runs.push(RunRecord { run: run_number, round, dir, machine: machine.clone(), ..run.clone() });
        }
        for calibration in &measured.calibrations {
            let dir = self.place(number, machine, &calibration.dir);
            self.calibrations.push(Calibration { dir, ..calibration.clone() });
        }
        self.notices.extend(measured.notices.iter().cloned());
    }

    /// Notes where a folder belongs: `runs/07-otel` of `node-1` in `runs/node-1-07-otel`.
    fn place(&mut self, number: usize, machine: &str, dir: &str) -> String {
        let (folder, name) = dir.rsplit_once('/').map_or(("", dir), |(folder, name)| (folder, name));
        let slash = if folder.is_empty() { "" } else { "/" };
        let place = format!("{folder}{slash}{machine}-{name}");
        self.folders.push((number, dir.to_owned(), place.clone()));
        place
    }
}

fn check(parts: &[Part]) -> Result<(), MergeError> {
    let [first, others @ ..] = parts else { return Err(MergeError::TooFew) };
    if others.is_empty() {
        return Err(MergeError::TooFew);
    }
    let mut names = BTreeSet::new();
    for Part { machine, measured } in parts {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if machine.is_empty() || machine.starts_with('.') || !machine.chars().all(is_plain) {
            return Err(MergeError::Name { machine: machine.clone() });
        }
        if !names.insert(machine) {
            return Err(MergeError::Twice { machine: machine.clone() });
        }
        if measured.runs.is_empty() {
            return Err(MergeError::Empty { machine: machine.clone() });
        }
        let is_inside = |dir: &str| Path::new(dir).components().all(|part| matches!(part, Component::Normal(_)));
        let dirs = measured.runs.iter().map(|run| &run.dir).chain(measured.calibrations.iter().map(|it| &it.dir));
        if let Some(dir) = dirs.into_iter().find(|dir| !is_inside(dir)) {
            return Err(MergeError::Outside { machine: machine.clone(), dir: dir.clone() });
        }
        if measured.host.get(MACHINES).is_some() {
            return Err(MergeError::Merged { machine: machine.clone() });
        }
    }
    for other in others {
        let both = (first.machine.clone(), other.machine.clone());
        if let Some(differs) = difference(&first.measured.study, &other.measured.study) {
            return Err(MergeError::Different { first: both.0, second: both.1, differs });
        }
        let version = |part: &Part| fact(part, "unladen").unwrap_or("unknown").to_owned();
        if version(first) != version(other) {
            return Err(MergeError::Versions { first: version(first), second: version(other) });
        }
    }
    for (at, one) in parts.iter().enumerate() {
        let is_copy = |other: &&Part| other.measured.host == one.measured.host && !one.measured.host.is_null();
        if let Some(other) = parts[at + 1..].iter().find(is_copy) {
            return Err(MergeError::Copy { first: one.machine.clone(), second: other.machine.clone() });
        }
    }
    Ok(())
}

fn fact<'a>(part: &'a Part, key: &str) -> Option<&'a str> {
    part.measured.host.get(key)?.as_str()
}

/// The first lines in which two studies differ, whatever their rounds and seeds.
fn difference(one: &Study, other: &Study) -> Option<String> {
    let text = |study: &Study| resolved_yaml(&Study { rounds: 1, seed: None, ..study.clone() });
    let (one, other) = (text(one), text(other));
    let mut lines = one.lines().map(Some).chain([None]).zip(other.lines().map(Some).chain([None]));
    let (one, other) = lines.find(|(one, other)| one != other)?;
    let shown = |line: Option<&str>| line.map_or("nothing".to_owned(), |line| format!("`{}`", line.trim()));
    Some(format!("{} and {}", shown(one), shown(other)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::parse;

    fn part(machine: &str, more: &str, rounds: &[u32]) -> Part {
        let study = format!(
            "study: shop\nservices: {{shop: {{command: shop}}}}\nvariants: {{baseline: {{}}, otel: {{services: {{shop: {{env: {{A: b}}}}}}}}}}\nload: {{url: http://127.0.0.1:1/, rate: 100}}\n{more}"
        );
        let run = |run: u32, round: u32| RunRecord {
            run,
            round,
            dir: format!("runs/{run:02}-baseline"),
            ..RunRecord::empty()
        };
        let measured = Measured {
            dir: PathBuf::from(machine),
            study: parse(&study, "the test", &[]).expect("a study"),
            host: json!({"unladen": "1.0.0", "hostname": machine}),
            runs: rounds.iter().zip(1..).map(|(round, number)| run(number, *round)).collect(),
            calibrations: vec![Calibration { dir: "calibration-otel".to_owned(), ..Calibration::default() }],
            notices: Vec::new(),
        };
        Part { machine: machine.to_owned(), measured }
    }

    #[test]
    fn rounds_and_runs_of_the_parts_follow_each_other() {
        let merged = merge(&[part("a", "rounds: 2\nseed: 1\n", &[1, 2]), part("b", "rounds: 3\n", &[1, 2, 3])])
            .expect("one study");
        let numbers: Vec<(u32, u32, &str)> =
            merged.runs.iter().map(|run| (run.run, run.round, run.machine.as_str())).collect();
        assert_eq!(numbers, [(1, 1, "a"), (2, 2, "a"), (3, 3, "b"), (4, 4, "b"), (5, 5, "b")]);
        assert_eq!((merged.study.rounds, merged.study.seed), (5, None));
        assert_eq!(merged.runs[4].dir, "runs/b-03-baseline");
        let calibration = (1, "calibration-otel".to_owned(), "b-calibration-otel".to_owned());
        assert_eq!(merged.folders.last(), Some(&calibration));
        assert_eq!(merged.host["hostname"], "a");
        assert_eq!(merged.host[MACHINES]["b"]["hostname"], "b");
    }

    #[test]
    fn rounds_of_a_group_stay_rounds_of_that_group() {
        let mut parts = [part("a", "", &[1, 2, 3]), part("b", "", &[1, 2, 3, 4])];
        parts.iter_mut().flat_map(|part| &mut part.measured.runs).for_each(|run| run.groups = 2);
        let rounds: Vec<u32> = merge(&parts).expect("one study").runs.iter().map(|run| run.round).collect();
        assert_eq!(rounds, [1, 2, 3, 5, 6, 7, 8]);
    }

    #[test]
    fn what_is_not_one_study_is_refused() {
        let one = part("a", "", &[1]);
        let error = |other: Part| merge(&[one.clone(), other]).expect_err("refused").to_string();
        assert!(
            error(part("b", "window: 9s\n", &[1])).contains("`window: 9s`"),
            "{}",
            error(part("b", "window: 9s\n", &[1]))
        );
        assert!(error(part("a", "", &[1])).contains("NAME=DIR"));
        assert!(error(part("a/b", "", &[1])).contains("cannot be a machine's name"));
        assert!(error(part("b", "", &[])).contains("b has no runs"));
        let mut older = part("b", "", &[1]);
        older.measured.host["unladen"] = json!("0.9.0");
        assert!(error(older).contains("unladen 1.0.0 and unladen 0.9.0"));
        let copy = Part { machine: "b".to_owned(), ..one.clone() };
        assert!(error(copy).contains("copy of the other"));
        let mut outside = part("b", "", &[1]);
        outside.measured.runs[0].dir = "runs/../../b".to_owned();
        assert!(error(outside).contains("`runs/../../b`, which is not inside"));
        let mut merged = part("b", "", &[1]);
        merged.measured.host[MACHINES] = json!({});
        assert!(error(merged).contains("merged study"));
        assert_eq!(merge(std::slice::from_ref(&one)), Err(MergeError::TooFew));
    }
}
