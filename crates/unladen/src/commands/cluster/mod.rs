//! Studies that run in a cluster by themselves: `run --in-cluster` sends the study (`bundle`) and stays with it, `fetch` brings results here,
//! `clean` deletes what is nobody's. `pod` is what runs there.

mod bundle;
mod fetch;
mod pod;
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use unladen_journal::units::Time;
use unladen_processes::subject::kubernetes::in_cluster::{JobOrder, JobStatus, Jobs, STUDY};
use unladen_processes::subject::kubernetes::{KubernetesError, plain_name};
use unladen_study::plan::Plan;

pub use fetch::fetch;
pub use pod::in_pod;

use super::measure::{draw_seed, new_folder};
use super::{INTERRUPTED, check_is_free, interrupt_flag, print};
use crate::cli::Run;
use crate::cli::cluster::{Clean, InCluster};

/// Results wait so long in the cluster, unless it is said.
const KEEP: Duration = Duration::from_secs(24 * 3600);
/// Between two looks at a study.
const PAUSE: Duration = Duration::from_millis(500);
/// Between two questions to the cluster about a study whose log is followed.
const QUIET: Duration = Duration::from_secs(5);
/// A Job has a pod after this time, or a reason why it has none.
const PROMPT: Duration = Duration::from_secs(10);
/// Longest beginning of the name of a study: that of a pod is longer, and has 63 characters at most.
const LONGEST_NAME: usize = 40;

/// `unladen run --in-cluster`
///
/// # Errors
/// When the study cannot be sent, or does not come to an end. An error of the study is an exit code.
pub fn run(plan: &Plan, options: &Run) -> anyhow::Result<ExitCode> {
    let order = order(plan, &options.cluster)?;
    if options.cluster.print {
        return print(&yaml(&order)?);
    }
    let out = options.measure.out.clone().unwrap_or_else(|| new_folder(&plan.study.study));
    check_is_free(&out)?;
    let context = plan.study.on.kubernetes.as_ref().and_then(|it| it.context.as_deref());
    let jobs = Jobs::open(context)?;
    let interrupted = interrupt_flag()?;
    jobs.create(&order)?;
    let name = &order.name;
    let more = context.map(|context| format!(" --context {context}")).unwrap_or_default();
    let by_user = options.cluster.node.is_some();
    let follower = Follower { jobs: &jobs, name, by_user, interrupted: &interrupted, is_quiet: options.measure.quiet };
    follower.say(&format!(
        "{name} now runs in the cluster at {}; it does not need this terminal.\nCtrl-C ends it; if this terminal closes, `unladen fetch {name}{more}` gets its results.",
        jobs.server()
    ));
    let Some((pod, code)) = follower.wait_for_end()? else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    fetch::bring(&jobs, &pod, &out)
        .with_context(|| format!("they are still in the cluster: `unladen fetch {name}{more}`"))?;
    jobs.delete(name)?;
    fetch::show(&out, Some(code))?;
    Ok(ExitCode::from(code))
}

/// `unladen clean`
///
/// # Errors
/// When the cluster refuses.
pub fn clean(options: &Clean) -> anyhow::Result<ExitCode> {
    let jobs = Jobs::open(options.context.as_deref())?;
    let done = jobs.clean()?;
    let mut lines: Vec<String> = done.deleted.iter().map(|what| format!("deleted  {what}")).collect();
    lines.extend(done.left.iter().map(|what| format!("left     {what}")));
    if lines.is_empty() {
        lines.push(format!("Nothing of unladen is in the cluster at {}.", jobs.server()));
    }
    print(&lines.join("\n"))
}

/// What the cluster is asked for.
fn order(plan: &Plan, options: &InCluster) -> anyhow::Result<JobOrder> {
    let bundle = bundle::pack(plan)?;
    let keep = options.keep.unwrap_or(Time(KEEP));
    let study = format!("{STUDY}/{}", bundle.study);
    Ok(JobOrder {
        name: name(&plan.study.study, draw_seed()),
        study: plan.study.study.clone(),
        image: options.image.clone().unwrap_or_else(|| format!("unladen:{}", env!("CARGO_PKG_VERSION"))),
        node: options.node.clone(),
        args: ["__in-cluster", "run", &study, "--keep", &keep.to_string()].map(str::to_owned).to_vec(),
        files: bundle.files,
    })
}

/// `shop-1a2b3c4d`: what a Job and its pods may be called.
fn name(study: &str, random: u64) -> String {
    let plain = plain_name(study, LONGEST_NAME);
    format!("{}-{:08x}", if plain.is_empty() { "study" } else { &plain }, random & 0xffff_ffff)
}

/// The objects as YAML, for `kubectl apply`.
fn yaml(order: &JobOrder) -> anyhow::Result<String> {
    let options = serde_saphyr::ser_options! { compact_list_indent: false, folded_wrap_chars: 1_000_000 };
    let documents = order.objects().map(|object| serde_saphyr::to_string_with_options(&object, options.clone()));
    let documents = documents.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(format!("# unladen fetch {} gets the results\n{}", order.name, documents.join("---\n")))
}

/// Stays with a study until it has ended.
struct Follower<'a> {
    jobs: &'a Jobs,
    name: &'a str,
    /// Whether the user has named the node.
    by_user: bool,
    interrupted: &'a AtomicBool,
    is_quiet: bool,
}

impl Follower<'_> {
    /// The pod that has the results, and the exit code of the study; `None`: it was interrupted before it had begun.
    fn wait_for_end(&self) -> anyhow::Result<Option<(String, u8)>> {
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

    fn say(&self, text: &str) {
        if !self.is_quiet {
            eprintln!("{text}");
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
        self.jobs.follow(pod, goes_on, LogReader { part: Vec::new(), log: Arc::clone(&log), is_quiet: self.is_quiet });
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
                None => eprint!("{line}"),
            }
        }
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
