//! What runs in pods of unladen's own: a part of a load, on another node than the services; a probe, beside a container of theirs.

use std::env;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::process::ExitCode;

use anyhow::Context;
use unladen_load::parts::{self, Member};
use unladen_probe::server;
use unladen_processes::subject::kubernetes::{LOAD_VARIABLES, SECRET};

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

/// Watches the container whose process namespace it is in, until SIGTERM.
///
/// # Errors
/// When it is in no such pod, or the port is taken.
pub fn probe(port: u16) -> anyhow::Result<ExitCode> {
    let secret = env::var(SECRET)
        .with_context(|| format!("{SECRET} is missing: this is for the pods of `on.kubernetes.probe: pod`"))?;
    let over = interrupt_flag()?;
    // The unspecified address of IPv6 takes both, where there is IPv6.
    let listener =
        TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)));
    server::serve(&listener.with_context(|| format!("cannot listen at port {port}"))?, &secret, &over)?;
    Ok(ExitCode::SUCCESS)
}
