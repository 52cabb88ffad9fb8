//! Whether the agents that services run under are there, before anything is started: a service whose agent is missing fails late, or
//! runs on without it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use unladen_study::agents::{Language, Needs, Preset, Under};
use unladen_study::plan::Process;

/// How a zip archive begins, which a jar is (APPNOTE 4.3.7, local file header).
const ZIP: [u8; 4] = *b"PK\x03\x04";

/// The agent of a service is not there, or not as it should be.
#[derive(Debug, thiserror::Error)]
#[error("{agent} of {service}: {lack}")]
pub struct AgentError {
    agent: &'static str,
    service: String,
    lack: Lack,
}

/// What an agent lacks, and what to do about it.
#[derive(Debug, thiserror::Error)]
enum Lack {
    #[error("there is no {}. Get it with: {install}", path.display())]
    Missing { path: PathBuf, install: &'static str },
    #[error("{} is a folder; name the jar itself{}", path.display(), jars(path))]
    Folder { path: PathBuf },
    #[error("{} is a file; name the agent's folder, with {file} in it", path.display())]
    NoFolder { path: PathBuf, file: &'static str },
    #[error("{} is no jar; a download may have failed. Get it with: {install}", path.display())]
    NoJar { path: PathBuf, install: &'static str },
    #[error("{package} is not installed {place}. Install it there: {install}")]
    NoPackage { package: String, place: String, install: &'static str },
    #[error("it needs {language} {least} or later, and `{program}` is {found}")]
    TooOld { language: &'static str, least: u32, program: String, found: u32 },
}

/// Whether the agent of a process is there, if it has one. The process is resolved.
///
/// # Errors
/// When it is not, with what to install.
pub(super) fn check(process: &Process) -> Result<(), AgentError> {
    let Some(Under { preset, path }) = &process.agent else { return Ok(()) };
    let look = Look { process, preset };
    let path = Path::new(path.as_deref().unwrap_or_default());
    let found = match (preset.needs, preset.language) {
        (Needs::Jar, _) => look.jar(path),
        (Needs::Folder, _) => look.folder(path),
        (Needs::Package, Language::Python) => look.python_packages(),
        (Needs::Package, _) => look.node_packages(),
        // Without a path the study's own command is what was built.
        (Needs::Build, _) if path.as_os_str().is_empty() || path.is_file() => Ok(()),
        (Needs::Build, _) => Err(look.missing(path)),
    };
    let service = process.service.clone();
    found.and_then(|()| look.runtime()).map_err(|lack| AgentError { agent: &preset.name, service, lack })
}

/// A process and what it is to run under.
struct Look<'a> {
    process: &'a Process,
    preset: &'static Preset,
}

impl Look<'_> {
    fn missing(&self, path: &Path) -> Lack {
        Lack::Missing { path: path.to_owned(), install: &self.preset.install }
    }

    fn jar(&self, path: &Path) -> Result<(), Lack> {
        if path.is_dir() {
            return Err(Lack::Folder { path: path.to_owned() });
        }
        let mut start = [0; ZIP.len()];
        let mut file = File::open(path).map_err(|_| self.missing(path))?;
        match file.read_exact(&mut start) {
            Ok(()) if start == ZIP => Ok(()),
            _ => Err(Lack::NoJar { path: path.to_owned(), install: &self.preset.install }),
        }
    }

    fn folder(&self, path: &Path) -> Result<(), Lack> {
        let file = self.preset.file.as_deref().unwrap_or_default();
        if path.is_file() {
            return Err(Lack::NoFolder { path: path.to_owned(), file });
        }
        self.jar(&path.join(file))
    }

    fn no_package(&self, package: &str, place: String) -> Lack {
        Lack::NoPackage { package: package.to_owned(), place, install: &self.preset.install }
    }

    /// Node.js looks for modules of `--require` in `node_modules` of the working directory and of those above it, then in `NODE_PATH`
    /// (docs of Node.js, "Modules: CommonJS modules").
    fn node_packages(&self) -> Result<(), Lack> {
        let cwd = &self.process.cwd;
        let of_path = self.variable("NODE_PATH").unwrap_or_default();
        let folders = || cwd.ancestors().map(|it| it.join("node_modules")).chain(std::env::split_paths(&of_path));
        let is_there = |package: &&String| folders().any(|folder| folder.join(package.as_str()).is_dir());
        match self.preset.from.iter().find(|package| !is_there(package)) {
            Some(package) => Err(self.no_package(package, format!("in {}", cwd.join("node_modules").display()))),
            None => Ok(()),
        }
    }

    /// The program in front is there, and the interpreter of the service knows the packages.
    fn python_packages(&self) -> Result<(), Lack> {
        let command = &self.process.command;
        let first = command.first().map(String::as_str).unwrap_or_default();
        let program = command.get(self.preset.command.len()).map(String::as_str).unwrap_or_default();
        let python = interpreter(program);
        let place = format!("where {python} is");
        if !self.is_program(first) {
            return Err(self.no_package(&self.preset.from[0], place));
        }
        // What cannot be asked has said nothing against it.
        const ASK: &str = "import importlib.metadata as m, sys\nfor name in sys.argv[1:]:\n try: m.version(name)\n except m.PackageNotFoundError: print(name)";
        let packages = self.preset.from.iter().map(String::as_str);
        let answer = self.ask(&python, ["-c", ASK].into_iter().chain(packages)).unwrap_or_default();
        match self.preset.from.iter().find(|package| answer.lines().any(|line| line == package.as_str())) {
            Some(package) => Err(self.no_package(package, place)),
            None => Ok(()),
        }
    }

    /// Whether there is a program of this name, as it would be started.
    fn is_program(&self, name: &str) -> bool {
        if name.contains('/') {
            return self.process.cwd.join(name).is_file();
        }
        let path = self.variable("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
    }

    /// The version of what runs the service, if there is a least one.
    fn runtime(&self) -> Result<(), Lack> {
        let Preset { language, .. } = self.preset;
        let program = self.process.command.first().map(String::as_str).unwrap_or_default();
        let option = match language {
            // `--version` came with Java 9.
            Language::Java => "-version",
            Language::Node => "--version",
            Language::Python | Language::Go => return Ok(()),
        };
        let of_package = (*language == Language::Node).then(|| self.engine()).flatten();
        let Some(least) = of_package.max(self.preset.least) else { return Ok(()) };
        let Some(found) = self.ask(program, [option]).as_deref().and_then(major) else { return Ok(()) };
        if found >= least {
            return Ok(());
        }
        Err(Lack::TooOld { language: language.name(), least, program: program.to_owned(), found })
    }

    /// The least version of Node.js that the agent's package names, if it does so by `>=`.
    fn engine(&self) -> Option<u32> {
        let package = self.preset.from.first()?;
        let cwd = &self.process.cwd;
        let mut files = cwd.ancestors().map(|it| it.join("node_modules").join(package).join("package.json"));
        let text = files.find_map(|file| fs::read_to_string(file).ok())?;
        let package: serde_json::Value = serde_json::from_str(&text).ok()?;
        major(package.get("engines")?.get("node")?.as_str()?.trim().strip_prefix(">=")?)
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        self.process.env.get(name).map(Into::into).or_else(|| std::env::var_os(name))
    }

    /// What a program of the service's prints, started as the service would be; `None`: it cannot be started, or fails.
    fn ask<'t>(&self, program: &str, arguments: impl IntoIterator<Item = &'t str>) -> Option<String> {
        // What a system makes of a relative program differs.
        let program = if program.contains('/') { self.process.cwd.join(program) } else { program.into() };
        let mut command = Command::new(program);
        command.args(arguments).envs(&self.process.env).current_dir(&self.process.cwd).stdin(Stdio::null());
        // The agent is not to start in the one that is asked.
        command.env_remove("JAVA_TOOL_OPTIONS").env_remove("NODE_OPTIONS");
        let output = command.output().ok().filter(|output| output.status.success())?;
        // Java tells its version on standard error.
        Some(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    }
}

/// The interpreter that runs a program of Python: itself, or the one beside it.
fn interpreter(program: &str) -> String {
    let (folder, file) = program.rsplit_once('/').map_or(("", program), |(folder, file)| (folder, file));
    match (file.starts_with("python") || file.starts_with("pypy"), program.contains('/')) {
        (true, _) => program.to_owned(),
        (false, true) => format!("{folder}/python3"),
        (false, false) => "python3".to_owned(),
    }
}

/// The first number of a version: 17 of `openjdk version "17.0.1"`, 8 of `"1.8.0_392"`, 22 of `v22.3.0`.
fn major(text: &str) -> Option<u32> {
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let mut numbers = text[start..].split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().ok());
    match numbers.next()? {
        Some(1) => numbers.next()?,
        first => first,
    }
}

/// The jars in a folder, as the end of a sentence.
fn jars(folder: &Path) -> String {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut jars: Vec<String> = files
        .filter(|path| path.extension() == Some(OsStr::new("jar")) && path.is_file())
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .collect();
    jars.sort();
    jars.truncate(5);
    if jars.is_empty() { String::new() } else { format!(", one of {}", jars.join(", ")) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::{Mutex, PoisonError};

    use unladen_study::agents::find;

    use super::*;

    /// A program cannot be started while a process that another test starts still holds the file open that it is written by.
    static ONE: Mutex<()> = Mutex::new(());

    /// A service under an agent, in a folder of its own.
    struct Case {
        folder: tempfile::TempDir,
        process: Process,
    }

    impl Case {
        /// `path` is relative to the folder.
        fn new(agent: &str, path: Option<&str>, command: &[&str]) -> Self {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let path = path.map(|path| folder.path().join(path).display().to_string());
            let mut process = Process::of_stack("app");
            process.agent = Some(Under { preset: find(agent).expect("a preset"), path });
            process.command = command.iter().map(|word| (*word).to_owned()).collect();
            process.cwd = folder.path().to_owned();
            Self { folder, process }
        }

        fn with(self, name: &str, text: &[u8]) -> Self {
            let path = self.folder.path().join(name);
            let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
            fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            fs::write(&path, text).expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
            self
        }

        /// What is said, the folder shortened to `DIR`; empty: nothing.
        fn says(&self) -> String {
            let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
            let said = check(&self.process).map_or_else(|error| error.to_string(), |()| String::new());
            said.replace(&self.folder.path().display().to_string(), "DIR")
        }
    }

    const JAR: &[u8] = b"PK\x03\x04 and so on";

    #[test]
    fn a_jar_must_be_one() {
        // A program that says nothing of its version is taken as it is.
        let case = || Case::new("otel-java", Some("agents/otel.jar"), &["./java"]).with("java", b"#!/bin/sh\nexit 1\n");
        assert_eq!(case().with("agents/otel.jar", JAR).says(), "");
        let missing = case().says();
        assert!(
            missing.starts_with("otel-java of app: there is no DIR/agents/otel.jar. Get it with: mvn dep"),
            "{missing}"
        );
        let page = case().with("agents/otel.jar", b"<html>").says();
        assert!(page.contains("DIR/agents/otel.jar is no jar; a download may have failed. Get it with:"), "{page}");
        let folder =
            Case::new("otel-java", Some("agents"), &["java"]).with("agents/b.jar", JAR).with("agents/a.jar", JAR);
        assert_eq!(folder.says(), "otel-java of app: DIR/agents is a folder; name the jar itself, one of a.jar, b.jar");
    }

    #[test]
    fn a_folder_holds_the_agent() {
        let case = |path: &str| Case::new("skywalking-java", Some(path), &["./java"]);
        assert_eq!(case("sw").with("sw/skywalking-agent.jar", JAR).says(), "");
        let file = case("sw/skywalking-agent.jar").with("sw/skywalking-agent.jar", JAR).says();
        assert!(file.ends_with("is a file; name the agent's folder, with skywalking-agent.jar in it"), "{file}");
        assert!(case("sw").with("sw/x", b"").says().contains("there is no DIR/sw/skywalking-agent.jar"));
    }

    #[test]
    fn a_runtime_may_be_too_old() {
        let java = |version: &str| {
            let script = format!("#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n");
            Case::new("otel-java", Some("otel.jar"), &["./java"])
                .with("otel.jar", JAR)
                .with("java", script.as_bytes())
                .says()
        };
        assert_eq!(java("1.7.0_80"), "otel-java of app: it needs Java 8 or later, and `./java` is 7");
        assert_eq!((java("1.8.0_392"), java("21.0.1")), (String::new(), String::new()));

        // The package says more than the preset.
        let node = |engines: &str| {
            Case::new("datadog-node-otlp", None, &["./node"])
                .with(
                    "node_modules/dd-trace/package.json",
                    format!(r#"{{"engines":{{"node":"{engines}"}}}}"#).as_bytes(),
                )
                .with("node", b"#!/bin/sh\necho v20.20.2\n")
                .says()
        };
        assert_eq!(node(">=22"), "datadog-node-otlp of app: it needs Node.js 22 or later, and `./node` is 20");
        assert_eq!((node(">=18"), node("^18.19.0 || >=20.6.0")), (String::new(), String::new()));
    }

    #[test]
    fn packages_of_node_are_found_as_node_finds_them() {
        let case = || Case::new("elastic-node", None, &["./node", "app.js"]);
        let missing = case().says();
        let start =
            "elastic-node of app: elastic-apm-node is not installed in DIR/node_modules. Install it there: npm install";
        assert!(missing.starts_with(start), "{missing}");
        assert_eq!(case().with("node_modules/elastic-apm-node/package.json", b"{}").says(), "");
        let mut above = case().with("node_modules/elastic-apm-node/package.json", b"{}");
        above.process.cwd = above.folder.path().join("src/shop");
        assert_eq!(above.says(), "");
        let mut elsewhere = case().with("lib/elastic-apm-node/package.json", b"{}");
        elsewhere.process.env.insert("NODE_PATH".into(), elsewhere.folder.path().join("lib").display().to_string());
        assert_eq!(elsewhere.says(), "");
    }

    #[test]
    fn packages_of_python_are_asked_for_where_the_service_runs() {
        let command = ["venv/bin/elasticapm-run", "venv/bin/python", "app.py"];
        let case = || Case::new("elastic-python", None, &command);
        let missing = "elastic-python of app: elastic-apm is not installed where venv/bin/python is. Install it there: pip install elastic-apm";
        assert_eq!(case().says(), missing);
        // The program is there, and this Python knows no such package.
        let python = b"#!/bin/sh\nexec python3 -S \"$@\"\n";
        let half = case().with("venv/bin/elasticapm-run", b"").with("venv/bin/python", python);
        assert_eq!(half.says(), missing);
        let silent = case().with("venv/bin/elasticapm-run", b"").with("venv/bin/python", b"#!/bin/sh\n");
        assert_eq!(silent.says(), "");
        let command = ["venv/bin/elasticapm-run", "venv/bin/gunicorn", "app:app"];
        assert!(Case::new("elastic-python", None, &command).says().contains("where venv/bin/python3 is"));
    }

    #[test]
    fn a_build_is_a_file() {
        let case = Case::new("otel-go", Some("shop-otel"), &["shop-otel"]);
        assert!(case.says().contains("there is no DIR/shop-otel"));
        assert_eq!(case.with("shop-otel", b"").says(), "");
    }

    #[test]
    fn versions_of_all_ages() {
        for (text, number) in [
            ("openjdk version \"17.0.1\"", Some(17)),
            ("java version \"1.8.0_392\"", Some(8)),
            ("v22.3.0", Some(22)),
            ("none", None),
        ] {
            assert_eq!(major(text), number, "{text}");
        }
    }
}
