//! Variants: what of the services each of them changes.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use unladen_journal::units::Ratio;

use super::agent::Agent;
use super::load::TraceHeader;
use super::service::{Command, Limits, Ready};
use super::spans::{Faults, Loss};
use super::texts::Texts;

/// The bare variant.
pub const BASELINE: &str = "baseline";
/// The baseline once more.
pub const PLACEBO: &str = "placebo";

/// One way to run the subject: what differs from the services as declared.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Variant {
    /// Name for people: `OpenTelemetry`. Default: the variant's key.
    pub label: Option<String>,
    /// The variant takes part only if this says something other than `no`: `${var.agent}`, for an agent that has to be brought
    /// with `--set agent=PATH`. unladen reports variants it leaves out.
    pub when: Option<String>,
    /// Compose files that are merged over those of `on` in this variant. `${UNLADEN_SINK_OTLP_GRPC}` in them is the address of the span sink, and so
    /// on for each `${sink.…}`.
    pub compose: Vec<String>,
    /// Manifests that are applied in this variant besides those of `on`: files with YAML, or folders with such files.
    pub manifests: Vec<String>,
    /// What changes, by service.
    pub services: IndexMap<String, Override>,
    /// How many spans a sampled request makes. Absent: none for the baseline, else learned in the calibration.
    pub spans_per_request: Option<f64>,
    /// Share of the requests whose spans are wanted: the load generator sets the
    /// sampled flag on exactly these. Absent: all of them.
    pub sampled: Option<Ratio>,
    /// Which trace header its requests carry. Absent: as the load says, or else the one that the service's `agent` reads. For agents
    /// that know no other one.
    pub trace: Option<TraceHeader>,
    /// Faults of the sink in this variant: how the agent behaves when its backend fails. Replaces `sink.faults`.
    pub faults: Option<Faults>,
    /// Where the agent reports spans it dropped, by stage: `queue`, `export`, or a name of your own.
    pub losses: IndexMap<String, Loss>,
}

/// What a variant changes in a service. Absent keys leave the service as it is; `env` is merged by name, `args`,
/// `volumes` and `expect_log` are appended, everything else replaces.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Override {
    /// Runs the service under an agent that unladen knows by name (`unladen agents` lists them): `otel-python`, or with its path, relative
    /// to the study file, `{otel-java: agents/otel.jar}`. `{otel-java: {path: agents/otel.jar, spans: all}}` also turns off what
    /// samples, shortens or joins spans. It adds to the command and the environment what `unladen agents show NAME` prints; `env` of the
    /// study has precedence. Requests carry the trace header that the agent reads, unless the study says which.
    pub agent: Option<Agent>,
    /// Replaces the command.
    pub command: Option<Command>,
    /// Replaces the image. Of a service that is a program: a container takes its place, and does what its image says unless `command` is given
    /// here as well.
    pub image: Option<String>,
    /// Additional labels of the pods, as injectors look for them. A variant whose labels and annotations change nothing else is refused.
    pub labels: IndexMap<String, String>,
    /// Additional annotations of the pods: `{instrumentation.opentelemetry.io/inject-java: "true"}`.
    pub annotations: IndexMap<String, String>,
    /// Strategic merge patch of the pod template, done by the API server: `{spec: {containers: [{name: app, args: [--trace]}]}}`.
    pub patch: Option<Map<String, Value>>,
    /// Additional mounts of the container.
    pub volumes: Vec<String>,
    /// Appended to the service's arguments.
    pub args: Vec<String>,
    /// Merged over the service's environment.
    pub env: IndexMap<String, String>,
    /// Replaces the build step.
    pub build: Option<Command>,
    /// Replaces the working directory.
    pub cwd: Option<String>,
    /// Replaces the readiness conditions.
    pub ready: Option<Ready>,
    /// Additional texts that the service must have said, in this variant.
    pub expect_log: Texts,
    /// Replaces the limits.
    pub limits: Option<Limits>,
}
