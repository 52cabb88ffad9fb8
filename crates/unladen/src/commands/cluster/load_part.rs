//! A part of a load, in a pod on another node than the services.

use std::env;
use std::process::ExitCode;

use anyhow::Context;
use unladen_load::parts::{self, Member};
use unladen_processes::subject::kubernetes::LOAD_VARIABLES;

use super::interrupt_flag;

/// Number of a pod of an Indexed Job, from 0.
const INDEX: &str = "JOB_COMPLETION_INDEX";

/// Sends its part of every load, until SIGTERM.
///
/// # Errors
/// When it is in no such pod.
pub fn load_part() -> anyhow::Result<ExitCode> {
    let variable = |name: &str| {
        env::var(name).with_context(|| format!("{name} is missing: this is for the pods of `on.kubernetes.load`"))
    };
    let [meeting, secret, node] = LOAD_VARIABLES;
    let address = variable(meeting)?;
    let index: u32 = variable(INDEX)?.parse().with_context(|| format!("{INDEX} is no number"))?;
    let member = Member {
        meeting: address.parse().with_context(|| format!("{meeting} is {address}, which is no address"))?,
        secret: variable(secret)?,
        number: index + 1,
        machine: variable(node)?,
    };
    let over = interrupt_flag()?;
    parts::serve(&member, &over, &mut |message| eprintln!("{message}"));
    Ok(ExitCode::SUCCESS)
}
