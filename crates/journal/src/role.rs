//! What a service is in the study.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a service is in the study; costs are summed by role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The service whose cost is asked for.
    #[default]
    Subject,
    /// Something that the subject needs: a database, another service. Not instrumented.
    Dependency,
    /// A process that takes telemetry on its way: an agent daemon, a collector.
    Collector,
    /// Where telemetry is kept: a tracing backend or its database.
    Storage,
    /// A program that does a fixed amount of work with the subject and ends: the load of a study that names it as
    /// `load.driver`. Its own cost is nobody's.
    Driver,
    /// A program that runs to its end when all services are ready and before the load begins: it creates what the load asks for.
    /// A run for which it fails does not count.
    Setup,
    /// A program that runs to its end after the drain, while the services are still up: it looks whether the run did what it should.
    /// A run for which it fails does not count.
    Check,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Subject, Self::Dependency, Self::Collector, Self::Storage, Self::Driver, Self::Setup, Self::Check];

    /// As in the study file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Subject => "subject",
            Self::Dependency => "dependency",
            Self::Collector => "collector",
            Self::Storage => "storage",
            Self::Driver => "driver",
            Self::Setup => "setup",
            Self::Check => "check",
        }
    }

    /// Whether it is a program that is started when its turn has come and runs to its end, not a service that stays up.
    #[must_use]
    pub fn ends_by_itself(self) -> bool {
        matches!(self, Self::Driver | Self::Setup | Self::Check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_study_file() {
        for role in Role::ALL {
            assert_eq!(serde_json::to_value(role).expect("a role"), role.name());
        }
    }
}
