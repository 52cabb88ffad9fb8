//! What can go wrong with a container engine, each with what to do about it.

use std::io;
use std::path::PathBuf;

/// Why the engine did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum ContainerError {
    /// This build cannot.
    #[error("this unladen was built without containers. Install a released one, or build it with `make build`")]
    LeftOut,
    /// The engine runs on another machine.
    #[error(
        "the engine at {host} (DOCKER_HOST) is not one of this machine: its CPU time cannot be read from here. Unset DOCKER_HOST, or run unladen on that machine"
    )]
    Remote {
        /// As the environment says.
        host: String,
    },
    /// No socket is there.
    #[error(
        "no container engine is running: there is no socket at {looked}. Start Docker (`systemctl start docker`) or Podman's service (`systemctl --user start podman.socket`), or set DOCKER_HOST=unix:///PATH"
    )]
    NoEngine {
        /// Where it was looked for.
        looked: String,
    },
    /// This user may not use the socket.
    #[error("this user may not use the engine's socket {}. Join the group that owns it (mostly `docker`), or run as root", socket.display())]
    Denied {
        /// The socket.
        socket: PathBuf,
    },
    /// Nobody answers at the socket.
    #[error("the container engine does not answer at {}: {error}. Is it running? See `docker info`", socket.display())]
    Unreachable {
        /// The socket.
        socket: PathBuf,
        /// What went wrong.
        error: String,
    },
    /// The image is not on this machine.
    #[error(
        "there is no image `{image}` on this machine ({message}). Get it first, so that no round waits for it: `docker pull {image}`, or `podman pull {image}`"
    )]
    NoImage {
        /// Its name.
        image: String,
        /// What the engine said.
        message: String,
    },
    /// The processes of containers are not to be seen.
    #[error(
        "process {pid} of the container cannot be seen from here: unladen runs in a container with its own PID namespace. Start it with `--pid host --network host --cgroupns host`"
    )]
    Unseen {
        /// Its first process, as the engine sees it.
        pid: u32,
    },
    /// The engine has started the container without a limit.
    #[error(
        "the engine did not apply the limit `{limit}`: it has no control group for it, `docker info` says what it lacks. Leave the limit out, or enable the controller"
    )]
    Unlimited {
        /// Its name in the study.
        limit: &'static str,
    },
    /// The engine refused.
    #[error("the container engine refused: {message}")]
    Refused {
        /// What it said.
        message: String,
    },
    /// No runtime for the conversation with the engine.
    #[error("cannot speak with the container engine: {source}")]
    Runtime {
        /// What the system said.
        source: io::Error,
    },
    /// A limit, a volume or a network that containers cannot have.
    #[error("{0}")]
    Unfit(String),
}
