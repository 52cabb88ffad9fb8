//! Agents by name: presets of what a user would otherwise write by hand of a service's command, environment and trace header.
//!
//! A preset is data, a file in `presets`. What it says of a command is worked out in [`super::preset`]; [`super::planned`] puts it into the plan.

use std::sync::OnceLock;

use super::guess::{Guess, guess};
pub use super::preset::{Language, Needs, Preset};
use super::spec::{Agent, Variant};
use super::{typed, yaml};

macro_rules! files {
    ($($name:literal)*) => { &[$(include_str!(concat!("../presets/", $name, ".yaml"))),*] };
}

/// The presets as they stand, by name.
const FILES: &[&str] = files![
    "aws-java" "aws-node" "aws-python" "azure-java" "azure-node" "azure-python" "datadog-go" "datadog-go-otlp"
    "datadog-java" "datadog-java-otlp" "datadog-node" "datadog-node-otlp" "datadog-python" "datadog-python-otlp"
    "elastic-go" "elastic-java" "elastic-node" "elastic-python" "instana-node" "instana-python" "logfire-python"
    "newrelic-go" "newrelic-java" "newrelic-node" "newrelic-python" "otel-go" "otel-go-zipkin" "otel-java"
    "otel-java-zipkin" "otel-node" "otel-node-zipkin" "otel-python" "pinpoint-java" "pinpoint-node" "sentry-go"
    "sentry-java" "sentry-node" "sentry-python" "skywalking-go" "skywalking-java" "skywalking-node"
    "skywalking-python" "splunk-java" "splunk-node" "splunk-python" "xray-node" "xray-python"
];

/// The agent that a process runs under.
#[derive(Debug, Clone, PartialEq)]
pub struct Under {
    /// Which.
    pub preset: &'static Preset,
    /// Where it is, if the user had to say so.
    pub path: Option<String>,
}

/// All presets, by name.
#[must_use]
pub fn presets() -> &'static [Preset] {
    static PRESETS: OnceLock<Vec<Preset>> = OnceLock::new();
    // A test holds that every file is one.
    let read = |text: &&str| yaml::parse(text).ok().and_then(|tree| typed::read(&tree, &["name"]).ok());
    PRESETS.get_or_init(|| FILES.iter().filter_map(read).map(Preset::started_by_code).collect())
}

/// The preset of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Preset> {
    presets().iter().find(|preset| preset.name == name)
}

/// What may have been meant by a name that is none.
pub(super) fn guess_name(name: &str) -> Guess {
    guess(name, presets().iter().map(|preset| preset.name.as_str()))
}

/// What to say of a name that is none; `None`: it is one.
#[must_use]
pub fn unknown(name: &str) -> Option<String> {
    let said = || format!("no agent is called `{name}` (`unladen agents` lists them){}", guess_name(name));
    find(name).is_none().then(said)
}

impl Agent {
    /// Its path in the words of a study, from which it starts if it is relative.
    pub(super) fn path_in_study(&self) -> Option<String> {
        let path = self.path.as_deref()?;
        // What a variable stands for says itself where it is.
        let is_placed = path.starts_with('/') || path.starts_with("${");
        Some(if is_placed { path.to_owned() } else { format!("${{study.dir}}/{}", path.trim_start_matches("./")) })
    }
}

impl Variant {
    /// The agents of its services, in their order, as far as they are known.
    pub(super) fn agents(&self) -> impl Iterator<Item = &'static Preset> {
        self.services.values().filter_map(|change| find(&change.agent.as_ref()?.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_a_preset_of_that_name() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/presets");
        let files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
        let mut files: Vec<String> =
            files.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned())).collect();
        files.sort();
        let names: Vec<&str> = presets().iter().map(|preset| preset.name.as_str()).collect();
        assert_eq!(names, files);
    }

    #[test]
    fn every_preset_is_whole() {
        for preset in presets() {
            let name = &preset.name;
            assert!(
                preset.sink().is_some_and(|sink| super::super::variables::SINKS.contains(&sink.as_str())),
                "{name}"
            );
            assert_eq!(preset.needs == Needs::Folder, preset.file.is_some(), "{name}");
            // Of a Go program it is part; in Python a variable of the environment may start it.
            let is_started_otherwise =
                preset.language == Language::Go || preset.env.contains_key("AUTOWRAPT_BOOTSTRAP");
            assert_eq!(is_started_otherwise, preset.command.is_empty(), "{name}");
            if let Some(code) = &preset.code {
                assert!(!code.contains(['\'', '\\']), "{name}");
                assert!(preset.language == Language::Python || code.lines().count() == 1, "{name}");
            }
            let takes_path = preset.command.iter().any(|word| word.contains("${agent}"));
            assert_eq!(matches!(preset.needs, Needs::Jar | Needs::Folder), takes_path, "{name}");
            assert!(!preset.from.is_empty() && !preset.notes.is_empty() && !preset.install.is_empty(), "{name}");
        }
    }

    #[test]
    fn a_path_starts_at_the_study() {
        let path = |path: &str| Agent::new("otel-java", Some(path)).path_in_study();
        assert_eq!(path("agents/otel.jar").as_deref(), Some("${study.dir}/agents/otel.jar"));
        assert_eq!(path("./otel.jar").as_deref(), Some("${study.dir}/otel.jar"));
        assert_eq!(path("/a/otel.jar").as_deref(), Some("/a/otel.jar"));
        assert_eq!(path("${env.HOME}/otel.jar").as_deref(), Some("${env.HOME}/otel.jar"));
    }

    #[test]
    fn a_slip_is_told_of() {
        assert_eq!(unknown("otel-java"), None);
        assert_eq!(
            unknown("otl-java").as_deref(),
            Some("no agent is called `otl-java` (`unladen agents` lists them), did you mean `otel-java`?")
        );
    }
}
