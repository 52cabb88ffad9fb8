//! Every refusal, word for word, as a user reads it: `refusals.txt`, made anew with `UNLADEN_BLESS=1`.
//!
//! A case there is `## name`, then either lines `- old` and `+ new` that vary `shop.yaml` or a whole document in lines
//! `| …`, changes in lines `--set …`, and last, in lines `> …`, what is said.

use std::fmt::Write as _;

use super::super::problem::ProblemKind;
use super::{SHOP, refusal};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tests/refusals.txt");

struct Case<'a> {
    /// Everything of the case but what is said.
    head: Vec<&'a str>,
    /// What is said, as recorded.
    recorded: Vec<&'a str>,
}

impl Case<'_> {
    fn text(&self) -> String {
        let whole: Vec<&str> = self.head.iter().filter_map(|line| line.strip_prefix('|')).collect();
        if !whole.is_empty() {
            let lines = whole.iter().map(|line| line.strip_prefix(' ').unwrap_or(line));
            return lines.map(|line| line.replace("→", "\t") + "\n").collect();
        }
        let mut lines: Vec<String> = SHOP.lines().map(str::to_owned).collect();
        let mut at = None;
        for change in &self.head {
            if let Some(old) = change.strip_prefix("- ") {
                let matches: Vec<usize> = (0..lines.len()).filter(|index| lines[*index] == old).collect();
                assert_eq!(matches.len(), 1, "{}: `{old}` stands once in shop.yaml", self.head[0]);
                lines.remove(matches[0]);
                at = Some(matches[0]);
            } else if let Some(new) = change.strip_prefix("+ ") {
                let index = at.map_or(lines.len(), |index| index);
                lines.insert(index, new.to_owned());
                at = Some(index + 1);
            }
        }
        lines.join("\n") + "\n"
    }

    fn says(&self) -> String {
        let sets: Vec<&str> = self.head.iter().filter_map(|line| line.strip_prefix("--set ")).collect();
        refusal(&self.text(), &sets)
    }
}

fn cases(file: &str) -> Vec<Case<'_>> {
    let mut cases: Vec<Case<'_>> = Vec::new();
    for line in file.lines().filter(|line| !line.is_empty()) {
        match (line.strip_prefix("> "), cases.last_mut()) {
            (_, _) if line.starts_with("## ") => cases.push(Case { head: vec![line], recorded: Vec::new() }),
            (Some(recorded), Some(case)) => case.recorded.push(recorded),
            (None, Some(case)) => case.head.push(line),
            (_, None) => panic!("`{line}` stands before the first case"),
        }
    }
    cases
}

#[test]
fn every_refusal_reads_as_recorded() {
    let file = std::fs::read_to_string(FILE).expect("refusals.txt");
    let cases = cases(&file);
    assert!(cases.len() > 90, "only {} cases", cases.len());
    let mut blessed = String::new();
    let mut wrong = String::new();
    for case in &cases {
        let text = case.says();
        let _ = writeln!(blessed, "{}\n> {}\n", case.head.join("\n"), text.replace('\n', "\n> "));
        if text != case.recorded.join("\n") {
            let _ = writeln!(
                wrong,
                "{}\n  says     {text}\n  recorded {}",
                case.head[0],
                case.recorded.join("\n           ")
            );
        }
    }
    if std::env::var_os("UNLADEN_BLESS").is_some() {
        std::fs::write(FILE, blessed.trim_end().to_owned() + "\n").expect("refusals.txt is written");
    } else {
        assert!(wrong.is_empty(), "{wrong}");
    }
}

#[test]
fn the_variations_start_from_a_study_that_is_accepted() {
    assert_eq!(refusal(SHOP, &[]), "accepted");
}

/// A wording that no case shows would be one that nobody has read.
#[test]
fn every_wording_is_shown() {
    let file = std::fs::read_to_string(FILE).expect("refusals.txt");
    let mut count = 0;
    for source in [include_str!("../problem.rs"), include_str!("../words.rs")] {
        for attribute in source.split("#[error(").skip(1).filter_map(|rest| rest.trim_start().strip_prefix('"')) {
            let unescaped = attribute.replace("\\\"", "\u{1}");
            let wording = unescaped.split('"').next().unwrap_or_default().replace('\u{1}', "\"").replace("\\\\", "\\");
            // The longest stretch without a gap is enough to recognise it.
            let plain = wording.replace("{{", "\u{1}").replace("}}", "\u{2}");
            let stretches = plain.split(['{', '}']).step_by(2);
            let longest = stretches.max_by_key(|stretch| stretch.len()).unwrap_or_default();
            let longest = longest.replace('\u{1}', "{").replace('\u{2}', "}");
            assert!(file.contains(&longest), "no case in refusals.txt shows `{wording}`");
            count += 1;
        }
    }
    assert!(count > 60, "only {count} wordings found");
}

/// Far too many aliases, levels and values cost milliseconds, not the machine.
#[test]
fn hostile_documents_are_refused() {
    let mut laughs = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for level in 1..10 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        let _ = writeln!(laughs, "a{level}: &a{level} [{aliases}]");
    }
    let long_text = format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), vec!["*a"; 90].join(", "));
    let deep = format!("a: {}{}\n", "[".repeat(100), "]".repeat(100));
    let deep_block: String = (0..200).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    let wide = format!("a: [{}]\n", "1,".repeat(30_000));
    let anchors: String = (0..2_000).map(|index| format!("a{index}: &x{index} 1\n")).collect::<String>() + "z: *x1\n";
    let variables = format!(
        "study: x\nvariables:\n{}  v0: x\nservices: {{a: {{command: \"${{var.v20}}\"}}}}\nvariants: {{baseline: }}\nload: {{url: \"http://localhost/\"}}\n",
        (1..21)
            .rev()
            .map(|level| format!("  v{level}: {}\n", format!("${{var.v{}}}", level - 1).repeat(10)))
            .collect::<String>()
    );
    for (text, expected) in [
        (laughs.as_str(), ProblemKind::TooManyValues { limit: 20_000 }.to_string()),
        (&long_text, ProblemKind::TooManyValues { limit: 20_000 }.to_string()),
        (&deep, ProblemKind::TooDeep { limit: 40 }.to_string()),
        (&deep_block, ProblemKind::TooDeep { limit: 40 }.to_string()),
        (&wide, ProblemKind::TooManyValues { limit: 20_000 }.to_string()),
        (&anchors, "unknown key `a0`".to_owned()),
        (&variables, "the variables in this text stand for more than".to_owned()),
    ] {
        let started = std::time::Instant::now();
        let text = refusal(text, &[]);
        assert!(text.contains(&expected), "{expected}: {}", text.lines().next().unwrap_or_default());
        assert!(started.elapsed().as_secs() < 5, "{expected}: took {:?}", started.elapsed());
    }
}

mod any {
    use proptest::prelude::*;

    use super::super::super::read::parse;
    use super::{SHOP, refusal};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn text_is_read_or_refused(text in "\\PC{0,80}") {
            prop_assert!(!refusal(&text, &[]).is_empty());
        }

        /// A slip anywhere in a good file: a character lost, doubled or replaced.
        #[test]
        fn slips_are_read_or_refused(at in 0..SHOP.len(), slip in "[a-z:\\-\\[{&*!|>'\"%@`#,\t\n $]?") {
            let text = format!("{}{slip}{}", &SHOP[..at], &SHOP[at + 1..]);
            if let Err(error) = parse(&text, "study.yaml", &[]) {
                for problem in error.problems() {
                    let lines = u64::try_from(text.lines().count()).expect("few lines");
                    prop_assert!(problem.line().is_none_or(|line| (1..=lines + 1).contains(&line)), "{error}");
                }
            }
        }

        #[test]
        fn changes_are_made_or_refused(key in "[a-z.]{1,12}|(variants|services|load|budgets)(\\.[a-z0-9]{0,6}){0,4}", value in "\\PC{0,12}") {
            let text = refusal(SHOP, &[&format!("{key}={value}")]);
            prop_assert!(!text.is_empty());
        }
    }
}
