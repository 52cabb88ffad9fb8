//! What the tests have in common: the cluster, manifests of their own, and this binary as guard and as unladen.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use unladen_linux::CpuSet;
use unladen_processes::subject::kubernetes::{Changes, Deployed, Stack};
use unladen_processes::subject::{Launcher, LauncherOptions, Placed, SubjectError, guard};

/// The program of the cluster's own pods.
pub(crate) const IMAGE: &str = "unladen.local/pause:1";
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
const ROLE: &str = "--unladen-child=";

/// The kubeconfig of the cluster's administrator; `None`: there is none, which is said. This process then uses the cluster as the account of
/// `deploy/kubernetes`, with its rights and no others.
pub(crate) fn cluster() -> Option<PathBuf> {
    static SET: Once = Once::new();
    let Some(named) = std::env::var_os("UNLADEN_CLUSTER").filter(|named| !named.is_empty()) else {
        eprintln!("\nSKIPPED: UNLADEN_CLUSTER names no kubeconfig: `make cluster-test` starts a cluster and sets it\n");
        return None;
    };
    SET.call_once(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/cluster/cluster.py");
        let output = Command::new(script).arg("account").output().expect("the script starts");
        assert!(output.status.success(), "the account: {}", String::from_utf8_lossy(&output.stderr));
        let path = String::from_utf8(output.stdout).expect("a path");
        // SAFETY: nothing here reads the environment but by Rust's own functions, which take their turns.
        unsafe { std::env::set_var("KUBECONFIG", path.trim()) };
    });
    Some(named.into())
}

/// What `kubectl` says to the administrator; it must succeed.
pub(crate) fn kubectl(arguments: &[&str]) -> String {
    let output = kubectl_output(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "kubectl {arguments:?}: {said}");
    String::from_utf8(output.stdout).expect("text")
}

/// The same, which may fail.
pub(crate) fn kubectl_output(arguments: &[&str]) -> std::process::Output {
    let kubeconfig = PathBuf::from(std::env::var_os("UNLADEN_CLUSTER").expect("there is a cluster"));
    let beside = kubeconfig.with_file_name("bin").join("kubectl");
    let program = if beside.exists() { beside } else { PathBuf::from("kubectl") };
    Command::new(program).env("KUBECONFIG", kubeconfig).args(arguments).output().expect("kubectl is there")
}

pub(crate) fn namespaces_of(launcher_id: &str) -> String {
    kubectl(&["get", "namespaces", "--selector", &format!("unladen.study={launcher_id}"), "--output=name"])
}

/// A study in the cluster: launcher, manifests, logs.
pub(crate) struct Site {
    pub(crate) launcher: Launcher,
    pub(crate) folder: tempfile::TempDir,
    /// What marks, and namespaces, of it begin with.
    pub(crate) id: String,
}

impl Site {
    /// `None`: there is no cluster.
    pub(crate) fn new() -> Option<Self> {
        cluster()?;
        Some(Self::of(tempfile::tempdir().expect("a folder")))
    }

    fn of(folder: tempfile::TempDir) -> Self {
        let random = random();
        let options = LauncherOptions { random, limits: false, guard: command("guard", &[]), mounts: None };
        let launcher = Launcher::new(&options).expect("the guard starts");
        let id = format!("{}-{:08x}", std::process::id(), random & 0xffff_ffff);
        Self { launcher, folder, id }
    }

    /// A stack with one service, `api`, which is `deployment/shop` of a manifest.
    pub(crate) fn stack(&self, manifest: &str) -> Stack {
        let path = self.folder.path().join("shop.yaml");
        fs::write(&path, manifest).expect("written");
        let changes = Changes::of("deployment/shop".parse().expect("a workload"));
        Stack {
            manifests: vec![path],
            services: BTreeMap::from([("api".to_owned(), changes)]),
            variant: "test".to_owned(),
            cpus: CpuSet::default(),
            log: self.folder.path().join("logs"),
            ..Stack::default()
        }
    }

    /// A Deployment `shop` whose container says what comes through a pipe of this machine and then goes on to read a file.
    pub(crate) fn told_by_a_pipe(&self, file: &str, more: &str) -> String {
        let path = self.folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o666.into(), 0).expect("a pipe");
        let mounts = format!("{more}, volumeMounts: [{{name: here, mountPath: /here}}]");
        let volumes =
            format!("      volumes: [{{name: here, hostPath: {{path: '{}'}}}}]\n", self.folder.path().display());
        shop(&container("app", &format!("[read, /here/shop.yaml, /here/pipe, {file}]"), &mounts)) + &volumes
    }

    /// Tells it through the pipe.
    pub(crate) fn tell(&self, words: &str) {
        // This waits for the reader.
        fs::write(self.folder.path().join("pipe"), words).expect("it reads");
    }

    pub(crate) fn deploy(&self, stack: &Stack) -> Result<(Deployed, Vec<Placed>), SubjectError> {
        let begun = Instant::now();
        let outcome = self.launcher.deploy(stack, PATIENCE, &mut |_| (), &AtomicBool::new(false));
        println!("deployed, or not, after {:.1} s", begun.elapsed().as_secs_f64());
        outcome
    }

    /// Deploys what cannot run; returns what is said, when nothing is left.
    pub(crate) fn refused(self, stack: &Stack) -> String {
        let error = self.deploy(stack).map(|_| ()).expect_err("it cannot run").to_string();
        self.close();
        error
    }

    /// Closes the launcher: no namespace is left.
    pub(crate) fn close(self) {
        let begun = Instant::now();
        self.launcher.close().expect("nothing is left");
        println!("closed after {:.1} s", begun.elapsed().as_secs_f64());
        assert_eq!(namespaces_of(&self.id), "", "namespaces of {}", self.id);
    }
}

fn random() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    time.as_nanos() as u64 ^ NEXT.fetch_add(1 << 20, Ordering::Relaxed)
}

/// A Deployment `shop` with these containers.
pub(crate) fn shop(containers: &str) -> String {
    format!(
        "
apiVersion: apps/v1
kind: Deployment
metadata: {{name: shop}}
spec:
  selector: {{matchLabels: {{app: shop}}}}
  template:
    metadata: {{labels: {{app: shop}}}}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
{containers}
"
    )
}

/// A container of the cluster's own program.
pub(crate) fn container(name: &str, args: &str, more: &str) -> String {
    format!("      - {{name: {name}, image: '{IMAGE}', args: {args}{more}}}")
}

/// Whether something is so, sooner or later.
pub(crate) fn eventually(patience: Duration, is_so: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    while !is_so() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    true
}

/// The command that starts this binary in a role.
pub(crate) fn command(role: &str, arguments: &[&str]) -> Vec<OsString> {
    let me = std::env::current_exe().expect("this binary has a path");
    let mut words: Vec<OsString> = vec![me.into()];
    words.extend(["site::child", "--exact", "--ignored", "--nocapture"].map(Into::into));
    // libtest takes what follows `--skip` as text and does nothing with it: a way to hand over words.
    for word in [format!("{ROLE}{role}")].iter().map(String::as_str).chain(arguments.iter().copied()) {
        words.extend(["--skip".into(), word.into()]);
    }
    words
}

#[test]
#[ignore = "not a test: the body of the children that the tests start"]
fn child() {
    let words: Vec<String> = std::env::args().collect();
    let handed: Vec<&str> = words.windows(2).filter(|pair| pair[0] == "--skip").map(|pair| pair[1].as_str()).collect();
    let Some(role) = handed.first().and_then(|word| word.strip_prefix(ROLE)) else { return };
    match role {
        "guard" => {
            let code = guard::main();
            std::process::exit(i32::from(code != std::process::ExitCode::SUCCESS));
        }
        "unladen" => unladen(Path::new(handed[1])),
        _ => panic!("no role {role}"),
    }
}

/// A stand-in for unladen that deploys something and then waits to be killed.
fn unladen(folder: &Path) {
    let site = Site::of(tempfile::tempdir_in(folder).expect("a folder"));
    fs::write(folder.join("id"), &site.id).expect("written");
    let stack = site.stack(&shop(&container("app", "[serve, ':8080']", "")));
    let (deployed, placed) = site.deploy(&stack).expect("it runs");
    let pids: Vec<String> = placed.iter().map(|placed| placed.running.pid().to_string()).collect();
    fs::write(folder.join("pids.tmp"), pids.join("\n")).expect("written");
    fs::rename(folder.join("pids.tmp"), folder.join("pids")).expect("renamed");
    let _kept = (deployed, placed, site);
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}
