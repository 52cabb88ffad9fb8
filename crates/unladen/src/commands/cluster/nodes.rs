//! A study whose rounds several nodes share: a Job on each, at the same time, and one run folder at the end. Nodes are blocks: every round has all
//! its variants on one node.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::thread;

use anyhow::{bail, ensure};
use unladen_processes::subject::kubernetes::in_cluster::{JobOrder, Jobs};
use unladen_study::measured;
use unladen_study::merge::NamedFolder;
use unladen_study::plan::Plan;
use unladen_study::spec::OnUndecided;

use super::super::{COULD_NOT_RUN, INTERRUPTED, interrupt_flag, merge, print, print_findings};
use super::fetch;
use super::follow::Follower;
use super::order::{context, order, yaml};
use crate::cli::Run;

/// What one node gives.
enum Outcome {
    /// A run folder, and the exit code of its study.
    Ended(PathBuf, u8),
    /// It was interrupted before it had begun.
    Nothing,
    /// It went wrong, and was told.
    Failed,
}

/// `unladen run --in-cluster --node A --node B`
pub(super) fn run(plan: &Plan, options: &Run, out: &Path) -> anyhow::Result<ExitCode> {
    let orders = orders(plan, options)?;
    if options.cluster.print {
        return print(&orders.iter().map(|(_, order)| yaml(order)).collect::<anyhow::Result<Vec<_>>>()?.join("---\n"));
    }
    let context = context(plan);
    let jobs = Jobs::open(context)?;
    let interrupted = interrupt_flag()?;
    for (at, (_, order)) in orders.iter().enumerate() {
        if let Err(error) = jobs.create(order) {
            // None has begun that the others would be of use for.
            orders[..at].iter().try_for_each(|(_, created)| jobs.delete(&created.name))?;
            return Err(error.into());
        }
    }
    if !options.measure.quiet {
        let names: Vec<&str> = orders.iter().map(|(_, order)| order.name.as_str()).collect();
        let rounds = share(plan, options.cluster.nodes.len());
        eprintln!(
            "{} now run in the cluster at {}, {rounds} {} each; they do not need this terminal.\nCtrl-C ends them; if this terminal closes, `{}` gets the results of each, and `unladen merge` puts them together.",
            names.join(" and "),
            jobs.server(),
            if rounds == 1 { "round" } else { "rounds" },
            fetch::command("NAME", context)
        );
    }
    let of_node = |(node, order): &(String, JobOrder)| {
        let part = part(out, node);
        one(&jobs, (node, order), context, &part, options.measure.quiet, &interrupted).unwrap_or_else(|error| {
            eprintln!("{node}  error: {error:#}. The other nodes go on; Ctrl-C ends them");
            Outcome::Failed
        })
    };
    let outcomes: Vec<Outcome> = thread::scope(|scope| {
        let threads: Vec<_> = orders.iter().map(|it| scope.spawn(move || of_node(it))).collect();
        threads.into_iter().map(|it| it.join().unwrap_or(Outcome::Failed)).collect()
    });
    put_together(&orders, &outcomes, out)
}

/// A Job for each node, with its share of the rounds.
pub(super) fn orders(plan: &Plan, options: &Run) -> anyhow::Result<Vec<(String, JobOrder)>> {
    let nodes = &options.cluster.nodes;
    let study = &plan.study;
    ensure!(nodes.iter().collect::<BTreeSet<_>>().len() == nodes.len(), "--node names a node twice");
    ensure!(
        !study.is_open_ended() && study.on_undecided != OnUndecided::Extend,
        "several nodes share a number of rounds, which `until`, `at_most` and `on_undecided: extend` leave open: take them out, or name one node"
    );
    let load = study.on.kubernetes.as_ref().and_then(|it| it.load.as_ref());
    ensure!(
        load.is_none_or(|load| !load.nodes.is_empty()),
        "the load of one node would be sent from another that is measured at the same time: name other nodes for it by `on.kubernetes.load.nodes`, or one `--node`"
    );
    let rounds = share(plan, nodes.len());
    let of_node = |(node, number): (&String, u64)| {
        let mut plan = plan.clone();
        plan.study.rounds = rounds;
        // Each node has orders of its own.
        plan.study.seed = study.seed.map(|seed| seed.wrapping_add(number));
        Ok((node.clone(), order(&plan, &options.cluster, Some(node))?))
    };
    nodes.iter().zip(0..).map(of_node).collect()
}

/// As many rounds for every node.
fn share(plan: &Plan, nodes: usize) -> u32 {
    plan.study.rounds.div_ceil(u32::try_from(nodes).unwrap_or(u32::MAX))
}

/// Where the results of a node are until they are put together.
fn part(out: &Path, node: &str) -> PathBuf {
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    out.with_file_name(format!("{name}-{node}"))
}

/// Stays with the study of one node, and fetches its results.
fn one(
    jobs: &Jobs,
    (node, order): (&str, &JobOrder),
    context: Option<&str>,
    part: &Path,
    is_quiet: bool,
    interrupted: &AtomicBool,
) -> anyhow::Result<Outcome> {
    let prefix = format!("{node}  ");
    let follower = Follower { jobs, name: &order.name, prefix, by_user: true, interrupted, is_quiet };
    let code = fetch::at_the_end(&follower, context, part)?;
    Ok(code.map_or(Outcome::Nothing, |code| Outcome::Ended(part.to_owned(), code)))
}

/// Makes one run folder of what the nodes gave, and judges that.
fn put_together(orders: &[(String, JobOrder)], outcomes: &[Outcome], out: &Path) -> anyhow::Result<ExitCode> {
    let mut folders = Vec::new();
    let mut code = 0;
    for ((node, _), outcome) in orders.iter().zip(outcomes) {
        code = code.max(match outcome {
            Outcome::Ended(_, code) => *code,
            Outcome::Nothing => INTERRUPTED,
            Outcome::Failed => COULD_NOT_RUN,
        });
        // What has no runs has said why.
        if let Outcome::Ended(dir, _) = outcome
            && measured::read(dir).is_ok_and(|part| !part.runs.is_empty())
        {
            folders.push(NamedFolder { machine: Some(node.clone()), dir: dir.clone() });
        }
    }
    match folders.as_slice() {
        [] if code == INTERRUPTED => {}
        [] => bail!("no node has results"),
        [only] => {
            fs::rename(&only.dir, out)?;
            fetch::show(out, Some(code))?;
        }
        _ => {
            let findings = merge::into(&folders, out)?;
            // Merged, they are all there.
            folders.iter().try_for_each(|folder| fs::remove_dir_all(&folder.dir))?;
            print_findings(&findings, out)?;
        }
    }
    Ok(ExitCode::from(code))
}
