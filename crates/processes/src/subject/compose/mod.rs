//! Services that are containers of a Compose project. The Compose tool merges the files, fills them in and starts the project; what is
//! changed for a study (`model`) goes to it on its standard input, so that nothing is left on disk. Afterwards each container is a
//! [`super::Running`] like any other. A project has a name of its own; everything in it is found by that name, and
//! removed.

pub(super) mod error;
mod model;
mod tool;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use indexmap::IndexMap;

pub use error::ComposeError;
pub use model::{Changes, Declared, Fit};
pub use tool::Tool;

use unladen_linux::tree::Family;
use unladen_linux::{CpuSet, Netns};

use super::container::{Container, Engine, Member, PROJECT};
use super::error::SubjectError;
use super::launch::{Launch, log_name};
use super::launcher::{Launcher, Piped, open_log};
use super::placed::Placed;
use super::shared::Shared;
use model::{Model, mark_of};

/// Between two looks at the containers while they are started.
const LOOK: Duration = Duration::from_millis(25);
/// Longest time for the tool to read files.
const CONFIG: Duration = Duration::from_secs(60);
/// Lines of what the tool says that an error shows.
const TAIL: usize = 12;
/// See [`Launcher::up`].
const SETTLING: Duration = Duration::from_millis(300);
/// Label of what outlives a project but not the study.
const STUDY: &str = "unladen.study";

/// What a project is made from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Files {
    /// Compose files, in the order in which they are merged; absolute.
    pub files: Vec<PathBuf>,
    /// Profiles that take part.
    pub profiles: Vec<String>,
    /// Whether a service may be privileged.
    pub privileged: bool,
    /// Services that must be there.
    pub named: Vec<String>,
    /// What `${NAME}` in the files is filled in from, besides unladen's own environment and an `.env` file.
    pub env: IndexMap<String, String>,
    /// Where the tool runs, and where its words go.
    pub dir: PathBuf,
    /// See [`Self::dir`].
    pub log: PathBuf,
    /// Cores of the tool.
    pub cpus: CpuSet,
}

/// A project as the files have it; nothing of it runs yet.
#[derive(Debug)]
pub struct Configured {
    files: Files,
    tool: Tool,
    model: Model,
    name: String,
    mark: String,
    engine: Arc<Engine>,
}

/// A project that was started. Dropping it removes whatever is left of it.
#[derive(Debug)]
pub struct Project {
    name: String,
    engine: Arc<Engine>,
    shared: Arc<Shared>,
    is_gone: bool,
}

/// The services of Compose files, without an engine. Variables that are not set are empty.
///
/// # Errors
/// There is no Compose, or the files are wrong.
pub fn services(files: &[&Path]) -> Result<BTreeMap<String, Declared>, ComposeError> {
    let text = Tool::find()?.config(files)?;
    Ok(Model::read(&text, &[], &[])?.services())
}

impl Configured {
    /// Its services by name.
    #[must_use]
    pub fn services(&self) -> BTreeMap<String, Declared> {
        self.model.services()
    }
}

impl Launcher {
    /// Lets Compose read the files of a project.
    ///
    /// # Errors
    /// There is no Compose or no engine, the files are wrong, or a service that must be there is not.
    pub fn configure(&self, files: Files, interrupted: &AtomicBool) -> Result<Configured, SubjectError> {
        let tool = Tool::find()?;
        let engine = self.shared().engine().map_err(ComposeError::from)?;
        let mark = self.shared().next_mark();
        let name = format!("unladen-{}", mark.replace('/', "-"));
        let paths = files.files.iter().flat_map(|file| ["-f".to_owned(), file.display().to_string()]);
        // Version 2 leaves out what no profile asks for. Which services take part is for the model to say: the study may name some.
        let profiles = ["--profile", "*"].map(str::to_owned);
        let arguments = paths.chain(profiles).chain(["config".to_owned()]).collect();
        let call = Call { tool: &tool, files: &files, name: &name, engine: &engine, what: "read the files" };
        let text = self.call(&call, arguments, String::new(), CONFIG, interrupted, &mut || Ok(()))?;
        let model = Model::read(&text, &files.profiles, &files.named)?;
        let services = model.services();
        if let Some(service) = files.named.iter().find(|name| !services.contains_key(*name)) {
            let paths: Vec<String> = files.files.iter().map(|file| file.display().to_string()).collect();
            let known = services.into_keys().collect::<Vec<_>>().join(", ");
            let (service, files) = (service.clone(), paths.join(", "));
            return Err(ComposeError::NoService { service, files, known }.into());
        }
        Ok(Configured { files, tool, model, name, mark, engine })
    }

    /// Starts a project, within `patience`, and returns its containers in the order in which they were started. Every network namespace that
    /// one of them is in is handed to `seen` as soon as it is there.
    ///
    /// # Errors
    /// An image is not there, a service is unfit, or Compose or the engine refuse. Nothing is left then.
    pub fn up(
        &self,
        mut configured: Configured,
        fit: &Fit,
        patience: Duration,
        seen: &mut dyn FnMut(&Arc<Netns>),
        interrupted: &AtomicBool,
    ) -> Result<(Project, Vec<Placed>), SubjectError> {
        let Configured { files, tool, model, name, mark, engine } = &mut configured;
        let fit = &Fit { keep_volumes: fit.keep_volumes.as_ref().map(|who| self.kept_name(who)), ..fit.clone() };
        model.fit(fit, mark, files.privileged)?;
        for image in model.services().into_values().filter_map(|service| service.image) {
            engine.need_image(&image).map_err(ComposeError::from)?;
        }
        // Named before it is made: there is no instant at which it is there and the guard does not know it.
        self.shared().guard.labelled(engine.socket(), &format!("{PROJECT}={name}"));
        let (engine, shared) = (Arc::clone(engine), Arc::clone(self.shared()));
        let project = Project { name: name.clone(), engine, shared, is_gone: false };
        self.keep_volumes(&project.engine, model, fit)?;
        let folder = files.files.first().and_then(|file| file.parent()).unwrap_or(&files.dir);
        let arguments = ["--project-directory", &folder.display().to_string(), "-f", "-", "up", "-d", "--no-build"];
        let arguments = arguments.map(str::to_owned).to_vec();
        let mut networks = Networks { seen, known: BTreeSet::new(), looked: Instant::now() };
        let call = Call { tool, files, name, engine: &project.engine, what: "start the project" };
        let mut look = || networks.look(&project, LOOK);
        let up = self.call(&call, arguments, model.text(), patience, interrupted, &mut look);
        if let Err(error) = up {
            project.save_logs(self, files);
            // What the tool asked for with its last breath is there after this time.
            thread::sleep(SETTLING);
            return Err(error);
        }
        networks.look(&project, Duration::ZERO)?;
        let composed = project.adopt(self, files, mark, Some(fit))?;
        Ok((project, composed))
    }

    /// What the names of volumes begin with that somebody keeps through the study.
    fn kept_name(&self, who: &str) -> String {
        let who: String = who.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        format!("unladen-{}-{who}", self.shared().id)
    }

    /// Makes the volumes that outlive the project.
    fn keep_volumes(&self, engine: &Arc<Engine>, model: &Model, fit: &Fit) -> Result<(), ComposeError> {
        let Some(keep) = &fit.keep_volumes else { return Ok(()) };
        let id = self.shared().keep(engine, STUDY);
        for volume in model.kept_volumes(keep) {
            engine.make_volume(&volume, (STUDY, &id))?;
        }
        Ok(())
    }

    /// Calls the tool and returns what it prints; meanwhile does `look` again and again.
    fn call(
        &self,
        call: &Call<'_>,
        arguments: Vec<String>,
        input: String,
        patience: Duration,
        interrupted: &AtomicBool,
        look: &mut dyn FnMut() -> Result<(), ComposeError>,
    ) -> Result<String, SubjectError> {
        let Piped { mut running, mut stdin, mut stdout } = self.launch_piped(&call.launch(arguments))?;
        let written = thread::spawn(move || stdin.write_all(input.as_bytes()));
        let printed = thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).map(|_| text)
        });
        let deadline = Instant::now() + patience;
        let ended = loop {
            if let Some(ended) = running.alive() {
                break Ok(ended);
            }
            if interrupted.load(Ordering::Relaxed) {
                break Err(SubjectError::Interrupted { service: "Compose".to_owned() });
            }
            if Instant::now() >= deadline {
                break Err(ComposeError::Late { seconds: patience.as_secs(), said: running.log_tail(TAIL) }.into());
            }
            if let Err(error) = look() {
                break Err(error.into());
            }
            thread::sleep(Duration::from_millis(5));
        };
        let said = running.log_tail(TAIL);
        running.stop(Duration::from_secs(2))?;
        // A tool that has failed need not have read everything.
        let _ = written.join();
        let printed = printed.join();
        match ended? {
            super::Ended::Exit(0) => {
                let text = printed.unwrap_or_else(|_| Err(std::io::Error::other("the thread that read it failed")));
                Ok(text.map_err(|error| ComposeError::Unreadable { reason: error.to_string() })?)
            }
            _ => Err(ComposeError::Refused { what: call.what, said }.into()),
        }
    }
}

/// How the tool is called for a project.
struct Call<'a> {
    tool: &'a Tool,
    files: &'a Files,
    name: &'a str,
    engine: &'a Engine,
    what: &'static str,
}

impl Call<'_> {
    fn launch(&self, arguments: Vec<String>) -> Launch {
        let mut env = self.files.env.clone();
        env.insert("DOCKER_HOST".to_owned(), format!("unix://{}", self.engine.socket().display()));
        // Its bars are for terminals, its hints for people.
        env.insert("COMPOSE_ANSI".to_owned(), "never".to_owned());
        env.insert("COMPOSE_INTERACTIVE_NO_CLI".to_owned(), "1".to_owned());
        let program = self.tool.program().display().to_string();
        Launch {
            service: "compose".to_owned(),
            command: [program, "-p".to_owned(), self.name.to_owned()].into_iter().chain(arguments).collect(),
            env,
            cwd: self.files.dir.clone(),
            log: self.files.log.join("compose.log"),
            cpus: Some(self.files.cpus.clone()),
            ..Launch::default()
        }
    }
}

/// The network namespaces of the containers, as they come.
struct Networks<'a> {
    seen: &'a mut dyn FnMut(&Arc<Netns>),
    /// Containers that have been looked at.
    known: BTreeSet<String>,
    looked: Instant,
}

impl Networks<'_> {
    fn look(&mut self, project: &Project, pause: Duration) -> Result<(), ComposeError> {
        if self.looked.elapsed() < pause {
            return Ok(());
        }
        for member in project.engine.members(&project.name)?.into_iter().filter(|member| member.is_running) {
            if self.known.insert(member.id.clone())
                && let Some(network) = network_of(&member.service, project.engine.inspect(&member.id)?.pid)?
            {
                (self.seen)(&network);
            }
        }
        self.looked = Instant::now();
        Ok(())
    }
}

/// `None` for a process that has ended.
fn network_of(service: &str, pid: u32) -> Result<Option<Arc<Netns>>, ComposeError> {
    if pid == 0 {
        return Ok(None);
    }
    let network = Netns::of_process(pid);
    let network = network.map_err(|source| ComposeError::Network { service: service.to_owned(), source })?;
    Ok(network.map(Arc::new))
}

impl Project {
    /// Its containers as services that run, in the order in which they were started.
    fn adopt(
        &self,
        launcher: &Launcher,
        files: &Files,
        mark: &str,
        fit: Option<&Fit>,
    ) -> Result<Vec<Placed>, SubjectError> {
        let mut all = Vec::new();
        let members = self.engine.members(&self.name).map_err(ComposeError::from)?;
        for member in members.into_iter().filter(|member| member.was_started) {
            all.push(self.adopt_one(launcher, files, mark, fit, &member)?);
        }
        all.sort_by_key(|composed| composed.running.started());
        Ok(all)
    }

    fn adopt_one(
        &self,
        launcher: &Launcher,
        files: &Files,
        mark: &str,
        fit: Option<&Fit>,
        member: &Member,
    ) -> Result<Placed, SubjectError> {
        let launch = Launch {
            service: member.service.clone(),
            replica: member.replica,
            log: files.log.join(log_name(&member.service, member.replica)),
            ..Launch::default()
        };
        let log = open_log(&launch)?;
        let log_start = log.metadata().map_or(0, |log| log.len());
        let (container, inspected) = Container::adopt(&self.engine, &member.id, log).map_err(ComposeError::from)?;
        let network = network_of(&member.service, inspected.pid)?;
        let family = Family::of_container(inspected.pid, mark_of(mark, &member.service));
        let (address, started) = (inspected.address, inspected.started());
        let limits = fit.and_then(|fit| fit.services.get(&member.service)).map(|changes| &changes.limits);
        if let Some(limits) = limits {
            let without = |source| SubjectError::Container { service: member.service.clone(), source };
            inspected.need_limits(limits).map_err(without)?;
        }
        let running = launcher.running_of(&launch, container, family, started, log_start);
        running.keep_to(limits.and_then(|limits| limits.cpuset.as_ref()).or(fit.map(|fit| &fit.cpus)))?;
        let address = address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
        Ok(Placed { running, address, network })
    }

    /// What the containers of a project that could not be started have said. They end.
    fn save_logs(&self, launcher: &Launcher, files: &Files) {
        drop(self.adopt(launcher, files, "", None));
    }

    /// Removes everything that belongs to it.
    ///
    /// # Errors
    /// What the engine says.
    pub fn remove(mut self) -> Result<(), SubjectError> {
        Ok(self.take_away()?)
    }

    fn take_away(&mut self) -> Result<(), ComposeError> {
        if !self.is_gone {
            let label = format!("{PROJECT}={}", self.name);
            self.engine.remove_labelled(&label)?;
            self.shared.guard.removed(&label);
            self.is_gone = true;
        }
        Ok(())
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        // What the engine refuses now the guard asks for once more when unladen has ended.
        let _ = self.take_away();
    }
}
