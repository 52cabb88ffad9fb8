//! The pages of the book do what they say: commands marked `run` are run, all others, also those of the README, are held against
//! `--help`, links lead somewhere, and what stands in the table of contents is there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::CommandFactory;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// The pages of the book, by their path below `docs`.
fn pages() -> Vec<String> {
    let mut pages = Vec::new();
    for folder in ["", "how-to/", "reference/", "explanation/", "adr/"] {
        for entry in fs::read_dir(docs().join(folder)).expect("a folder") {
            let name = entry.expect("an entry").file_name().into_string().expect("a name");
            if name.ends_with(".md") {
                pages.push(format!("{folder}{name}"));
            }
        }
    }
    pages.sort();
    pages
}

fn text(page: &str) -> String {
    fs::read_to_string(docs().join(page)).expect(page)
}

/// The `console` blocks of a page: what stands behind the word, and the commands, each on one line.
fn blocks(page: &str) -> Vec<(String, Vec<String>)> {
    let text = text(page);
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(mark) = line.strip_prefix("```console") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|it| *it != "```").collect();
        let joined = block.join("\n").replace("\\\n", " ");
        let commands = joined.lines().filter_map(|it| it.strip_prefix("$ ")).map(str::to_owned).collect();
        blocks.push((mark.trim().to_owned(), commands));
    }
    blocks
}

/// Every command of ours in any block of a page, each on one line, without what a shell does with it.
fn typed(page: &str) -> Vec<String> {
    let text = text(page).replace("\\\n", " ");
    let mut within = false;
    let lines = text.lines().map(str::trim_start).filter(|line| {
        let fence = line.starts_with("```");
        within ^= fence;
        within && !fence
    });
    let commands = lines.filter_map(|line| {
        let line = line.strip_prefix("$ ").or_else(|| line.strip_prefix("- ")).unwrap_or(line);
        let command = line.split(" > ").next()?.split("  #").next()?.trim_end();
        command.starts_with("unladen ").then(|| command.to_owned())
    });
    commands.collect()
}

/// Words as a shell splits them, as far as pages need it: spaces and single quotes.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted, mut any) = (Vec::new(), String::new(), false, false);
    for character in command.chars() {
        match character {
            '\'' => (quoted, any) = (!quoted, true),
            ' ' if !quoted => {
                if any {
                    words.push(std::mem::take(&mut word));
                }
                any = false;
            }
            other => {
                word.push(other);
                any = true;
            }
        }
    }
    words.extend(any.then_some(word));
    words
}

fn free_port() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port().to_string()
}

#[test]
fn commands_marked_so_do_what_the_page_says() {
    let mut ran = 0;
    for page in pages() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (mark, commands) in blocks(&page) {
            let Some(how) = mark.strip_prefix("run") else { continue };
            let wanted: i32 = how.trim().strip_prefix("exit ").map_or(0, |code| code.parse().expect("an exit code"));
            for command in commands {
                // The port of a page may be taken where the test runs.
                let words = words(&command.replace("18481", &free_port()));
                assert_eq!(words[0], "unladen", "{page}: {command}");
                let output = Command::new(env!("CARGO_BIN_EXE_unladen"))
                    .args(&words[1..])
                    .current_dir(folder.path())
                    .output()
                    .expect("the executable");
                let stderr = String::from_utf8_lossy(&output.stderr);
                let stdout = String::from_utf8_lossy(&output.stdout);
                // A machine that is too busy to measure gets no verdict: so it should be.
                let late = stdout.contains("void") || stderr.contains("the start time passed");
                let void = late && output.status.code() == Some(2);
                assert!(void || output.status.code() == Some(wanted), "{page}: {command}\n{stdout}{stderr}");
                assert!(void || !stdout.is_empty(), "{page}: {command} says nothing");
                ran += 1;
            }
        }
    }
    assert!(ran >= 7, "{ran} commands");
}

#[test]
fn every_command_is_one_that_unladen_takes() {
    let mut count = 0;
    for page in pages().into_iter().chain(["../README.md".to_owned()]) {
        for command in typed(&page) {
            let parsed = unladen::cli::Cli::command().try_get_matches_from(words(&command));
            assert!(parsed.is_ok(), "{page}: {command}\n{}", parsed.expect_err("not taken"));
            count += 1;
        }
    }
    assert!(count >= 30, "{count} commands");
}

#[test]
fn the_book_has_every_page_and_its_links_lead_somewhere() {
    let summary: BTreeSet<String> = links("SUMMARY.md").into_iter().collect();
    let all: BTreeSet<String> = pages().into_iter().filter(|it| it != "SUMMARY.md").collect();
    assert_eq!(summary, all, "docs/SUMMARY.md has each page once");
    for page in pages() {
        let folder = docs().join(&page).parent().expect("docs").to_owned();
        for link in links(&page) {
            assert!(folder.join(&link).exists(), "{page} links to {link}");
        }
    }
}

/// Where the links of a page lead, those to the web and within the page apart.
fn links(page: &str) -> Vec<String> {
    let text = text(page);
    let targets = text.split("](").skip(1).filter_map(|it| it.split(')').next());
    let inside = targets.filter(|it| !it.contains("://") && !it.starts_with('#') && !it.contains(' '));
    inside.map(|it| it.split('#').next().unwrap_or_default().to_owned()).collect()
}

/// The studies on the how-to pages are taken. Other YAML there is for CI systems.
#[test]
fn studies_in_the_how_to_pages_are_studies() {
    let mut count = 0;
    for page in pages().into_iter().filter(|it| it.starts_with("how-to/")) {
        for block in text(&page).split("```yaml\n").skip(1).filter(|it| it.starts_with("study:")) {
            let yaml = block.split("```").next().unwrap_or_default();
            let read = unladen_study::read::parse(yaml, &page, &[]);
            assert!(read.is_ok(), "{page}: {}", read.expect_err("not taken"));
            count += 1;
        }
    }
    assert!(count >= 2, "{count} studies");
}
