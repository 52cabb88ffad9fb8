//! Stays with a study that runs in its cluster.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;
use unladen_processes::subject::kubernetes::KubernetesError;
use unladen_processes::subject::kubernetes::in_cluster::{JobStatus, Jobs};

use super::pod;

/// Between two looks at a study.
const PAUSE: Duration = Duration::from_millis(500);
/// Between two questions to the cluster about a study whose log is followed.
const QUIET: Duration = Duration::from_secs(5);
/// A Job has a pod after this time, or a reason why it has none.
const PROMPT: Duration = Duration::from_secs(10);

/// Stays with a study until it has ended.
pub(super) struct Follower<'a> {
    pub(super) jobs: &'a Jobs,
    pub(super) name: &'a str,
    /// What everything begins with that is said of it: the node, if there are several.
    pub(super) prefix: String,
    /// Whether the user has named the node.
    pub(super) by_user: bool,
    pub(super) interrupted: &'a AtomicBool,
    pub(super) is_quiet: bool,
}

impl Follower<'_> {
    /// The pod that has the results, and the exit code of the study; `None`: it was interrupted before it had begun.
    pub(super) fn wait_for_end(&self) -> anyhow::Result<Option<(String, u8)>> {
        let begun = Instant::now();
        let mut said = String::new();
        let (mut is_told, mut is_away) = (false, false);
        // Which pod is followed, and what its log has said.
        let mut followed: Option<(String, Arc<LogState>)> = None;
        let mut asked = begun;
        loop {
            thread::sleep(PAUSE);
            let is_interrupted = self.interrupted.load(Ordering::Relaxed);
            let has_ended = followed.as_ref().is_some_and(|(_, log)| log.code.get().is_some());
            // The study may take hours: its log says what there is to know.
            if followed.is_some() && !has_ended && !is_interrupted && asked.elapsed() < QUIET {
                continue;
            }
            asked = Instant::now();
            let status = match self.jobs.status(self.name) {
                Ok(Some(status)) => status,
                Ok(None) => {
                    bail!("somebody has deleted the Job {}: it has ended, and its results have gone", self.name)
                }
                // The study goes on meanwhile.
                Err(error @ KubernetesError::Unreachable { .. }) => {
                    if !is_away {
                        self.say(&format!("{error} The study goes on there; it is looked for again here"));
                    }
                    is_away = true;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if is_away {
                self.say("the API server answers again");
                is_away = false;
            }
            if status.is_over {
                let left = self.jobs.sweep(self.name)?;
                self.jobs.delete(self.name)?;
                bail!(
                    "{}: its pod was killed repeatedly and its results are lost; deleted its namespaces ({left})",
                    self.name
                );
            }
            let Some(pod) = status.pod.as_ref().filter(|_| status.runs) else {
                if is_interrupted && followed.is_none() {
                    self.jobs.delete(self.name)?;
                    return Ok(None);
                }
                self.not_yet(&status, begun, &mut said)?;
                continue;
            };
            let log = match &followed {
                Some((known, log)) if known == pod => log,
                _ => {
                    self.begins(&status);
                    &followed.insert((pod.clone(), self.follow_log(pod))).1
                }
            };
            if let Some(code) = log.code.get() {
                log.is_over.store(true, Ordering::Relaxed);
                return Ok(Some((pod.clone(), *code)));
            }
            if is_interrupted && !is_told {
                match self.jobs.exec(pod, &["__in-cluster", "stop"], io::sink()) {
                    Err(error @ KubernetesError::Unreachable { .. }) => self.say_once(&mut said, &error.to_string()),
                    told => {
                        told?;
                        is_told = true;
                        self.say(
                            "stopping the study; its results so far will be fetched. Ctrl-C again exits without them",
                        );
                    }
                }
            }
        }
    }

    pub(super) fn say(&self, text: &str) {
        if !self.is_quiet {
            eprintln!("{}{text}", self.prefix);
        }
    }

    /// What was not said just before.
    fn say_once(&self, said: &mut String, text: &str) {
        if said != text {
            self.say(text);
            text.clone_into(said);
        }
    }

    /// What keeps the pod from running, and whether it will.
    fn not_yet(&self, status: &JobStatus, begun: Instant, said: &mut String) -> anyhow::Result<()> {
        let hopeless = status.waits.as_ref().filter(|waits| waits.is_hopeless);
        let refused = status.pod.is_none() && begun.elapsed() > PROMPT;
        let refused = refused.then(|| self.jobs.creation_failure(self.name)).flatten();
        match (hopeless, refused) {
            (Some(waits), _) => {
                self.jobs.delete(self.name)?;
                let node = status.node.as_deref().unwrap_or_default();
                bail!(
                    "the pod cannot be started on {node}: {}. `--image` names an image that the node has or can pull, with this executable as `/unladen`",
                    waits.said
                )
            }
            (None, Some(creation_failure)) => {
                self.jobs.delete(self.name)?;
                bail!(
                    "no pod was made for the study: {creation_failure}. Have an administrator apply deploy/kubernetes/role.yaml"
                )
            }
            (None, None) => {
                if let Some(waits) = &status.waits {
                    self.say_once(said, &format!("the pod waits: {}", waits.said));
                }
                Ok(())
            }
        }
    }

    fn begins(&self, status: &JobStatus) {
        if !self.prefix.is_empty() {
            return;
        }
        let node = status.node.as_deref().unwrap_or_default();
        self.say(&match self.by_user {
            true => format!("node: {node}"),
            false => format!("node: {node}, which the scheduler has taken (`--node` names another)"),
        });
    }

    /// Hears what a pod says, and passes it on.
    fn follow_log(&self, pod: &str) -> Arc<LogState> {
        let log = Arc::new(LogState::default());
        let goes_on = Arc::clone(&log);
        let goes_on = move || !goes_on.is_over.load(Ordering::Relaxed);
        let (prefix, is_quiet) = (self.prefix.clone(), self.is_quiet);
        self.jobs.follow(pod, goes_on, LogReader { part: Vec::new(), log: Arc::clone(&log), prefix, is_quiet });
        log
    }
}

/// What the log of a pod has said.
#[derive(Debug, Default)]
struct LogState {
    code: OnceLock<u8>,
    is_over: AtomicBool,
}

/// Where the output of a pod goes.
struct LogReader {
    part: Vec<u8>,
    log: Arc<LogState>,
    prefix: String,
    is_quiet: bool,
}

impl Write for LogReader {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.part.extend_from_slice(data);
        while let Some(end) = self.part.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.part.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            match pod::ended(&line) {
                // A pod that was started again says it again.
                Some(code) => {
                    let _ = self.log.code.set(code);
                }
                None if self.is_quiet => {}
                None => eprint!("{}{line}", self.prefix),
            }
        }
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
