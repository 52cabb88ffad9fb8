//! A private container engine that the tests start and stop.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{CliOutput, Scratch, UNLADEN};

/// What the images of these tests are called.
pub(crate) const IMAGE: &str = "unladen-demo:e2e";

/// Docker's daemon or Podman's service, with everything that it keeps in a scratch folder. What it mounts goes with a namespace, else the
/// folder could not be removed.
pub(crate) struct Engine {
    folder: tempfile::TempDir,
    daemon: Child,
}

/// What Podman is told. Its own limits are those of a process that may raise its own, which not every root may. Locks are files, because
/// those in shared memory would be the machine's.
const PODMAN_CONF: &str = r#"
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
lock_type = "file"
"#;

impl Engine {
    /// In the network of the machine, without a bridge. `None` where Docker is not installed.
    pub(crate) fn start() -> Option<Self> {
        Self::docker_by(&["unshare", "--mount", "dockerd", "--bridge=none"])
    }

    /// With bridges, in a network namespace of its own: containers have addresses, and nothing of it is on this machine.
    pub(crate) fn with_bridge() -> Option<Self> {
        Self::docker_by(&["unshare", "--mount", "--net", "dockerd", "--userland-proxy=false"])
    }

    /// Podman, in the network of the machine.
    pub(crate) fn podman() -> Option<Self> {
        Self::podman_by(&["unshare", "--mount", "podman"])
    }

    /// Podman with bridges, in a network namespace of its own.
    pub(crate) fn podman_with_bridge() -> Option<Self> {
        Self::podman_by(&["unshare", "--mount", "--net", "podman"])
    }

    fn docker_by(daemon: &[&str]) -> Option<Self> {
        Self::begin("dockerd", |path| {
            let mut command = Command::new(daemon[0]);
            command.args(&daemon[1..]).args(["--data-root", &path("data"), "--exec-root", &path("exec")]);
            command.args(["--pidfile", &path("pid"), "-H", &format!("unix://{}", path("socket"))]);
            command.args(["--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false"]);
            command
        })
    }

    fn podman_by(service: &[&str]) -> Option<Self> {
        Self::begin("podman", |path| {
            fs::write(path("containers.conf"), PODMAN_CONF).expect("a file");
            let mut command = Command::new(service[0]);
            // It leaves a file where it was started when a container runs out of memory.
            command.env("CONTAINERS_CONF", path("containers.conf")).current_dir(path("")).args(&service[1..]);
            command.args(["--root", &path("data"), "--runroot", &path("run"), "--tmpdir", &path("tmp")]);
            // Its other runtime, crun, refuses a machine with controllers in both hierarchies.
            command.args(["--runtime", "runc", "--cgroup-manager", "cgroupfs", "--events-backend", "file"]);
            command.args(["--network-config-dir", &path("networks"), "system", "service", "--time=0"]);
            command.arg(format!("unix://{}", path("socket")));
            command
        })
    }

    fn begin(program: &str, command: impl Fn(&dyn Fn(&str) -> String) -> Command) -> Option<Self> {
        if Command::new(program).arg("--version").output().is_err() {
            println!("SKIPPED: {program} is not installed: `make deps` installs it");
            return None;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let log = fs::File::create(folder.path().join("log")).expect("a file");
        let path = |name: &str| folder.path().join(name).display().to_string();
        let mut command = command(&path);
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a file")).stderr(log);
        let daemon = command.spawn().expect("the engine starts");
        let engine = Self { folder, daemon };
        let deadline = Instant::now() + Duration::from_secs(30);
        while !engine.docker(&["version"]).0 {
            let log = || fs::read_to_string(engine.folder.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "{program} does not answer: {}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
        engine.import();
        Some(engine)
    }

    pub(crate) fn host(&self) -> String {
        format!("unix://{}", self.folder.path().join("socket").display())
    }

    /// Docker's own command: whether it went well, and what it printed.
    pub(crate) fn docker(&self, arguments: &[&str]) -> (bool, String) {
        let output = Command::new("docker").args(arguments).env("DOCKER_HOST", self.host()).output().expect("docker");
        let printed = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned()).concat();
        (output.status.success(), printed)
    }

    /// An image of this very executable and what it is linked with.
    fn import(&self) {
        let root = self.folder.path().join("root");
        let copy = |from: &Path, to: PathBuf| {
            fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
            fs::copy(from, to).expect("a copy");
        };
        copy(Path::new(UNLADEN), root.join("unladen"));
        let linked = Command::new("ldd").arg(UNLADEN).output().expect("ldd");
        for word in String::from_utf8_lossy(&linked.stdout).split_whitespace().filter(|word| word.starts_with('/')) {
            copy(Path::new(word), root.join(word.trim_start_matches('/')));
        }
        let tar = self.folder.path().join("image.tar").display().to_string();
        let made = Command::new("tar").args(["-C", &root.display().to_string(), "-cf", &tar, "."]).status();
        assert!(made.expect("tar").success());
        let (is_imported, said) = self.docker(&["import", "--change", "ENTRYPOINT [\"/unladen\"]", &tar, IMAGE]);
        assert!(is_imported, "{said}");
    }

    pub(crate) fn run(&self, scratch: &Scratch, more: &[&str]) -> CliOutput {
        let arguments = [&["run", ".", "--out", "out", "--plain"], more].concat();
        let output = scratch.command(&arguments).env("DOCKER_HOST", self.host()).output().expect("unladen starts");
        CliOutput::new(&output)
    }

    /// Names of the containers that are there, running or not.
    pub(crate) fn containers(&self) -> Vec<String> {
        let (_, names) = self.docker(&["ps", "-a", "--format", "{{.Names}}"]);
        names.lines().map(str::to_owned).collect()
    }

    /// Waits until there is one of this service.
    pub(crate) fn await_container(&self, service: &str) -> String {
        let deadline = Instant::now() + Duration::from_secs(30);
        while Instant::now() < deadline {
            if let Some(name) = self.containers().into_iter().find(|name| name.contains(service)) {
                return name;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("no container of {service} in 30 s");
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Docker ends the containers of a test that failed as it ends; Podman's would outlive it.
        for name in self.containers() {
            self.docker(&["rm", "-f", &name]);
        }
        let pid = rustix::process::Pid::from_child(&self.daemon);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.daemon.wait();
    }
}
