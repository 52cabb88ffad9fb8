//! Studies that run in a cluster by themselves: `run --in-cluster` sends the study (`bundle`, `order`) and stays with it (`follow`), on one node
//! or several (`nodes`); `fetch` brings results here, `clean` deletes what is nobody's. `pod` is what runs there, `load_part` what sends the load from other nodes, and probes in pods.

mod bundle;
mod fetch;
mod follow;
mod load_part;
mod nodes;
mod order;
mod pod;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use unladen_processes::subject::kubernetes::in_cluster::Jobs;
use unladen_study::plan::Plan;

pub use fetch::fetch;
pub use load_part::{load_part, probe};
pub use pod::in_pod;

use follow::Follower;
use order::{context, order, yaml};

use super::{INTERRUPTED, check_is_free, interrupt_flag, new_folder, print};
use crate::cli::Run;
use crate::cli::cluster::Clean;

/// `unladen run --in-cluster`
///
/// # Errors
/// When the study cannot be sent, or does not come to an end. An error of the study is an exit code.
pub fn run(plan: &Plan, options: &Run) -> anyhow::Result<ExitCode> {
    let out = options.measure.out.clone().unwrap_or_else(|| new_folder(&plan.study.study));
    if !options.cluster.print {
        check_is_free(&out)?;
    }
    if options.cluster.nodes.len() > 1 {
        return nodes::run(plan, options, &out);
    }
    let node = options.cluster.nodes.first().map(String::as_str);
    let order = order(plan, &options.cluster, node)?;
    if options.cluster.print {
        return print(&yaml(&order)?);
    }
    let context = context(plan);
    let jobs = Jobs::open(context)?;
    let interrupted = interrupt_flag()?;
    jobs.create(&order)?;
    let name = &order.name;
    let (prefix, is_quiet) = (String::new(), options.measure.quiet);
    let follower = Follower { jobs: &jobs, name, prefix, by_user: node.is_some(), interrupted: &interrupted, is_quiet };
    follower.say(&format!(
        "{name} now runs in the cluster at {}; it does not need this terminal.\nCtrl-C ends it; if this terminal closes, `{}` gets its results.",
        jobs.server(),
        fetch::command(name, context)
    ));
    let Some(code) = fetch::at_the_end(&follower, context, &out)? else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
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
