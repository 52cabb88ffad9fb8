//! `doctor`: can this machine measure? What stands in the way, and what to do about it.
//!
//! `facts` asks the machine, `checks` judges what it said; `cluster` does both for a cluster. Nothing is changed: every remedy is a command
//! for the user.

mod checks;
mod cluster;
mod facts;

use std::fmt::Write as _;
use std::process::ExitCode;

use unladen_report::lines;

use self::checks::{Check, checks};
use self::facts::Facts;
use super::print;
use crate::cli::Doctor;

/// Width to which a finding is wrapped: what is left of 100 columns beside the mark and the name.
const WIDTH: usize = 80;

/// `unladen doctor`
///
/// # Errors
/// When `/proc` cannot be read; of a cluster, when the study cannot be read or the cluster does not answer.
pub fn doctor(options: &Doctor) -> anyhow::Result<ExitCode> {
    if options.study.is_some() || options.context.is_some() || options.role {
        return cluster::doctor(options);
    }
    let checks = checks(&Facts::gather()?);
    if options.json {
        return print(&serde_json::to_string_pretty(&checks)?);
    }
    print(&text(&checks)?)
}

/// One line a check, the remedy below; then how many there are to heed.
fn rows(checks: &[Check]) -> Result<(String, usize), std::fmt::Error> {
    let mut text = String::new();
    for check in checks {
        let mark = if check.remedy.is_none() { "ok  " } else { "warn" };
        let mut found = lines(&check.found, WIDTH).into_iter();
        writeln!(text, "{mark}  {:<13} {}", check.what, found.next().unwrap_or_default())?;
        for line in found.chain(check.remedy.iter().flat_map(|remedy| lines(&format!("→ {remedy}"), WIDTH))) {
            writeln!(text, "                    {line}")?;
        }
    }
    Ok((text, checks.iter().filter(|check| check.remedy.is_some()).count()))
}

/// What is said of this machine.
fn text(checks: &[Check]) -> Result<String, std::fmt::Error> {
    let (mut text, care) = rows(checks)?;
    text += &match care {
        0 => "\nThis machine can measure.".to_owned(),
        1 => "\nThis machine can measure, with the caveat above: the intervals show how much it matters.".to_owned(),
        more => format!(
            "\nThis machine can measure, with the {more} caveats above: the intervals show how much they matter."
        ),
    };
    text += "\n`unladen run STUDY --plan` (or `unladen demo --plan`) says which effect a study detects in what time.";
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_stands_below_its_finding() {
        let check = |remedy: Option<&str>| Check {
            what: "steal",
            found: "0.0 % of the machine in 2 s".to_owned(),
            remedy: remedy.map(str::to_owned),
        };
        let printed = text(&[check(None), check(Some("Use another machine."))]).expect("text");
        let lines: Vec<&str> = printed.lines().collect();
        assert_eq!(lines[0], "ok    steal         0.0 % of the machine in 2 s");
        assert_eq!(lines[2], "                    → Use another machine.");
        assert!(printed.contains("with the caveat above"), "{printed}");
        let long = text(&[check(Some(&"word ".repeat(60)))]).expect("text");
        assert!(long.lines().take(5).all(|line| line.chars().count() <= 100), "{long}");
    }
}
