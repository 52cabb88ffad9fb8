//! `${…}` in the texts of a study: what there is, where it stands, and what it is replaced by.
//!
//! | written | becomes |
//! |---|---|
//! | `${port.NAME}` | a free port, the same through the whole study; name it after the service that listens on it. In a service with replicas each has its own, and `${port.NAME.1}` is that of replica 1 |
//! | `${sink.otlp_grpc}`, `${sink.otlp_http}` | `host:port` of the span sink |
//! | `${sink.otlp_http.host}`, `${sink.otlp_http.port}` | one of the two alone |
//! | `${study.dir}`, `${run.dir}` | folder of the study file; folder of the run under way |
//! | `${replica}` | 0, 1, … within a service |
//! | `${var.NAME}` | an entry of the study's `variables` |
//! | `${env.NAME}`, `${env.NAME:-default}` | unladen's own environment; the default stands in for an unset or empty one |
//! | `${unladen}` | path of the unladen that runs |
//! | `$$` | one `$` |
//!
//! Pure: what the world knows (ports, environment, folders) is handed in as [`Variables`].

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use indexmap::IndexMap;
use unladen_decode::span::Protocol;

use super::guess::{Guess, guess};

/// Protocols that the sink offers, as in `${sink.NAME}`.
pub const SINKS: [&str; Protocol::ALL.len()] = Protocol::NAMES;

/// Bounds on what variables within variables may grow to: replacements made, and bytes of the result.
const MAX_REPLACEMENTS: usize = 1_000;
const MAX_LENGTH: usize = 1 << 20;

/// One `${…}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// `${port.NAME}` or `${port.NAME.REPLICA}`.
    Port {
        /// Name of the port.
        name: String,
        /// Replica, if one is named.
        replica: Option<u32>,
    },
    /// `${sink.PROTOCOL}`, `${sink.PROTOCOL.host}` or `${sink.PROTOCOL.port}`.
    Sink {
        /// Protocol.
        protocol: String,
        /// What of the address.
        part: SinkPart,
    },
    /// `${study.dir}`.
    StudyDir,
    /// `${run.dir}`.
    RunDir,
    /// `${replica}`.
    Replica,
    /// `${unladen}`.
    Unladen,
    /// `${var.NAME}`.
    Variable(String),
    /// `${env.NAME}` or `${env.NAME:-default}`.
    Environment {
        /// Name of the environment variable.
        name: String,
        /// What stands in for an unset or empty one.
        default: Option<String>,
    },
}

/// What is wanted of an address of the sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkPart {
    /// Host and port.
    Address,
    /// The host.
    Host,
    /// The port.
    Port,
}

impl SinkPart {
    /// What stands behind the protocol.
    fn name(self) -> &'static str {
        match self {
            Self::Address => "",
            Self::Host => ".host",
            Self::Port => ".port",
        }
    }

    /// This part of an address.
    pub(super) fn of(self, address: &str) -> &str {
        match (self, address.rsplit_once(':')) {
            (Self::Host, Some((host, _))) => host,
            (Self::Port, Some((_, port))) => port,
            _ => address,
        }
    }
}

/// A port that a plan needs: one number through the whole study.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortName {
    /// Name, as in `${port.NAME}`.
    pub name: String,
    /// Replica whose port it is; 0 without replicas.
    pub replica: u32,
}

impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.name, self.replica)
    }
}

/// What the world knows, for [`resolve`]. Start with [`super::plan::Plan::variables`].
#[derive(Clone, Default)]
pub struct Variables {
    /// Ports by name; [`super::plan::Plan::ports`] says which are needed.
    pub ports: BTreeMap<PortName, u16>,
    /// `host:port` by protocol, for [`SINKS`].
    pub sinks: BTreeMap<String, String>,
    /// Folder of the study file, absolute.
    pub study_dir: PathBuf,
    /// Folder of the run under way, absolute; `None` outside runs.
    pub run_dir: Option<PathBuf>,
    /// Path of the running executable.
    pub unladen: PathBuf,
    /// The study's `variables`.
    pub values: IndexMap<String, String>,
    /// Services that are found by their names: those of a Compose project or a cluster.
    pub hosts: Vec<String>,
    /// unladen's own environment.
    pub environment: BTreeMap<String, String>,
}

/// A `${…}` that means nothing, or nothing yet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VariableError {
    /// No closing brace.
    #[error("`{text}` isn't closed; write `${{…}}`, or `$$` for a `$`")]
    Unclosed {
        /// From the `${` on, shortened.
        text: String,
    },
    /// None of the known ones.
    #[error("there is no `${{{name}}}` (`$${{{name}}}` is the text itself){advice}")]
    Unknown {
        /// Between the braces.
        name: String,
        /// What may have been meant.
        advice: String,
    },
    /// Known, but its name is not one.
    #[error("`${{{text}}}` isn't complete; write it as `{form}`, the name in letters, digits, `-` and `_`")]
    Malformed {
        /// Between the braces.
        text: String,
        /// What it should look like.
        form: &'static str,
    },
    /// Not in `variables`.
    #[error("the variable `{name}` isn't defined{advice}")]
    Undefined {
        /// Name.
        name: String,
        /// What may have been meant.
        advice: String,
    },
    /// Variables that hold each other.
    #[error("the variable `{name}` is made of itself; give it a value")]
    Circle {
        /// Name.
        name: String,
    },
    /// Variables that hold each other over and over.
    #[error("the variables in this text stand for more than {MAX_REPLACEMENTS} replacements or 1 MiB; write it out")]
    TooLong,
    /// Not in unladen's environment.
    #[error(
        "the environment variable `{name}` isn't set; set it before starting unladen, or write `${{env.{name}:-default}}`"
    )]
    Unset {
        /// Name.
        name: String,
    },
    /// Not known at this place or time.
    #[error("`${{{name}}}` isn't known here: {why}")]
    Unavailable {
        /// Between the braces.
        name: String,
        /// Where it is known.
        why: &'static str,
    },
    /// A replica that the service doesn't have.
    #[error(
        "`${{port.{service}.{replica}}}` is the port of a replica that isn't there: `{service}` has {replicas}, counted from 0"
    )]
    NoSuchReplica {
        /// Service.
        service: String,
        /// Replica asked for.
        replica: u32,
        /// How many there are.
        replicas: u32,
    },
}

/// A stretch of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// As it is.
    Text(&'a str),
    /// `$$`.
    Dollar,
    /// `${…}` with its source.
    Reference(Reference, &'a str),
}

/// The `${…}` of a text, in order.
///
/// # Errors
/// When one isn't closed, unknown or malformed.
pub fn names(text: &str) -> Result<Vec<Reference>, VariableError> {
    let references = pieces(text)?.into_iter().filter_map(|piece| match piece {
        Piece::Reference(reference, _) => Some(reference),
        _ => None,
    });
    Ok(references.collect())
}

/// The text with every `${…}` replaced.
///
/// # Errors
/// When one means nothing, or is not known yet.
pub fn resolve(text: &str, variables: &Variables) -> Result<String, VariableError> {
    let mut resolved = String::with_capacity(text.len());
    for piece in pieces(&expand(text, &variables.values, |_| None)?)? {
        match piece {
            Piece::Text(text) => resolved.push_str(text),
            Piece::Dollar => resolved.push('$'),
            Piece::Reference(reference, _) => resolved.push_str(&variables.look_up(&reference)?),
        }
    }
    Ok(resolved)
}

/// The text with `${var.…}` replaced, and what `replace` knows; everything else, `$$` too, stays as written.
pub(super) fn expand(
    text: &str,
    values: &IndexMap<String, String>,
    replace: impl Fn(&Reference) -> Option<String>,
) -> Result<String, VariableError> {
    Expansion { values, replace, within: Vec::new(), replacements: 0, length: 0 }.expand(text)
}

/// An expansion under way.
struct Expansion<'a, F> {
    values: &'a IndexMap<String, String>,
    replace: F,
    /// The variables that are being replaced, outermost first.
    within: Vec<String>,
    replacements: usize,
    length: usize,
}

impl<F: Fn(&Reference) -> Option<String>> Expansion<'_, F> {
    fn expand(&mut self, text: &str) -> Result<String, VariableError> {
        let mut expanded = String::new();
        for piece in pieces(text)? {
            let part: Cow<'_, str> = match piece {
                // A lone dollar is doubled too, so that it cannot meet a brace of what comes next.
                Piece::Dollar | Piece::Text("$") => "$$".into(),
                Piece::Text(text) => text.into(),
                Piece::Reference(Reference::Variable(name), _) => self.variable(name)?.into(),
                Piece::Reference(reference, source) => {
                    (self.replace)(&reference).map_or_else(|| source.into(), Cow::Owned)
                }
            };
            expanded.push_str(&part);
            if expanded.len() > MAX_LENGTH {
                return Err(VariableError::TooLong);
            }
        }
        Ok(expanded)
    }

    fn variable(&mut self, name: String) -> Result<String, VariableError> {
        if self.within.contains(&name) {
            return Err(VariableError::Circle { name });
        }
        let Some(value) = self.values.get(&name) else { return Err(undefined(name, self.values)) };
        self.replacements += 1;
        if self.replacements > MAX_REPLACEMENTS || self.length > 64 * MAX_LENGTH {
            return Err(VariableError::TooLong);
        }
        self.within.push(name);
        let expanded = self.expand(value)?;
        self.within.pop();
        self.length += expanded.len();
        Ok(expanded)
    }
}

fn undefined(name: String, values: &IndexMap<String, String>) -> VariableError {
    let advice = match guess(&name, values.keys().map(String::as_str)) {
        Guess::Near(near) => format!(", did you mean `${{var.{near}}}`?"),
        _ => format!("; define it under `variables`, or give it with `--set variables.{name}=…`"),
    };
    VariableError::Undefined { name, advice }
}

impl Variables {
    fn look_up(&self, reference: &Reference) -> Result<String, VariableError> {
        let unavailable = |why| VariableError::Unavailable { name: reference.to_string(), why };
        match reference {
            Reference::Port { name, replica } => {
                let port = PortName { name: name.clone(), replica: replica.unwrap_or(0) };
                let number = self.ports.get(&port).ok_or_else(|| unavailable("no port was taken for it"))?;
                Ok(number.to_string())
            }
            Reference::Sink { protocol, part } => {
                let address = self.sinks.get(protocol).ok_or_else(|| unavailable("the sink isn't listening yet"))?;
                Ok(part.of(address).to_owned())
            }
            Reference::StudyDir => Ok(self.study_dir.display().to_string()),
            Reference::RunDir => {
                let dir = self.run_dir.as_ref().ok_or_else(|| unavailable(ONLY_IN_A_RUN))?;
                Ok(dir.display().to_string())
            }
            Reference::Replica => Err(unavailable(ONLY_IN_A_SERVICE)),
            Reference::Unladen => Ok(self.unladen.display().to_string()),
            Reference::Variable(name) => Err(undefined(name.clone(), &self.values)),
            Reference::Environment { name, default } => {
                match (self.environment.get(name).filter(|value| !value.is_empty()), default) {
                    (Some(value), _) | (None, Some(value)) => Ok(value.clone()),
                    // Set, if to nothing: that is what was asked for.
                    (None, None) if self.environment.contains_key(name) => Ok(String::new()),
                    (None, None) => Err(VariableError::Unset { name: name.clone() }),
                }
            }
        }
    }
}

/// Why `${run.dir}` isn't known.
const ONLY_IN_A_RUN: &str = "it is the folder of a run, and none is under way";
/// Why `${replica}` isn't known.
pub(super) const ONLY_IN_A_SERVICE: &str = "it numbers the replicas of a service, and this isn't a part of one";

/// What stands between the braces.
impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port { name, replica: None } => write!(f, "port.{name}"),
            Self::Port { name, replica: Some(replica) } => write!(f, "port.{name}.{replica}"),
            Self::Sink { protocol, part } => write!(f, "sink.{protocol}{}", part.name()),
            Self::StudyDir => f.write_str("study.dir"),
            Self::RunDir => f.write_str("run.dir"),
            Self::Replica => f.write_str("replica"),
            Self::Unladen => f.write_str("unladen"),
            Self::Variable(name) => write!(f, "var.{name}"),
            Self::Environment { name, default: None } => write!(f, "env.{name}"),
            Self::Environment { name, default: Some(default) } => write!(f, "env.{name}:-{default}"),
        }
    }
}

/// Splits a text at its `${…}` and `$$`.
pub(super) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, VariableError> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        let (before, from) = rest.split_at(dollar);
        let (piece, length) = if from.starts_with("$$") {
            (Piece::Dollar, 2)
        } else if let Some(inner) = from.strip_prefix("${") {
            let Some(end) = inner.find('}') else {
                return Err(VariableError::Unclosed { text: super::tree::shortened(from) });
            };
            let length = end + 3;
            (Piece::Reference(reference(&inner[..end])?, &from[..length]), length)
        } else {
            // A lone `$` is just that: `sh -c 'echo $HOME'` is for the shell to read.
            (Piece::Text("$"), 1)
        };
        if !before.is_empty() {
            pieces.push(Piece::Text(before));
        }
        pieces.push(piece);
        rest = &from[length..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    Ok(pieces)
}

/// Whether a text can be the NAME of a port or variable.
#[must_use]
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// Whether a text can be the name of a variable: names with dots between them (`agent.jar`).
pub(super) fn is_variable(text: &str) -> bool {
    text.split('.').all(is_name)
}

/// What stands between the braces, read.
fn reference(text: &str) -> Result<Reference, VariableError> {
    let malformed = |form| VariableError::Malformed { text: text.to_owned(), form };
    let unknown = || VariableError::Unknown { name: text.to_owned(), advice: advice(text) };
    let (group, name) = text.split_once('.').unwrap_or((text, ""));
    match (group, name) {
        ("replica", "") => Ok(Reference::Replica),
        ("unladen", "") => Ok(Reference::Unladen),
        ("study", "dir") => Ok(Reference::StudyDir),
        ("run", "dir") => Ok(Reference::RunDir),
        ("sink", name) => sink(name).ok_or_else(unknown),
        ("var", name) if is_variable(name) => Ok(Reference::Variable(name.to_owned())),
        ("var", _) => Err(malformed("${var.NAME}")),
        ("port", name) => {
            let (name, replica) = name.split_once('.').map_or((name, None), |(name, replica)| (name, Some(replica)));
            let replica =
                replica.map(|digits| digits.parse().map_err(|_| malformed("${port.NAME.REPLICA}"))).transpose()?;
            if is_name(name) {
                Ok(Reference::Port { name: name.to_owned(), replica })
            } else {
                Err(malformed("${port.NAME}"))
            }
        }
        ("env", name) => {
            let (name, default) = name.split_once(":-").map_or((name, None), |(name, default)| (name, Some(default)));
            let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c));
            if is_name {
                Ok(Reference::Environment { name: name.to_owned(), default: default.map(str::to_owned) })
            } else {
                Err(malformed("${env.NAME}"))
            }
        }
        _ => Err(unknown()),
    }
}

/// An address of the sink, or a part of one.
fn sink(text: &str) -> Option<Reference> {
    [SinkPart::Host, SinkPart::Port, SinkPart::Address].into_iter().find_map(|part| {
        let protocol = text.strip_suffix(part.name()).filter(|protocol| SINKS.contains(protocol))?;
        Some(Reference::Sink { protocol: protocol.to_owned(), part })
    })
}

/// What an unknown `${…}` may have meant.
fn advice(text: &str) -> String {
    let sinks = SINKS.map(|protocol| format!("sink.{protocol}"));
    let fixed = ["study.dir", "run.dir", "replica", "unladen"];
    let known = || fixed.into_iter().chain(sinks.iter().map(String::as_str));
    let last = text.rsplit('.').next().unwrap_or(text);
    let by_end = known().find(|name| name.rsplit('.').next() == Some(last));
    if let Some(name) = by_end {
        return format!(", did you mean `${{{name}}}`?");
    }
    if let Guess::Near(name) = guess(text, known()) {
        return format!(", did you mean `${{{name}}}`?");
    }
    if let Some((group, name)) = text.split_once('.')
        && is_name(name)
        && let Guess::Near(group) = guess(group, ["port", "var", "env"])
    {
        return format!(", did you mean `${{{group}.{name}}}`?");
    }
    if is_name(text) && text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_') {
        return format!(", did you mean `${{env.{text}}}`?");
    }
    if is_name(text) {
        return format!(", did you mean `${{var.{text}}}` or `${{port.{text}}}`?");
    }
    "; there are `${port.NAME}`, `${sink.PROTOCOL}`, `${study.dir}`, `${run.dir}`, `${replica}`, `${var.NAME}`, `${env.NAME}` and `${unladen}`".to_owned()
}
