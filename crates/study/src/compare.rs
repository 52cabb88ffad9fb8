//! A study from the options of `unladen compare`: two or more commands, a command and agents by name, or sets of Compose files, and a
//! URL, no YAML.
//!
//! The study that comes out is an ordinary one. It is printed ([`super::write::concise_yaml`]), so that it can be saved,
//! edited and run with `unladen run`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::str::FromStr;

use indexmap::IndexMap;
use unladen_journal::units::Time;

use super::agents;
use super::spec::{Agent, BASELINE, Command, Compose, Load, Override, PLACEBO, Ready, Service, Spans, Study, Variant};
use super::url::url_problem;
use super::variables::{Reference, expand, is_name};
use super::words::{self, WordsError};

/// How long a service may take to answer at its URL: eight JVMs with agents that start at once on two cores take a while. One that ends is
/// noticed at once.
const READY_TIMEOUT_S: f64 = 180.0;

/// What `unladen compare` is told of the sides and the load; how to measure is set as in any study.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Where requests go; the service answers there.
    pub url: String,
    /// Requests per second; `None`: closed loop over `connections`.
    pub rate: Option<f64>,
    /// Connections; `None`: the default of a study.
    pub connections: Option<u32>,
    /// The bare service.
    pub baseline: Bare,
    /// The others, in order. Of a service of Compose files: names of further files, with commas between.
    pub variants: Vec<NamedCommand>,
    /// Agents under which the bare command runs besides, each a variant. With the others at least one.
    pub agents: Vec<NamedAgent>,
    /// What the service may reach outside a network of its own: `host:port`.
    pub reach: Vec<String>,
    /// Folder in which the commands start, absolute, so that the study can be run from anywhere.
    pub cwd: PathBuf,
}

/// Where the bare service is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bare {
    /// Its command line. `NAME=value` words in front go to its environment.
    Command(String),
    /// A service of Compose files.
    Compose {
        /// The files, as typed.
        files: Vec<String>,
        /// Its name.
        service: String,
    },
}

/// A variant: `otel=java -javaagent:otel.jar -jar app.jar`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedCommand {
    /// Name of the variant.
    pub name: String,
    /// Command line.
    pub command: String,
}

/// A variant that is the bare command under an agent: `otel-java=otel.jar`, `otel-python`, `elastic-java:all=elastic.jar`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedAgent {
    /// Name of the variant: the agent's, with `-all` if it is to make all spans.
    pub name: String,
    /// The agent; its path is as typed.
    pub agent: Agent,
}

/// Options from which no study can be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// Not `NAME=COMMAND`.
    #[error(
        "`{text}` has no name; write `--variant 'NAME=COMMAND'`, such as `--variant 'otel=java -javaagent:otel.jar -jar app.jar'`"
    )]
    NoName {
        /// As given.
        text: String,
    },
    /// The name before the `=` is none.
    #[error("`{name}` is not a name for a variant; use letters, digits, `-` and `_`, as in `--variant 'otel=COMMAND'`")]
    BadName {
        /// As given.
        name: String,
    },
    /// A name that unladen uses itself.
    #[error(
        "`{name}` is taken: the bare command is `--baseline`, and `placebo` is the same once more; choose another name"
    )]
    Reserved {
        /// As given.
        name: String,
    },
    /// A name that stands twice.
    #[error("two variants are named `{name}`; give each a name of its own")]
    Twice {
        /// As given.
        name: String,
    },
    /// Nothing to compare with.
    #[error("there is nothing to compare the baseline with; add `--variant 'NAME=COMMAND'`, or `--agent NAME=PATH`")]
    NoVariant,
    /// An agent that nobody knows, or another word behind its name than `all`.
    #[error("{message}")]
    Agent {
        /// What is wrong, and what to write.
        message: String,
    },
    /// A command line that cannot be split.
    #[error("{option}: {source}")]
    Command {
        /// Option that it was given with.
        option: String,
        /// What is wrong with it.
        source: WordsError,
    },
    /// No URL, or one that leaves this machine.
    #[error("--url: {message}")]
    Url {
        /// What is wrong with it.
        message: String,
    },
    /// No rate.
    #[error("--rate: a rate is more than 0 requests per second, not {rate}")]
    Rate {
        /// As given.
        rate: String,
    },
}

impl FromStr for NamedCommand {
    type Err = CompareError;

    fn from_str(text: &str) -> Result<Self, CompareError> {
        let Some((name, command)) = text.split_once('=') else {
            return Err(CompareError::NoName { text: text.to_owned() });
        };
        let name = name.trim();
        if !is_name(name) {
            return Err(CompareError::BadName { name: name.to_owned() });
        }
        if name == BASELINE || name == PLACEBO {
            return Err(CompareError::Reserved { name: name.to_owned() });
        }
        Ok(Self { name: name.to_owned(), command: command.trim().to_owned() })
    }
}

impl FromStr for NamedAgent {
    type Err = CompareError;

    fn from_str(text: &str) -> Result<Self, CompareError> {
        let (agent, path) = text.split_once('=').map_or((text, None), |(agent, path)| (agent, Some(path.trim())));
        let (name, flavour) = agent.trim().split_once(':').map_or((agent.trim(), None), |(name, it)| (name, Some(it)));
        let refused = |message| Err(CompareError::Agent { message });
        if let Some(message) = agents::unknown(name) {
            return refused(message);
        }
        let agent = Agent::new(name, path);
        match flavour {
            None => Ok(Self { name: name.to_owned(), agent }),
            Some("all") => Ok(Self { name: format!("{name}-all"), agent: Agent { spans: Spans::All, ..agent } }),
            Some(other) => {
                refused(format!("`{other}` is no flavour of an agent; write `{name}`, or `{name}:all` for all spans"))
            }
        }
    }
}

impl Comparison {
    /// The study that answers the comparison.
    ///
    /// # Errors
    /// When a command line, a name, the URL or the rate is none.
    pub fn study(&self) -> Result<Study, CompareError> {
        self.check_url()?;
        if let Some(rate) = self.rate.filter(|rate| !(rate.is_finite() && *rate > 0.0)) {
            return Err(CompareError::Rate { rate: rate.to_string() });
        }
        if self.names().next().is_none() {
            return Err(CompareError::NoVariant);
        }
        let mut known = BTreeSet::new();
        if let Some(twice) = self.names().find(|name| !known.insert(*name)) {
            return Err(CompareError::Twice { name: twice.to_owned() });
        }
        match &self.baseline {
            Bare::Command(line) => self.of_commands(line),
            Bare::Compose { files, service } => Ok(self.of_compose(files, service)),
        }
    }

    /// Names of the variants.
    fn names(&self) -> impl Iterator<Item = &str> {
        let agents = self.agents.iter().map(|agent| agent.name.as_str());
        self.variants.iter().map(|variant| variant.name.as_str()).chain(agents)
    }

    /// The study without services and variants.
    fn frame(&self, service: &str) -> Study {
        let names: Vec<&str> = self.names().collect();
        let mut load = Load::new(&self.url);
        load.rate = self.rate;
        load.connections = self.connections.unwrap_or(load.connections);
        let mut study = Study::new(format!("compare-{service}"), load);
        study.question = format!("What does {} cost {service}?", names.join(" or "));
        study.reach.clone_from(&self.reach);
        study
    }

    fn of_compose(&self, files: &[String], service: &str) -> Study {
        let mut study = self.frame(service);
        study.on.compose = Some(Compose::Files(files.to_vec()));
        let http = Some(self.url.clone());
        let mut named = Service::new(Command::default());
        named.ready = Ready { http, timeout: Time::seconds(READY_TIMEOUT_S), ..Ready::default() };
        study.services.insert(service.to_owned(), named);
        study.variants.insert(BASELINE.to_owned(), Variant::default());
        for NamedCommand { name, command } in &self.variants {
            let compose = command.split(',').map(|file| file.trim().to_owned()).collect();
            study.variants.insert(name.clone(), Variant { compose, ..Variant::default() });
        }
        study
    }

    fn of_commands(&self, line: &str) -> Result<Study, CompareError> {
        let baseline = Parsed::new("--baseline", line)?;
        let service = baseline.service_name();
        let mut variants = IndexMap::new();
        // What the baseline alone sets must not reach the others, so it is not the service's own environment.
        let bare = Override { env: baseline.env, ..Override::default() };
        variants.insert(BASELINE.to_owned(), variant(&service, bare.clone()));
        for NamedCommand { name, command } in &self.variants {
            let parsed = Parsed::new(&format!("--variant {name}"), command)?;
            let change = Override { command: Some(parsed.command), env: parsed.env, ..Override::default() };
            variants.insert(name.clone(), variant(&service, change));
        }
        for NamedAgent { name, agent } in &self.agents {
            let path = agent.path.as_ref().map(|path| self.placed(path));
            let agent = Some(Agent { path, ..agent.clone() });
            variants.insert(name.clone(), variant(&service, Override { agent, ..bare.clone() }));
        }
        let mut study = self.frame(&service);
        study.services.insert(service, self.service(baseline.command));
        study.variants = variants;
        Ok(study)
    }

    /// The bare service: there when its port takes connections and its URL answers.
    fn service(&self, command: Command) -> Service {
        let mut service = Service::new(command);
        service.cwd = Some(self.placed(""));
        service.ready = Ready {
            http: Some(self.url.clone()),
            tcp: Some(address(&self.url)),
            timeout: Time::seconds(READY_TIMEOUT_S),
            ..Ready::default()
        };
        service
    }

    /// A path as typed, in the words of a study that may lie elsewhere. What begins with `${…}` says itself where it is.
    fn placed(&self, path: &str) -> String {
        match path {
            "" => self.cwd.display().to_string().replace('$', "$$"),
            placed if placed.starts_with("${") => placed.to_owned(),
            path => self.cwd.join(path.trim_start_matches("./")).display().to_string().replace('$', "$$"),
        }
    }

    /// Whether the URL is one, with a number in place of a port that unladen is to pick.
    fn check_url(&self) -> Result<(), CompareError> {
        let refused = |message| CompareError::Url { message };
        let sample = expand(&self.url, &IndexMap::new(), |reference| match reference {
            Reference::Port { .. } => Some("1".to_owned()),
            _ => None,
        });
        let sample = sample.map_err(|error| refused(error.to_string()))?;
        // What comes from the environment is checked when it is known.
        let is_measured = |host: &str| matches!(&self.baseline, Bare::Compose { service, .. } if service == host);
        let problem = (!sample.contains("${")).then(|| url_problem(&sample, is_measured)).flatten();
        problem.map_or(Ok(()), |problem| Err(refused(problem.to_string())))
    }
}

/// `host:port` of a URL, as written.
fn address(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = rest[..end].rsplit('@').next().unwrap_or_default();
    // `[::1]` has colons of its own.
    let has_port = authority.rsplit(']').next().is_some_and(|after| after.contains(':'));
    match (has_port, scheme) {
        (true, _) => authority.to_owned(),
        (false, "https") => format!("{authority}:443"),
        (false, _) => format!("{authority}:80"),
    }
}

/// What differs from the bare service.
fn variant(service: &str, change: Override) -> Variant {
    let services =
        if change == Override::default() { IndexMap::new() } else { IndexMap::from([(service.to_owned(), change)]) };
    Variant { services, ..Variant::default() }
}

/// A command line, its environment apart.
struct Parsed {
    command: Command,
    program: String,
    env: IndexMap<String, String>,
}

impl Parsed {
    fn new(option: &str, line: &str) -> Result<Self, CompareError> {
        let parts = words::parse(line).map_err(|source| CompareError::Command { option: option.to_owned(), source })?;
        // As typed where that is possible: it is to be recognised in the printed study.
        let text = if parts.assignments.is_empty() { line.trim().to_owned() } else { words::join(&parts.words) };
        let program = parts.words.first().cloned().unwrap_or_default();
        Ok(Self { command: Command::Line(text), program, env: parts.assignments.into_iter().collect() })
    }

    /// A name for the service: its program without folder and odd characters.
    fn service_name(&self) -> String {
        let file = self.program.rsplit('/').next().unwrap_or_default();
        let name: String = file.chars().map(|c| if is_name(c.encode_utf8(&mut [0; 4])) { c } else { '-' }).collect();
        let name: String = name.trim_matches('-').chars().take(40).collect();
        if name.is_empty() { "service".to_owned() } else { name }
    }
}
