#![doc = include_str!("../README.md")]

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use unladen_judge::findings::Findings;

pub use template::environment as template_environment;
pub use view::lines;

mod csv;
mod flame;
mod forest;
mod json;
pub mod junit;
mod markdown;
mod page;
mod parquet;
pub mod pilot;
mod plot;
mod template;
mod text;
mod view;

/// plotly.js, compressed by gzip: what draws the charts of `report.html`.
pub static CHART_LIBRARY: &[u8] = page::COMPRESSED_LIBRARY;
/// The style of `report.html`.
pub const STYLE: &str = page::STYLE;

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// For a terminal of 100 columns.
    #[default]
    Text,
    /// For a pull request.
    Markdown,
    /// `findings.json`.
    Json,
    /// One line per finding.
    Csv,
    /// One page that needs nothing else.
    Html,
    /// The forest plot alone.
    Svg,
    /// Every number, also by round, for DuckDB, pandas and the like.
    Parquet,
}

/// A report that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct WriteError {
    path: PathBuf,
    source: io::Error,
}

/// The report as plain text without colours. Parquet is no text: see [`bytes`].
#[must_use]
pub fn render(findings: &Findings, format: Format) -> String {
    match format {
        Format::Text => text::plain(findings),
        Format::Markdown => markdown::render(findings),
        Format::Json => json::render(findings),
        Format::Csv => csv::render(findings),
        Format::Html => page::render(findings),
        Format::Svg => forest::render(findings),
        Format::Parquet => String::new(),
    }
}

/// The report as bytes.
///
/// # Errors
/// When Parquet cannot be made.
pub fn bytes(findings: &Findings, format: Format) -> io::Result<Vec<u8>> {
    match format {
        Format::Parquet => parquet::render(findings).map_err(io::Error::other),
        text => Ok(render(findings, text).into_bytes()),
    }
}

/// Prints the report to standard output: with colours if that is a terminal and `NO_COLOR` and `CLICOLOR` allow it.
///
/// # Errors
/// When standard output cannot be written to.
pub fn print(findings: &Findings, format: Format) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    match format {
        Format::Text => out.write_all(text::coloured(findings).as_bytes())?,
        Format::Parquet if io::stdout().is_terminal() => {
            return Err(io::Error::other("Parquet is nothing for a terminal: send it to a file with `>`"));
        }
        // Not by way of the stream that takes out colours: these bytes mean what they are.
        Format::Parquet => io::stdout().write_all(&bytes(findings, format)?)?,
        other => out.write_all(render(findings, other).as_bytes())?,
    }
    out.flush()
}

/// Writes `findings.json`, `report.md`, `report.html` and the flame graphs into `dir`.
///
/// # Errors
/// When a file cannot be written; none is ever left half written.
pub fn write_all(dir: &Path, findings: &Findings) -> Result<(), WriteError> {
    for (name, format) in
        [("findings.json", Format::Json), ("report.md", Format::Markdown), ("report.html", Format::Html)]
    {
        let path = dir.join(name);
        replace(&path, &render(findings, format)).map_err(|source| WriteError { path, source })?;
    }
    for profile in &findings.profiles {
        let path = dir.join(&profile.flame_graph);
        let drawn = flame::draw(dir, profile).and_then(|drawing| replace(&path, &drawing));
        drawn.map_err(|source| WriteError { path, source })?;
    }
    Ok(())
}

/// Writes beside the file and moves it into place.
fn replace(path: &Path, content: &str) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    let written = fs::write(&beside, content).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // Only tidying up: the error that matters is the first one.
        drop(fs::remove_file(&beside));
    }
    written
}
