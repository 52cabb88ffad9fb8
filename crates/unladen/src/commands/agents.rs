//! `agents`: which agents there are by name, and what each adds to a service.

use std::fmt::{self, Write as _};
use std::process::ExitCode;

use indexmap::IndexMap;
use unladen_report::lines;
use unladen_study::agents::{self, Language, Needs, Preset, presets};
use unladen_study::spec::{Spans, TraceHeader};

use super::print;
use crate::cli::{Agents, AgentsCommand};

/// Width to which notes are wrapped.
const WIDTH: usize = 84;

/// `unladen agents`
///
/// # Errors
/// When there is no agent of that name.
pub fn agents(options: &Agents) -> anyhow::Result<ExitCode> {
    match &options.command {
        None | Some(AgentsCommand::List) => print(&list(presets())?),
        Some(AgentsCommand::Show { name }) => match agents::find(name) {
            Some(preset) => print(&shown(preset)?),
            None => anyhow::bail!("{}", agents::unknown(name).unwrap_or_default()),
        },
    }
}

/// A table, one line an agent.
fn list(presets: &[Preset]) -> Result<String, fmt::Error> {
    let head = ["name", "language", "spans", "needs"].map(str::to_owned);
    let rows = presets.iter().map(|it| {
        let sink = it.sink().unwrap_or_default();
        [it.name.clone(), it.language.name().to_owned(), sink, needs(it)]
    });
    let rows: Vec<[String; 4]> = [head].into_iter().chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or_default();
    let widths = [width(0), width(1), width(2)];
    let mut text = String::new();
    for [name, language, sink, needs] in &rows {
        writeln!(text, "{name:<0$}  {language:<1$}  {sink:<2$}  {needs}", widths[0], widths[1], widths[2])?;
    }
    text += "\n`unladen agents show NAME` prints what an agent adds to a service, and how to get it.";
    Ok(text)
}

/// What the user must give, in a few words.
fn needs(preset: &Preset) -> String {
    let from = preset.from.join(", ");
    match preset.needs {
        Needs::Jar => format!("jar: {from}"),
        Needs::Folder => format!("folder with {}", preset.file.as_deref().unwrap_or_default()),
        Needs::Package => format!("installed: {from}"),
        Needs::Build => "a program built with it".to_owned(),
    }
}

/// Everything that is to be known of an agent.
fn shown(preset: &Preset) -> Result<String, fmt::Error> {
    let (typed, word) = match preset.needs {
        Needs::Jar => ("agents/agent.jar", "JAR"),
        Needs::Folder => ("agents/folder", "FOLDER"),
        Needs::Package => ("", ""),
        Needs::Build => ("./built-with-it", "PROGRAM"),
    };
    let mut text = format!("{}: {}\n\n", preset.name, preset.title);
    let mut row = |what: &str, found: &str| writeln!(text, "  {what:<9} {found}");
    let least = preset.least.map(|least| format!(" {least} or later")).unwrap_or_default();
    row("language", &format!("{}{least}", preset.language.name()))?;
    row("needs", &format!("{} ({})", preset.needs.name(), preset.from.join(", ")))?;
    row("get it", &preset.install)?;
    let sink = preset.sink().unwrap_or_default();
    row("spans", &format!("to ${{sink.{sink}}}"))?;
    row("header", header(preset.trace))?;
    row("command", &command(preset, word))?;
    let (name, separator) = (&preset.name, if typed.is_empty() { "" } else { "=" });
    row("compare", &format!("unladen compare … --agent {name}{separator}{typed}"))?;
    match typed {
        "" => row("study", &format!("agent: {name}"))?,
        typed => row("study", &format!("agent: {{{name}: {typed}}}"))?,
    }
    row("tested", preset.tested.as_deref().unwrap_or("not yet by this project"))?;

    let shipped: Vec<(String, String)> = preset.environment(Spans::Shipped, Some(word), "SERVICE").collect();
    environment(&mut text, "environment (the study's own `env` has precedence)", &shipped)?;
    let all: IndexMap<String, String> = preset.environment(Spans::All, Some(word), "SERVICE").collect();
    let more: Vec<(String, String)> = all.into_iter().filter(|entry| !shipped.contains(entry)).collect();
    environment(&mut text, "environment besides, with `spans: all`", &more)?;
    text += "\n  notes\n";
    for note in &preset.notes {
        for (index, line) in lines(note, WIDTH).into_iter().enumerate() {
            writeln!(text, "    {} {line}", if index == 0 { "-" } else { " " })?;
        }
    }
    Ok(text)
}

fn environment(text: &mut String, head: &str, entries: &[(String, String)]) -> fmt::Result {
    writeln!(text, "\n  {head}")?;
    if entries.is_empty() {
        writeln!(text, "    none")?;
    }
    entries.iter().try_for_each(|(name, value)| writeln!(text, "    {name}={value}"))
}

/// The header by its name.
fn header(trace: TraceHeader) -> &'static str {
    match trace {
        TraceHeader::W3c => "traceparent (W3C)",
        TraceHeader::B3 => "b3 (Zipkin)",
        TraceHeader::Sw8 => "sw8 (SkyWalking)",
        TraceHeader::Sentry => "sentry-trace (Sentry)",
        TraceHeader::Xray => "X-Amzn-Trace-Id (AWS X-Ray)",
        TraceHeader::Pinpoint => "Pinpoint-TraceID (Pinpoint)",
        TraceHeader::None => "none",
    }
}

/// A command under the agent.
fn command(preset: &Preset, path: &str) -> String {
    let words = preset.words(Some(path), "SERVICE").join(" ");
    match preset.language {
        Language::Java => format!("java {words} …"),
        Language::Node => format!("node {words} …"),
        Language::Python => format!("{words} python …"),
        Language::Go => format!("{path} …"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preset(name: &str) -> &'static Preset {
        agents::find(name).expect("a preset")
    }

    #[test]
    fn the_list_has_a_line_for_each() {
        let printed = list(presets()).expect("text");
        for preset in presets() {
            assert!(printed.lines().any(|line| line.starts_with(&format!("{} ", preset.name))), "{}", preset.name);
        }
        let columns =
            |name: &str| printed.lines().find(|line| line.starts_with(name)).and_then(|line| line.find("otlp_http"));
        assert_eq!(columns("otel-java "), columns("aws-java "));
        assert!(columns("otel-java ").is_some(), "{printed}");
    }

    #[test]
    fn an_agent_is_shown_with_all_that_it_takes() {
        let printed = shown(preset("elastic-java")).expect("text");
        for wanted in [
            "elastic-java: Elastic's APM agent for Java\n",
            "  language  Java 8 or later\n",
            "  needs     the path of the agent's jar (co.elastic.apm:elastic-apm-agent)\n",
            "  spans     to ${sink.elastic}\n",
            "  header    traceparent (W3C)\n",
            "  command   java -javaagent:JAR …\n",
            "  compare   unladen compare … --agent elastic-java=agents/agent.jar\n",
            "  study     agent: {elastic-java: agents/agent.jar}\n",
            "    ELASTIC_APM_SERVICE_NAME=SERVICE\n",
            "with `spans: all`\n    ELASTIC_APM_SPAN_COMPRESSION_ENABLED=false\n",
        ] {
            assert!(printed.contains(wanted), "{wanted} is not in\n{printed}");
        }
        let printed = shown(preset("otel-python")).expect("text");
        assert!(printed.contains("  study     agent: otel-python\n"), "{printed}");
        assert!(printed.contains("  command   opentelemetry-instrument python …\n"), "{printed}");
        assert!(printed.contains("with `spans: all`\n    none\n"), "{printed}");
    }

    #[test]
    fn a_name_that_is_none_is_refused() {
        let options = Agents { command: Some(AgentsCommand::Show { name: "otel-jva".to_owned() }) };
        let error = agents(&options).expect_err("no agent").to_string();
        assert!(error.ends_with("did you mean `otel-java`?"), "{error}");
    }
}
