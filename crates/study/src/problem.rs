//! Everything that can be wrong with a study: one enum, one wording each, so that they can be read in one go.
//!
//! A wording says what is wrong, with the offending text in it, and what to write instead. The place (file, line, path)
//! is put in front by [`Problem`].

use std::fmt;

use unladen_stats::plan::TooEarly;

use super::guess::Guess;
use super::key::KeyPath;
use super::preset::{NotItsProgram, Preset};
use super::spec::SeparateReason;
use super::tree::{Node, Origin, Place};
use super::variables::VariableError;
use super::words::WordsError;

/// One thing that is wrong with a study.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// Where in the study.
    pub(super) path: KeyPath,
    /// Where in the file, if it comes from there.
    pub(super) place: Option<Place>,
    /// What.
    pub(super) kind: ProblemKind,
}

impl Problem {
    /// For `Result`s, which carry it often and hold it rarely.
    pub(super) fn boxed(path: KeyPath, place: Option<Place>, kind: ProblemKind) -> Box<Self> {
        Box::new(Self { path, place, kind })
    }

    /// Where in the study: `variants.otel.services.consumer`; empty for the study as a whole.
    #[must_use]
    pub fn path(&self) -> String {
        self.path.to_string()
    }

    /// Line in the file, from 1.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        self.place.as_ref()?.line
    }

    /// Column in the file in characters, from 1.
    #[must_use]
    pub fn column(&self) -> Option<u64> {
        self.place.as_ref()?.column
    }

    /// What is wrong and what to do, without the place.
    #[must_use]
    pub fn message(&self) -> String {
        self.kind.to_string()
    }

    /// Looks up the place in the file, if it isn't known yet.
    pub(super) fn locate(&mut self, tree: &Node) {
        if self.place.is_none() {
            self.place = Some(tree.place_of(&self.path));
        }
    }

    /// `study.yaml:7:5: services.app: unknown key …`.
    pub(super) fn render(&self, file: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = (self.line(), self.column());
        let origin = self.place.as_ref().map_or(&Origin::File, |place| &place.origin);
        match (origin, line, column) {
            (Origin::Set(text), _, _) => write!(f, "--set {text}")?,
            (_, Some(line), Some(column)) => write!(f, "{file}:{line}:{column}")?,
            _ => f.write_str(file)?,
        }
        if let Origin::Profile(name) = origin {
            write!(f, ": profile `{name}`")?;
        }
        if !self.path.is_root() {
            write!(f, ": {}", self.path)?;
        }
        write!(f, ": {}", self.kind)
    }
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum ProblemKind {
    // The document.
    #[error("the file is empty; a study needs the keys `study`, `services`, `variants` and `load`")]
    Empty,
    #[error("a study is made of keys with values, such as `study: my-service`; this file is {found}")]
    NotKeys { found: String },
    #[error("a second document starts here; a study file holds one: remove the `---` or what follows it")]
    SeveralDocuments,
    #[error("the key `{key}` stands here a second time; keep one of the two")]
    DuplicateKey { key: String },
    #[error("a tab indents this line; replace it by spaces, YAML allows nothing else")]
    Tab,
    #[error("this is nested more than {limit} levels deep; no study needs that")]
    TooDeep { limit: usize },
    #[error("the file holds more than {limit} values, with aliases (`*name`) written out; no study needs that")]
    TooManyValues { limit: usize },
    #[error("this alias (`*name`) has no anchor (`&name`) above it; write a text that begins with `*` in quotes")]
    UnknownAnchor,
    #[error("this alias (`*name`) stands within its own anchor (`&name`); write the value out")]
    CyclicAlias,
    #[error("tags (`!name`) mean nothing in a study; write a text that begins with `!` in quotes")]
    UnknownTag,
    #[error("a key must be a text; put this one in quotes")]
    OddKey,
    #[error("this isn't valid YAML: {message}; {hint}")]
    Syntax { message: String, hint: &'static str },

    // Types.
    #[error("unknown key `{key}`{guess}")]
    UnknownKey { key: String, guess: Guess },
    #[error("the key `{key}` is missing{}", example(key))]
    MissingKey { key: &'static str },
    #[error("expected {wanted}, found {found}{}", remedy(wanted, found))]
    WrongType { wanted: String, found: String },
    #[error("unknown value `{word}`{guess}")]
    UnknownWord { word: String, guess: Guess },
    #[error("{message}")]
    Unreadable { message: String },

    // Changes by `--set` and profiles.
    #[error("unknown key `{key}`{guess}")]
    NoSuchKey { key: String, guess: Guess },
    #[error("this is {found}; there is no `{step}` in it")]
    NotAContainer { found: String, step: String },
    #[error("there is no item `{item}`; the {length} of this list are numbered from 0")]
    NoSuchItem { item: String, length: usize },
    #[error("there is no {what} `{name}`{guess}")]
    NoSuchEntry { what: &'static str, name: String, guess: Guess },
    #[error("a profile cannot apply another one; put the values of both into it")]
    ProfileInProfile,
    #[error("the value isn't valid YAML: {message}; put a text that begins with `[` or `{{` in quotes")]
    SetValue { message: String },

    // Names and numbers.
    #[error("`{name}` is not a name for {what}; use 1 to 64 letters, digits, `-` and `_`")]
    BadName { what: &'static str, name: String },
    #[error("`placebo` is the name of the baseline run once more, which unladen adds; choose another name")]
    ReservedVariant,
    #[error("`{name}` is a key of the study, so `--set {name}=…` could mean either; choose another name")]
    ReservedVariable { name: String },
    #[error("this must be {range}, not {found}")]
    OutOfRange { range: &'static str, found: String },
    #[error("the limit ({limit}) is shorter than the quiet time ({quiet}); make it at least as long")]
    DrainLimitTooShort { limit: String, quiet: String },
    #[error("a text with a zero byte cannot be given to a process; remove the `\\0`")]
    ZeroByte,

    // Services.
    #[error(
        "no service has the role `subject`, so there is nothing to measure; give the service in question `role: subject`"
    )]
    NoSubject,
    #[error("a subject is started anew for every run; remove `lifetime: study`, or give the service another role")]
    SubjectLivesOn,
    #[error("{0}")]
    Words(#[from] WordsError),
    #[error("there is no service `{name}`{guess}")]
    NoSuchService { name: String, guess: Guess },
    #[error("there is no variant `{name}`{guess}")]
    NoSuchVariant { name: String, guess: Guess },
    #[error("`{service}` needs itself; remove it here")]
    NeedsItself { service: String },
    #[error("the services need each other in a circle: {circle}; remove one of these `needs`")]
    Circle { circle: String },
    #[error(
        "`{service}` lives through the study but needs `{needed}`, which is started afresh for every run; give both the same `lifetime`"
    )]
    NeedsShorterLife { service: String, needed: String },
    #[error(
        "`{service}` needs `{needed}`, which `only` keeps out of the variant `{variant}`; add the variant there, or keep `{service}` out of it too"
    )]
    NeedsAbsent { service: String, needed: String, variant: String },
    #[error("`{found}` is not a list of cores; write cores and ranges, such as `0-1,3`, or `all`")]
    BadCpuset { found: String },
    #[error("`{found}` is not a `host:port`, such as `127.0.0.1:8080` or `127.0.0.1:${{port.app}}`")]
    BadTcp { found: String },
    #[error(
        "`{found}` cannot be reached from a network of its own; write a number and a port, such as `127.0.0.1:5432` (names are not known there)"
    )]
    BadReach { found: String },
    #[error("an empty text is in every line of a log; write the text to wait for")]
    EmptyLog,
    #[error("`{service}` cannot be a `{role}`: it {why}")]
    Program { service: String, role: &'static str, why: &'static str },
    #[error(
        "`{needed}` has the role `{role}` and runs when all services are up, so `{service}` would wait for it forever; remove it from `needs`"
    )]
    NeedsProgram { service: String, needed: String, role: &'static str },
    #[error("`at_most` is for services with the role `check` or `setup`; of a driver write it under `load`")]
    AtMostOfWhom,
    #[error(
        "`{service}` runs to its end and not through the window, so nothing can be expected in its log; remove `expect_log`"
    )]
    ExpectOfWhom { service: String },
    #[error("`{name}` is not a name of an environment variable: it must not be empty or contain `=`")]
    BadEnvironmentName { name: String },

    #[error("nothing is kept of what is asked for; name at least one metric of the endpoint here")]
    KeepsNothing,
    #[error("`{name}` is not a name of a metric in the Prometheus text format; use letters, digits, `_` and `:`")]
    BadExpositionName { name: String },
    #[error("`{metric}` is measured by unladen itself; choose another name, or one of `{known}`")]
    NotMappable { metric: String, known: String },

    #[error("nothing to start: write `command: java -jar app.jar`, or `image: shop:2.1` for a container")]
    NothingToRun,
    #[error("the name of the image is empty; write one such as `postgres:17`")]
    EmptyImage,
    #[error("name at least one Compose file: `compose: [compose.yaml]`")]
    NoComposeFile,
    #[error(
        "`{key}` of a service of a Compose file is set in that file, or in a file of a variant (`compose: [FILE]`)"
    )]
    InComposeFile { key: &'static str },
    #[error(
        "nothing to start: write what it is in the manifests, as in `workload: deployment/shop`, or `command: …` for a program of this machine"
    )]
    NoWorkload,
    #[error("no service is in the cluster: write what one is in the manifests, as in `workload: deployment/shop`")]
    ClusterOfNobody,
    #[error("load from other nodes alternates between the variants, which cannot be here: {reason}. Remove `load`")]
    PartsAlternate { reason: String },
    #[error("the pods of the load have no files of this machine; remove `{key}`, or `on.kubernetes.load`")]
    FileOfLoad { key: &'static str },
    #[error("the name of a file or folder is empty; write one such as `deploy/`")]
    EmptyManifest,
    #[error(
        "`{found}` is not a workload; write a kind (`deployment`, `statefulset`, `daemonset`) and a name, as in `deployment/shop`"
    )]
    BadWorkload { found: String },
    #[error("`{workload}` is the service `{other}` already; the other containers of its pods are measured with it")]
    WorkloadTwice { workload: String, other: String },
    #[error("`{key}` of a workload is set in its manifest, or by a variant: `patch: {{spec: {{containers: […]}}}}`")]
    InManifests { key: &'static str },
    #[error(
        "a pod template has the keys `metadata` and `spec`, not `{key}`; write the patch from the template on: `patch: {{spec: …}}`"
    )]
    NotOfTemplate { key: String },
    #[error(
        "`{found}` is not a volume; write `/host/path:/path`, `./path/beside/the/study:/path`, or `/path` alone for an empty one that goes with the container"
    )]
    BadVolume { found: String },

    // Variants.
    #[error(
        "there is no variant `baseline`, the bare service that the others are compared with; {}",
        candidates(found)
    )]
    NoBaseline { found: Vec<String> },
    #[error(
        "there is nothing to compare the baseline with; add a variant, or write `placebo: true` to measure the noise alone"
    )]
    NothingToCompare,
    #[error(
        "`{service}` lives through the study (`lifetime: study`) and is shared by all variants, so none can change it; remove this, or give it `lifetime: run`"
    )]
    SharedService { service: String },
    #[error(
        "`{service}` doesn't run in this variant, as its `only` says; remove this, or add `{variant}` to its `only`"
    )]
    AbsentService { service: String, variant: String },

    #[error("a ladder needs at least two steps, as in `[baseline, attached, full]`")]
    LadderTooShort,
    #[error("`{name}` is a step of this ladder already; keep one of the two")]
    StepTwice { name: String },

    // Agents.
    #[error("no agent is called `{name}` (`unladen agents` lists them){guess}")]
    UnknownAgent { name: String, guess: Guess },
    #[error("`{agent}` needs {what}: write `agent: {{{agent}: PATH}}`. Get it with: {install}")]
    AgentLacks { agent: &'static str, what: &'static str, install: &'static str },
    #[error("`{agent}` has no path: it is found among the packages of the command; write `agent: {agent}`")]
    AgentWithoutPath { agent: &'static str },
    #[error(
        "`{agent}` is inserted after `{program}`, but this command starts with `{found}`; start with `{program}`, or leave out `agent` and add to the call of `{program}` what `unladen agents show {agent}` prints"
    )]
    AgentOfAnother { agent: &'static str, program: &'static str, found: String },
    #[error(
        "`{agent}` cannot be put into a container; leave out `agent`, mount the agent under `volumes`, and write what `unladen agents show {agent}` prints under `env`"
    )]
    AgentInContainer { agent: &'static str },
    #[error(
        "`{one}` and `{other}` read different trace headers; say which one requests carry, as in `trace: {header}`"
    )]
    AgentHeaders { one: &'static str, other: &'static str, header: String },

    #[error("no subject runs in this variant; add it to the `only` of one")]
    NoSubjectHere,

    // Load.
    #[error("`{found}` is not a URL to send requests to: {why}; write one such as `http://127.0.0.1:8080/path`")]
    BadUrl { found: String, why: &'static str },
    #[error("`{host}` isn't this machine; unladen leaves it only if the study says `allow_remote: true` under `load`")]
    Remote { host: String },
    #[error("`{found}` is not an HTTP method, such as `GET` or `POST`")]
    BadMethod { found: String },
    #[error("`{name}` is not a name of an HTTP header")]
    BadHeaderName { name: String },
    #[error("the value of the header `{name}` contains a character that HTTP forbids there; use printable characters")]
    BadHeaderValue { name: String },
    #[error("the load generator sets `{name}` itself; remove it, or write `trace: none` under `load`")]
    TraceHeaderTaken { name: String },
    #[error("the load generator sets `{name}` itself; remove it")]
    HeaderTaken { name: String },

    #[error("`{one}` and `{other}` cannot both be given: {remedy}")]
    Contradiction { one: &'static str, other: &'static str, remedy: &'static str },
    #[error("`{key}` means nothing without `{needed}`; add that, or remove `{key}`")]
    Lacks { key: &'static str, needed: &'static str },
    #[error("{what} must be exactly one of {choices}; {found} of them are given")]
    NotOne { what: &'static str, choices: &'static str, found: usize },
    #[error("`{found}` is not a gRPC method; write `package.Service/Method`")]
    BadGrpcMethod { found: String },
    #[error("there is no TLS to set up, as the url doesn't begin with `https://`; remove `tls`")]
    NotSecure,
    #[error(
        "`{host}` isn't this machine, and without verification the load could go to a stranger; give the certificate to trust as `ca`"
    )]
    InsecureRemote { host: String },
    #[error("`{service}` cannot drive the load: it {why}")]
    Driver { service: String, why: &'static str },
    #[error("`{service}` would never be started: name it as `load.driver`, or give it another role")]
    IdleDriver { service: String },
    #[error("`{{{{{name}}}}}` is neither a value nor captured by an earlier step{guess}")]
    UnknownPlaceholder { name: String, guess: Guess },
    #[error("there is another {what} with the name `{name}`; rename one")]
    NameTwice { what: &'static str, name: String },
    #[error("`{found}` is not a JSON pointer; it begins with `/`, as in `/items/0/id`")]
    BadPointer { found: String },
    // Spans.
    #[error("give either `log` (a pattern for the lines of a log) or `prometheus` with `metric`, and not both")]
    LogOrPrometheus,
    #[error("give either `http` with `pointer`, or `prometheus` with `metric`, and not both")]
    HttpOrPrometheus,
    #[error(
        "`http` and `pointer` go together: the URL of a JSON document, and where in it the number is; `body` goes with them"
    )]
    HttpAndPointer,
    #[error("`prometheus` and `metric` go together: the URL of the metrics, and the name of one of them")]
    PrometheusAndMetric,
    #[error("this is not a regular expression: {message}")]
    BadPattern { message: String },
    #[error(
        "a pattern has one group `(…)`, the number of spans, or none; this one has {groups}, write the others as `(?:…)`"
    )]
    ManyGroups { groups: usize },
    #[error("this pattern matches every line, even an empty one; make it more specific")]
    PatternOfNothing,
    #[error("{message}")]
    BadMetric { message: String },
    #[error(
        "`{service}` lives through the study, so its log covers all runs at once; use `prometheus`, or give it `lifetime: run`"
    )]
    LogOfManyRuns { service: String },
    #[error("only a service with the role `storage` or `collector` is counted; give it one, or remove `count`")]
    CountOfWhom,
    #[error(
        "both {names} run in this variant and are counted; where the spans arrive must be one place: give one of them the role `collector`, or remove its `count`"
    )]
    TwoStorages { names: String },

    // The matrix.
    #[error(
        "`{key}` is not a variable of the study and no key under `variants`, `services`, `load` or `sink`, so it cannot take several values"
    )]
    NoAxis { key: String },
    #[error("there are no values; write at least one, as in `[1, 2, 5]`")]
    EmptyAxis,
    #[error("`{value}` stands here already; keep one of the two")]
    ValueTwice { value: String },
    #[error("this makes {variants} combinations, too many for one round; leave out some values")]
    MatrixTooLarge { variants: usize },
    #[error("a combination of values is not a study: {message}")]
    BadCell { message: String },
    #[error(
        "`{service}` lives through the study (`lifetime: study`) and is shared by all values, so `{key}` cannot change it; give it `lifetime: run`"
    )]
    SharedByCells { service: String, key: String },

    // Rounds.
    #[error(
        "`{metric}` is only known after the study, so a study cannot run until its interval is narrow; name another metric"
    )]
    NotByRun { metric: String },
    #[error("the variants cannot alternate: {0}; remove `design`, or write `design: separate`")]
    CannotAlternate(SeparateReason),

    // Budgets.
    #[error("{0}, or remove `on_undecided: extend`")]
    TooEarly(TooEarly),
    #[error("unknown metric `{name}`{guess}")]
    UnknownMetric { name: String, guess: Guess },
    #[error("`{found}` is not a limit for {metric}; write {wanted}")]
    BadLimit { metric: String, found: String, wanted: String },

    // Variables.
    #[error("no service uses `${{port.{name}}}`, so nothing can listen there{advice}")]
    PortOfNobody { name: String, advice: String },
    #[error("{0}")]
    Variable(#[from] VariableError),
}

/// What a missing key could look like.
fn example(key: &str) -> &'static str {
    match key {
        "study" => "; name the study: `study: my-service`",
        "services" => "; it says which processes to start",
        "variants" => "; it says which ways of running the service to compare, `baseline` first",
        "load" => "; it says what is asked of the service: `url`, and `rate` or `connections`",
        "requests" => "; it lists what is sent: `requests: [{name: home, path: /}]`",
        "limit" => "; it says how long an answer may take: `limit: 20ms`",
        "url" => "; it says where requests go: `url: http://127.0.0.1:8080/path`",
        _ => "",
    }
}

/// What to do about a wrong type, where that isn't plain from what was expected.
fn remedy(wanted: &str, found: &str) -> &'static str {
    match (wanted, found) {
        (_, found) if found.contains("${") => "; `${…}` is filled in within texts only, change this with `--set`",
        ("true or false", found) if ["`yes`", "`on`"].iter().any(|word| found.ends_with(word)) => "; write `true`",
        ("true or false", found) if ["`no`", "`off`"].iter().any(|word| found.ends_with(word)) => "; write `false`",
        ("a list", found) if !found.starts_with("keys") => "; write it in brackets, as in `[a, b]`",
        ("a text", "nothing") => "; write `\"\"` for an empty text",
        ("a text", "a list" | "keys with values") => "; if it is meant as text, put it in quotes",
        (wanted, found) if wanted.contains("number") && found.starts_with("the text `") && number_in(found) => {
            "; remove the quotes"
        }
        (wanted, found) if wanted.starts_with("a time") && found.starts_with("the number") => {
            "; add the unit, as in `5s`"
        }
        _ => "",
    }
}

/// Whether the text in "the text `12`" is a number.
fn number_in(found: &str) -> bool {
    found.trim_start_matches("the text `").trim_end_matches('`').parse::<f64>().is_ok()
}

impl ProblemKind {
    /// A command that is none of an agent's.
    pub(super) fn of_agent(preset: &'static Preset, error: NotItsProgram) -> Self {
        Self::AgentOfAnother { agent: &preset.name, program: error.wanted, found: error.found }
    }
}

/// What to do when there is no baseline.
fn candidates(found: &[String]) -> String {
    match found {
        [] => "add `baseline:` under `variants`".to_owned(),
        found => {
            let names: Vec<String> = found.iter().map(|name| format!("`{name}`")).collect();
            format!("add `baseline:`, or rename the one that is bare (there are {})", names.join(", "))
        }
    }
}
