//! What can go wrong with a Compose project, each with what to do about it.

use std::io;

use super::super::container::error::ContainerError;

/// Why a project could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ComposeError {
    /// There is no Compose tool.
    #[error(
        "Compose is not installed: it is neither a plugin of Docker (`docker compose`) nor in PATH (`docker-compose`). Install `docker-compose-plugin` or `docker-compose`"
    )]
    Absent,
    /// The tool did not do what it was asked for.
    #[error("Compose could not {what}:\n{said}")]
    Refused {
        /// What it was asked for.
        what: &'static str,
        /// Its own words.
        said: String,
    },
    /// It took too long.
    #[error(
        "Compose did not start the project within {seconds} s. Raise `ready.timeout` of a service, or check the health checks. Its last output:\n{said}"
    )]
    Late {
        /// How long it had.
        seconds: u64,
        /// Its last words.
        said: String,
    },
    /// What it makes of the files is not understood.
    #[error("the output of `docker-compose config` cannot be read ({reason}). Does it list the services?")]
    Unreadable {
        /// Why.
        reason: String,
    },
    /// A service of the study that is not in the files.
    #[error("there is no service `{service}` in {files}; there are: {known}")]
    NoService {
        /// As in the study.
        service: String,
        /// The files.
        files: String,
        /// What is in them.
        known: String,
    },
    /// A service that would have to be built.
    #[error(
        "`{service}` has a `build:` and no `image:` in the Compose file, and nothing is built in a round. Build it first (`docker build -t {service}:1 …`) and name it there: `image: {service}:1`"
    )]
    Build {
        /// Service.
        service: String,
    },
    /// A service that would be root of the machine.
    #[error(
        "`{service}` wants to be privileged, which makes it root of this machine. Remove `privileged: true` from the Compose file, or allow it: `on: {{compose: {{files: […], privileged: true}}}}`"
    )]
    Privileged {
        /// Service.
        service: String,
    },
    /// Somebody else listens where a service in the network of the machine is to.
    #[error(
        "{address} is already in use, so {service} cannot listen there (`network_mode: host`) and unladen would measure another program. Stop what listens there (`ss -ltnp` shows it)"
    )]
    PortTaken {
        /// Service.
        service: String,
        /// Address.
        address: String,
    },
    /// Its network cannot be entered.
    #[error(
        "the network namespace of the container of {service} cannot be entered ({source}); the load and the span sink need it. Run unladen as root"
    )]
    Network {
        /// Service.
        service: String,
        /// What the system said.
        source: io::Error,
    },
    /// The engine.
    #[error(transparent)]
    Engine(#[from] ContainerError),
}
