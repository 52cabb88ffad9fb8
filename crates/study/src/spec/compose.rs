//! Services that come from files of another tool instead of this study: Compose files here, manifests of a cluster in `kubernetes`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use super::kubernetes::Kubernetes;

/// Where services with neither `command` nor `image` come from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct On {
    /// Compose files, merged in this order by the Compose tool: `[compose.yaml]`. Each variant of a round is a project of its own. Services of
    /// the files that the study does not name run as dependencies.
    pub compose: Option<Compose>,
    /// Manifests of a Kubernetes cluster: services of the study name their workloads. Each variant of a round is applied to a namespace of its own.
    pub kubernetes: Option<Kubernetes>,
}

impl On {
    /// Whether services come from anywhere but the study.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.compose.is_some() || self.kubernetes.is_some()
    }

    /// Whether services run on this machine. On a cluster, the CPUs and the memory that matter are not this machine's.
    #[must_use]
    pub fn is_this_machine(&self) -> bool {
        self.kubernetes.is_none()
    }
}

/// The Compose files of a study.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Compose {
    /// The files alone.
    Files(Vec<String>),
    /// The files and more.
    Project(ComposeProject),
}

/// The Compose files of a study, and what to do with them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ComposeProject {
    /// Compose files, merged in this order; relative to the study file.
    pub files: Vec<String>,
    /// Compose profiles to enable.
    pub profiles: Vec<String>,
    /// What happens to named volumes when a run ends.
    pub volumes: Volumes,
    /// Whether services may be privileged, that is, root on this machine.
    pub privileged: bool,
}

/// What becomes of the named volumes of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Volumes {
    /// Every run starts with empty ones.
    #[default]
    Fresh,
    /// Each variant keeps its own through the study.
    Keep,
}

impl Compose {
    /// With everything said.
    #[must_use]
    pub fn project(&self) -> ComposeProject {
        match self {
            Self::Files(files) => ComposeProject { files: files.clone(), ..ComposeProject::default() },
            Self::Project(project) => project.clone(),
        }
    }
}

// By hand, as `Command`.
impl<'de> Deserialize<'de> for Compose {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Compose;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of Compose files such as `[compose.yaml]`, or the keys `files`, `profiles`, `volumes`, `privileged`")
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut items: A) -> Result<Compose, A::Error> {
                let mut files = Vec::new();
                while let Some(file) = items.next_element()? {
                    files.push(file);
                }
                Ok(Compose::Files(files))
            }
            fn visit_map<A: de::MapAccess<'de>>(self, entries: A) -> Result<Compose, A::Error> {
                ComposeProject::deserialize(de::value::MapAccessDeserializer::new(entries)).map(Compose::Project)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
