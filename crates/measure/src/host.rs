//! What the machine is: `host.json`, so that a reader of a year-old run folder knows where its numbers come from.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};
use unladen_study::mask::mask_arguments;

/// The machine and the versions that a study ran on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Version of unladen.
    pub unladen: String,
    /// Commit of the folder that holds the study file, `-dirty` if it had changes; `null` outside git.
    pub commit: Option<String>,
    /// Folder of the study file.
    pub study_dir: String,
    /// Command line, as typed.
    pub command: Vec<String>,
    /// When the study started, UTC, RFC 3339.
    pub started: String,
    /// Seed of the order, the trace ids and the sampling.
    pub seed: u64,
    /// Host name.
    pub hostname: String,
    /// Model of the CPU.
    pub cpu: String,
    /// Cores that unladen may use.
    pub cores: usize,
    /// Cores given to the subject and to the instrument, as Linux lists.
    pub subject_cores: String,
    /// See `subject_cores`.
    pub instrument_cores: String,
    /// Whether those are apart.
    pub cores_apart: bool,
    /// The ports of the study, by the name in `${port.NAME}`.
    #[serde(default)]
    pub ports: BTreeMap<String, u16>,
    /// Memory in bytes.
    pub memory: u64,
    /// Kernel release.
    pub kernel: String,
    /// Distribution.
    pub distribution: String,
    /// `none` or the hypervisor's vendor, where the CPU tells.
    pub virtualisation: String,
    /// Where CPU time is read from: `cgroup v2`, `cgroup v1`, or why neither.
    pub cgroup: String,
    /// Frequency governor, where there is one.
    pub governor: Option<String>,
    /// Clock source of the kernel.
    pub clock_source: String,
    /// Versions of the toolchains found on the PATH, first line each.
    pub toolchains: BTreeMap<String, String>,
}

/// What the caller knows and the machine does not tell.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Seed of the study.
    pub seed: u64,
    /// Folder of the study file.
    pub study_dir: String,
    /// When the study started.
    pub started: String,
    /// Cores of the subject, of the instrument, and whether they are apart.
    pub cores: (String, String, bool),
    /// Ports by the name in `${port.NAME}`.
    pub ports: BTreeMap<String, u16>,
    /// Where CPU time is read from.
    pub cgroup: String,
}

impl Host {
    /// Looks at the machine.
    #[must_use]
    pub fn describe(setting: Setting) -> Self {
        let cpuinfo = read("/proc/cpuinfo");
        let (subject_cores, instrument_cores, cores_apart) = setting.cores;
        Self {
            unladen: env!("CARGO_PKG_VERSION").to_owned(),
            commit: commit(Path::new(&setting.study_dir)),
            study_dir: setting.study_dir,
            command: mask_arguments(std::env::args()),
            started: setting.started,
            seed: setting.seed,
            hostname: read("/proc/sys/kernel/hostname").trim().to_owned(),
            cpu: field(&cpuinfo, "model name").unwrap_or("unknown").to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            subject_cores,
            instrument_cores,
            cores_apart,
            ports: setting.ports,
            memory: field(&read("/proc/meminfo"), "MemTotal")
                .and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok())
                .map_or(0, |kib| kib * 1024),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            distribution: read("/etc/os-release")
                .lines()
                .find_map(|line| line.strip_prefix("PRETTY_NAME="))
                .map_or_else(|| "unknown".to_owned(), |name| name.trim_matches('"').to_owned()),
            virtualisation: virtualisation(&cpuinfo),
            cgroup: setting.cgroup,
            governor: fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
                .ok()
                .map(|text| text.trim().to_owned()),
            clock_source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource").trim().to_owned(),
            toolchains: toolchains(),
        }
    }
}

/// A file of `/proc` or `/sys`; empty where it cannot be read.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Value of the first `name : value` line.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

fn virtualisation(cpuinfo: &str) -> String {
    let guest = field(cpuinfo, "flags").is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    if !guest {
        return "none".to_owned();
    }
    let vendor = read("/sys/class/dmi/id/sys_vendor");
    if vendor.trim().is_empty() { "hypervisor".to_owned() } else { format!("hypervisor ({})", vendor.trim()) }
}

fn commit(dir: &Path) -> Option<String> {
    let git = |arguments: &[&str]| -> Option<String> {
        let output = Command::new("git").arg("-C").arg(dir).args(arguments).stderr(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "HEAD"])?;
    let dirty = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|changes| !changes.is_empty());
    Some(if dirty { format!("{commit}-dirty") } else { commit })
}

/// First line of what each toolchain says of its version. A tool that is not there is left out.
fn toolchains() -> BTreeMap<String, String> {
    let tools: [(&str, &[&str]); 6] = [
        ("rustc", &["--version"]),
        ("go", &["version"]),
        ("java", &["-version"]),
        ("node", &["--version"]),
        ("python3", &["--version"]),
        ("nginx", &["-v"]),
    ];
    tools
        .into_iter()
        .filter_map(|(tool, arguments)| {
            let output = Command::new(tool).args(arguments).stdin(Stdio::null()).output().ok()?;
            // `java -version` and `nginx -v` speak on standard error.
            let output_bytes = [output.stdout, output.stderr].concat();
            let line = String::from_utf8_lossy(&output_bytes).lines().next()?.trim().to_owned();
            (output.status.success() && !line.is_empty()).then(|| (tool.to_owned(), line))
        })
        .collect()
}
