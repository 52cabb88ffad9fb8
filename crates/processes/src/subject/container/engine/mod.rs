//! A container engine of this machine (Docker, Podman), by its socket.

mod labelled;

use std::env;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::errors::Error;
use bollard::models::{
    self, ContainerCreateBody, ContainerInspectResponse, ContainerUpdateBody, HealthConfig, HealthStatusEnum,
    HostConfig, SystemInfo, SystemVersion,
};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, KillContainerOptionsBuilder, LogsOptionsBuilder, RemoveContainerOptionsBuilder,
};
use futures_util::StreamExt;
use tokio::runtime::{self, Runtime};
use unladen_linux::CpuSet;
use unladen_linux::tree::MARK;

use super::super::error::causes;
use super::super::executor::Health;
use super::super::launch::{Image, LONGEST_PAD, Launch};
use super::error::ContainerError;
use super::known::Inspected;

/// Where engines listen, unless `DOCKER_HOST` says otherwise.
const DOCKER: &str = "/var/run/docker.sock";

/// Longest time for one answer of the engine, s. To create a container of a large image takes some engines a while.
const PATIENCE_S: u64 = 120;

/// Between two health checks, unless image or file say otherwise.
const HEALTH_INTERVAL: Duration = Duration::from_secs(30);

/// Longest time for a state that the API does not have, and between two looks at it.
const MOMENT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);

/// A connection to the engine. Its calls block.
#[derive(Debug)]
pub struct Engine {
    docker: Docker,
    runtime: Runtime,
    socket: PathBuf,
    words: String,
}

/// Socket of the engine: that of `DOCKER_HOST`, else Docker's, else Podman's of this user.
///
/// # Errors
/// `DOCKER_HOST` names an engine of another machine, or nothing is there.
pub fn socket() -> Result<PathBuf, ContainerError> {
    let candidates = candidates();
    match env::var("DOCKER_HOST").ok().filter(|host| !host.is_empty()) {
        Some(host) => host.strip_prefix("unix://").map(PathBuf::from).ok_or(ContainerError::Remote { host }),
        None => candidates
            .iter()
            .find(|path| path.exists())
            .cloned()
            .ok_or_else(|| ContainerError::NoEngine { looked: shown(&candidates) }),
    }
}

fn candidates() -> Vec<PathBuf> {
    let podman = env::var_os("XDG_RUNTIME_DIR").map(|folder| Path::new(&folder).join("podman/podman.sock"));
    [PathBuf::from(DOCKER)].into_iter().chain(podman).chain([PathBuf::from("/run/podman/podman.sock")]).collect()
}

fn shown(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

impl Engine {
    /// Connects to the engine at a socket and asks what it is.
    ///
    /// # Errors
    /// Nobody listens there, this user may not connect, or its containers run in a virtual machine.
    pub fn connect(socket: &Path) -> Result<Self, ContainerError> {
        let unreachable = |error| ContainerError::unreachable(socket, &error);
        let runtime = runtime()?;
        let answers = runtime.block_on(async {
            let docker =
                Docker::connect_with_unix(&socket.to_string_lossy(), PATIENCE_S, bollard::API_DEFAULT_VERSION)?;
            let docker = docker.negotiate_version().await?;
            let (info, version) = (docker.info().await?, docker.version().await?);
            Ok((docker, info, version))
        });
        let (docker, info, version) = answers.map_err(unreachable)?;
        if info.operating_system.as_deref().is_some_and(|system| system.contains("Docker Desktop")) {
            return Err(ContainerError::Unfit(
                "the engine is Docker Desktop, whose containers run in a virtual machine: their CPU time cannot be read from here. Use an engine of this machine".to_owned(),
            ));
        }
        Ok(Self { docker, runtime, socket: socket.to_owned(), words: words(&info, &version) })
    }

    /// The same engine for another thread: a call there does not keep this one waiting.
    pub(super) fn for_another_thread(&self) -> Result<Self, ContainerError> {
        let (docker, socket, words) = (self.docker.clone(), self.socket.clone(), self.words.clone());
        Ok(Self { docker, runtime: runtime()?, socket, words })
    }

    /// What it is, in words: `engine 20.10.24, cgroup v1, cgroupfs`, `Podman 4.3.1, cgroup v2, systemd`.
    #[must_use]
    pub fn words(&self) -> &str {
        &self.words
    }

    /// Its socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Removes a container, running or not, with its anonymous volumes. One that is not there is fine.
    ///
    /// # Errors
    /// What the engine says.
    pub fn remove(&self, name: &str) -> Result<(), ContainerError> {
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        match self.runtime.block_on(self.docker.remove_container(name, Some(options))) {
            // 409: its removal is under way.
            Ok(()) | Err(Error::DockerResponseServerError { status_code: 404 | 409, .. }) => Ok(()),
            Err(error) => Err(ContainerError::engine(error)),
        }
    }

    /// Creates a container for a service, on these cores; it does not run yet.
    pub(super) fn create(
        &self,
        name: &str,
        launch: &Launch,
        image: &Image,
        mark: &str,
        cpus: Option<&CpuSet>,
    ) -> Result<(), ContainerError> {
        let options = CreateContainerOptionsBuilder::default().name(name).build();
        let body = body(launch, image, mark, cpus);
        match self.runtime.block_on(self.docker.create_container(Some(options), body)) {
            Ok(_) => Ok(()),
            Err(Error::DockerResponseServerError { status_code: 404, message }) => {
                Err(ContainerError::NoImage { image: image.name.clone(), message })
            }
            Err(error) => Err(ContainerError::engine(error)),
        }
    }

    /// Starts a container that was created.
    pub(super) fn start(&self, name: &str) -> Result<(), ContainerError> {
        self.runtime.block_on(self.docker.start_container(name, None)).map_err(ContainerError::engine)
    }

    /// Sends a signal to the first process of a container.
    pub(super) fn signal(&self, name: &str, signal: &str) -> Result<(), ContainerError> {
        let options = KillContainerOptionsBuilder::default().signal(signal).build();
        self.runtime.block_on(self.docker.kill_container(name, Some(options))).map_err(ContainerError::engine)
    }

    /// Lets a container use these cores and no others.
    pub(super) fn confine(&self, name: &str, cpus: &CpuSet) -> Result<(), ContainerError> {
        let body = ContainerUpdateBody { cpuset_cpus: Some(cpus.to_string()), ..ContainerUpdateBody::default() };
        self.runtime.block_on(self.docker.update_container(name, body)).map_err(ContainerError::engine)
    }

    pub(in crate::subject) fn inspect(&self, name: &str) -> Result<Inspected, ContainerError> {
        let answer = self.runtime.block_on(settled(|| self.docker.inspect_container(name, None)));
        Ok(Inspected::from(answer.map_err(ContainerError::engine)?))
    }

    /// Copies what a container writes to a file, until the container ends; then tells how it is. For a thread of its own.
    pub(super) fn follow(&self, name: &str, mut log: File) -> Result<Inspected, ContainerError> {
        let options = LogsOptionsBuilder::default().follow(true).stdout(true).stderr(true).build();
        self.runtime.block_on(async {
            let mut output = std::pin::pin!(self.docker.logs(name, Some(options)));
            while let Some(part) = output.next().await {
                // A log that cannot be written is no reason to stop watching.
                let _ = log.write_all(part.map_err(ContainerError::engine)?.as_ref());
            }
            // Some engines end the log before the container.
            let mut ended = std::pin::pin!(self.docker.wait_container(name, None));
            while ended.next().await.is_some() {}
            let answer = settled(|| self.docker.inspect_container(name, None)).await;
            Ok(Inspected::from(answer.map_err(ContainerError::engine)?))
        })
    }
}

fn body(launch: &Launch, image: &Image, mark: &str, cpus: Option<&CpuSet>) -> ContainerCreateBody {
    let pad = "x".repeat(launch.pad.min(LONGEST_PAD));
    let own = [(MARK, mark), ("UNLADEN_PAD", pad.as_str())];
    let given = launch.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let (binds, own_volumes): (Vec<&String>, Vec<&String>) = image.volumes.iter().partition(|it| it.contains(':'));
    let memory = launch.limits.memory.and_then(|bytes| i64::try_from(bytes).ok());
    ContainerCreateBody {
        image: Some(image.name.clone()),
        user: image.user.clone(),
        cmd: (!launch.command.is_empty()).then(|| launch.command.clone()),
        env: Some(given.chain(own).map(|(name, value)| format!("{name}={value}")).collect()),
        volumes: Some(own_volumes.into_iter().cloned().collect()),
        labels: Some([("unladen.run".to_owned(), mark.to_owned())].into()),
        host_config: Some(HostConfig {
            binds: Some(binds.into_iter().cloned().collect()),
            cpuset_cpus: cpus.map(ToString::to_string),
            nano_cpus: launch.limits.cpus.map(|cores| (cores * 1e9).round() as i64),
            memory,
            // Swap included, as for processes.
            memory_swap: memory,
            network_mode: Some("host".to_owned()),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    }
}

/// Asks about containers, again if one has just ended: see [`is_passing`].
async fn settled<T, Answer>(ask: impl Fn() -> Answer) -> Result<T, Error>
where
    Answer: Future<Output = Result<T, Error>>,
{
    let deadline = Instant::now() + MOMENT;
    loop {
        match ask().await {
            Err(error) if is_passing(&error) && Instant::now() < deadline => tokio::time::sleep(PAUSE).await,
            answer => return answer,
        }
    }
}

/// For a moment after its end, a container of Podman is in a state that the API does not have (`stopped`), so the answer cannot be read. One
/// that ends while Podman looks at it is an error (`read /proc/6343/cgroup: no such process`).
fn is_passing(error: &Error) -> bool {
    match error {
        Error::JsonDataError { .. } => true,
        Error::DockerResponseServerError { message, .. } => message.ends_with("no such process"),
        _ => false,
    }
}

fn words(info: &SystemInfo, version: &SystemVersion) -> String {
    let is_podman = version.components.iter().flatten().any(|component| component.name.starts_with("Podman"));
    let name = if is_podman { "Podman" } else { "engine" };
    let version = info.server_version.as_deref().unwrap_or("of an unknown version");
    let cgroups = info.cgroup_version.map(|version| format!(", cgroup v{version}")).unwrap_or_default();
    let driver = info.cgroup_driver.map(|driver| format!(", {driver}")).unwrap_or_default();
    format!("{name} {version}{cgroups}{driver}")
}

/// `None` where the health check has been switched off.
fn health(state: models::Health, check: HealthConfig) -> Option<Health> {
    let nanoseconds = |time: Option<i64>| time.and_then(|time| u64::try_from(time).ok()).filter(|time| *time > 0);
    let interval = nanoseconds(check.interval).map_or(HEALTH_INTERVAL, Duration::from_nanos);
    let said = state.log.and_then(|log| log.into_iter().next_back()).and_then(|last| last.output);
    Some(Health {
        is_healthy: match state.status? {
            HealthStatusEnum::HEALTHY => true,
            HealthStatusEnum::STARTING | HealthStatusEnum::UNHEALTHY => false,
            HealthStatusEnum::NONE | HealthStatusEnum::EMPTY => return None,
        },
        said: said.unwrap_or_default().trim().to_owned(),
        first_after: interval + nanoseconds(check.start_period).map(Duration::from_nanos).unwrap_or_default(),
    })
}

fn runtime() -> Result<Runtime, ContainerError> {
    runtime::Builder::new_current_thread().enable_all().build().map_err(|source| ContainerError::Runtime { source })
}

impl ContainerError {
    fn engine(error: Error) -> Self {
        match error {
            Error::DockerResponseServerError { message, .. } => Self::Refused { message: message.trim().to_owned() },
            other => Self::Refused { message: causes(&other) },
        }
    }

    fn unreachable(socket: &Path, error: &Error) -> Self {
        let error = causes(error);
        match rustix::fs::access(socket, rustix::fs::Access::WRITE_OK) {
            Err(rustix::io::Errno::ACCESS) => Self::Denied { socket: socket.to_owned() },
            _ => Self::Unreachable { socket: socket.to_owned(), error },
        }
    }
}

impl From<ContainerInspectResponse> for Inspected {
    fn from(answer: ContainerInspectResponse) -> Self {
        let state = answer.state.unwrap_or_default();
        let config = answer.config.unwrap_or_default();
        let host = answer.host_config.unwrap_or_default();
        let networks = answer.network_settings.and_then(|settings| settings.networks).unwrap_or_default();
        let addresses = networks.into_values().flat_map(|network| [network.ip_address, network.global_ipv6_address]);
        Self {
            pid: state.pid.and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0),
            exit_code: state.exit_code.and_then(|code| i32::try_from(code).ok()).unwrap_or(-1),
            out_of_memory: state.oom_killed.unwrap_or(false),
            image_id: answer.image.unwrap_or_default(),
            stop_signal: config.stop_signal.filter(|signal| !signal.is_empty()),
            address: addresses.flatten().find_map(|address| address.parse().ok()),
            has_memory_limit: host.memory.is_some_and(|bytes| bytes > 0),
            has_cpu_limit: [host.nano_cpus, host.cpu_quota].into_iter().flatten().any(|share| share > 0),
            started: state.started_at.and_then(|at| Some(at.parse::<jiff::Timestamp>().ok()?.into())),
            health: state.health.and_then(|state| health(state, config.healthcheck.unwrap_or_default())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use indexmap::IndexMap;

    use super::super::super::launch::Limits;
    use super::*;

    #[test]
    fn a_container_is_asked_for_as_the_study_says() {
        let launch = Launch {
            service: "db".to_owned(),
            env: IndexMap::from([("A".to_owned(), "1".to_owned())]),
            limits: Limits { cpus: Some(1.5), memory: Some(64 << 20), cpuset: None },
            ..Launch::default()
        };
        let volumes = ["/data:/var/lib/db:ro", "/var/tmp"].map(str::to_owned).to_vec();
        let image = Image { name: "db:1".to_owned(), volumes, user: Some("7".to_owned()) };
        let cpus: CpuSet = [1, 2].into_iter().collect();
        let body = body(&launch, &image, "9-ab/0-db-0", Some(&cpus));
        assert_eq!((body.image.as_deref(), body.user.as_deref(), body.cmd), (Some("db:1"), Some("7"), None));
        assert_eq!(body.env.expect("an environment"), ["A=1", "UNLADEN_RUN=9-ab/0-db-0", "UNLADEN_PAD="]);
        assert_eq!(body.volumes.expect("volumes"), ["/var/tmp"]);
        let host = body.host_config.expect("limits");
        assert_eq!(host.binds.expect("mounts"), ["/data:/var/lib/db:ro"]);
        assert_eq!(
            (host.nano_cpus, host.memory, host.memory_swap),
            (Some(1_500_000_000), Some(64 << 20), Some(64 << 20))
        );
        assert_eq!((host.cpuset_cpus.as_deref(), host.network_mode.as_deref()), (Some("1-2"), Some("host")));
    }

    #[test]
    fn an_answer_that_cannot_be_read_for_a_moment_is_waited_for() {
        let asked = Cell::new(0);
        let ask = || async {
            asked.set(asked.get() + 1);
            let stopped = r#"{"State": {"Status": "stopped"}}"#;
            let unknown = serde_json::from_str::<ContainerInspectResponse>(stopped).expect_err("a state of Podman's");
            match asked.get() {
                1 => Err(Error::JsonDataError { message: unknown.to_string(), column: unknown.column() }),
                2 => {
                    let message = "read /proc/6343/cgroup: no such process".to_owned();
                    Err(Error::DockerResponseServerError { status_code: 500, message })
                }
                3 => Ok("exited"),
                _ => Err(Error::RequestTimeoutError),
            }
        };
        let runtime = runtime().expect("a runtime");
        assert_eq!(runtime.block_on(settled(ask)).expect("an answer"), "exited");
        assert!(runtime.block_on(settled(ask)).is_err());
        assert_eq!(asked.get(), 4, "another error is no reason to ask again");
    }

    #[test]
    fn a_limit_that_the_engine_left_out_is_missed() {
        let of = |host: HostConfig| {
            Inspected::from(ContainerInspectResponse { host_config: Some(host), ..ContainerInspectResponse::default() })
        };
        let memory = Limits { memory: Some(1 << 26), ..Limits::default() };
        let cpus = Limits { cpus: Some(0.5), ..Limits::default() };
        let docker = of(HostConfig { nano_cpus: Some(500_000_000), memory: Some(1 << 26), ..HostConfig::default() });
        let podman = of(HostConfig { cpu_quota: Some(50_000), memory: Some(1 << 26), ..HostConfig::default() });
        for limited in [docker, podman] {
            assert!(limited.need_limits(&memory).is_ok() && limited.need_limits(&cpus).is_ok());
        }
        let left_out = of(HostConfig { nano_cpus: Some(0), memory: Some(0), ..HostConfig::default() });
        for (wanted, name) in [(memory, "memory"), (cpus, "cpus")] {
            let error = left_out.need_limits(&wanted).expect_err("nothing is limited").to_string();
            assert!(error.contains(&format!("did not apply the limit `{name}`")), "{error}");
        }
        assert!(left_out.need_limits(&Limits::default()).is_ok());
    }

    #[test]
    fn podman_is_called_by_its_name() {
        let words_of = |component: &str| {
            let version = serde_json::json!({"Components": [{"Name": component, "Version": "1"}]});
            let info = SystemInfo { server_version: Some("4.3.1".to_owned()), ..SystemInfo::default() };
            words(&info, &serde_json::from_value(version).expect("a version"))
        };
        assert_eq!((words_of("Podman Engine").as_str(), words_of("Engine").as_str()), ("Podman 4.3.1", "engine 4.3.1"));
    }
}
