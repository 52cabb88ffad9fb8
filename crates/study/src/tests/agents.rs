//! What each preset makes of a service, line by line: `agents.txt`, made anew with `UNLADEN_BLESS=1`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::super::agents::{Language, Needs, Preset, presets};
use super::super::plan::{Plan, Process};
use super::super::spec::TraceHeader;
use super::super::variables::{SINKS, Variables};
use super::super::words;
use super::super::write::{concise_yaml, resolved_yaml};
use super::study;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tests/agents.txt");

/// A service of the preset's language under it.
fn under(preset: &Preset, spans: &str) -> Plan {
    let command = match preset.language {
        Language::Java => "java -jar app.jar",
        Language::Node => "node app.js",
        Language::Python => "venv/bin/python app.py",
        Language::Go => "./app --port 1",
    };
    let path = match preset.needs {
        Needs::Package => "",
        _ => "path: agents/it, ",
    };
    let text = format!(
        "study: s\nservices: {{app: {{command: {command}, env: {{HOME: /root}}}}}}\nvariants:\n  baseline:\n  agent: {{services: {{app: {{agent: {{{}: {{{path}spans: {spans}}}}}}}}}}}\nload: {{url: 'http://localhost/'}}\n",
        preset.name
    );
    let study = study(&text, &[]);
    assert_eq!(super::study(&resolved_yaml(&study), &[]), study, "{}", preset.name);
    assert_eq!(super::study(&concise_yaml(&study), &[]), study, "{}", preset.name);
    Plan::from_study(study, Path::new("/studies")).expect(&preset.name)
}

/// The service as it is started, with the sink at `SINK`.
fn started(plan: &Plan) -> Process {
    let sinks = SINKS.iter().map(|name| ((*name).to_owned(), format!("SINK/{name}"))).collect();
    let known = Variables {
        sinks,
        study_dir: PathBuf::from("/studies"),
        run_dir: Some(PathBuf::from("/run")),
        ..plan.variables()
    };
    let [process] = &plan.variants[2].processes[..] else { panic!("one process") };
    process.resolve(&known).expect("everything is known")
}

#[test]
fn every_preset_makes_of_a_service_what_is_recorded() {
    let mut made = String::new();
    for preset in presets() {
        let plan = under(preset, "shipped");
        let shipped = started(&plan);
        let all = started(&under(preset, "all"));
        assert_eq!(all.command, shipped.command);
        let trace = plan.variants[2].load.trace;
        assert_eq!(plan.variants[0].load.trace, TraceHeader::W3c, "the baseline is as it was");
        assert_eq!(plan.sinks(), [preset.sink().expect("a protocol")]);
        let _ = writeln!(made, "## {}\n{}\ntrace: {trace:?}", preset.name, words::join(&shipped.command));
        for (name, value) in &all.env {
            let only = if shipped.env.contains_key(name) { "" } else { "all: " };
            let _ = writeln!(made, "{only}{name}={value}");
        }
        made.push('\n');
    }
    if std::env::var_os("UNLADEN_BLESS").is_some() {
        std::fs::write(FILE, &made).expect("agents.txt is written");
    }
    let recorded = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(made == recorded, "agents.txt is not current: run UNLADEN_BLESS=1 cargo test -p unladen-study\n{made}");
}

const SHOP: &str = "
study: s
services:
  app: {command: java -jar app.jar, env: {OTEL_SERVICE_NAME: shop}}
variants:
  baseline:
  otel: {services: {app: {agent: {otel-java: '${var.jar}'}, env: {OTEL_METRICS_EXPORTER: otlp}, args: [--x]}}}
variables: {jar: /agents/otel.jar}
load: {url: 'http://localhost/'}
";

#[test]
fn the_study_has_precedence() {
    let app = |sets: &[&str]| {
        let plan = Plan::from_study(study(SHOP, sets), Path::new("/studies")).expect("a plan");
        (plan.variants[2].load.trace, started(&plan))
    };
    let (_, process) = app(&[]);
    assert_eq!(process.command, ["java", "-javaagent:/agents/otel.jar", "-jar", "app.jar", "--x"]);
    assert_eq!(
        (process.env["OTEL_SERVICE_NAME"].as_str(), process.env["OTEL_METRICS_EXPORTER"].as_str()),
        ("shop", "otlp")
    );
    assert_eq!(process.env["OTEL_LOGS_EXPORTER"], "none");
    assert_eq!(process.agent.and_then(|agent| agent.path).as_deref(), Some("/agents/otel.jar"));

    let skywalking = "variants.otel.services.app.agent={skywalking-java: sw}";
    assert_eq!(app(&[skywalking]).0, TraceHeader::Sw8);
    assert_eq!(app(&[skywalking]).1.command[1], "-javaagent:/studies/sw/skywalking-agent.jar");
    assert_eq!(app(&[skywalking, "variants.otel.trace=b3"]).0, TraceHeader::B3);
    assert_eq!(app(&[skywalking, "load.trace=none"]).0, TraceHeader::None);
}
