//! Reaps the orphans of services: unladen is their subreaper, so they are its to reap, or they stay as zombies.
//!
//! Children that somebody waits for (services, guards) are registered and left alone. So is everything in unladen's own
//! session, where its build steps and tools run.

use std::collections::HashSet;
use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, WaitOptions, waitpid};

use unladen_linux::process::{self, Stat};
use unladen_linux::tree::MARK;

/// Children that are waited for by whoever started them.
static AWAITED: Mutex<Option<HashSet<u32>>> = Mutex::new(None);

/// Starts a process and registers it in one step: it could not end and be reaped as an orphan in between.
pub(super) fn spawn(command: &mut Command) -> io::Result<Child> {
    let mut awaited = awaited();
    let child = command.spawn()?;
    awaited.get_or_insert_default().insert(child.id());
    Ok(child)
}

/// Takes a child off the register after it was waited for.
pub(super) fn forget(pid: u32) {
    awaited().get_or_insert_default().remove(&pid);
}

/// Reaps all orphans that have ended.
pub(super) fn reap_orphans() {
    let awaited = awaited();
    for orphan in orphans(awaited.as_ref()).iter().filter(|stat| !stat.is_alive()) {
        if let Some(pid) = i32::try_from(orphan.pid).ok().and_then(Pid::from_raw) {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

/// Kills living orphans that carry no mark of any study: a daemon that has left its session, forked away and cleared its
/// environment. Only that unladen is its parent now gives it away.
pub(super) fn kill_unmarked_orphans() {
    let awaited = awaited();
    for orphan in orphans(awaited.as_ref()).iter().filter(|stat| stat.is_alive()) {
        if !process::environment_starts(orphan.pid, MARK, "") {
            let _ = orphan.identity().signal(Signal::KILL);
        }
    }
}

/// Children of this process in sessions of their own that nobody waits for.
fn orphans(awaited: Option<&HashSet<u32>>) -> Vec<Stat> {
    let me = std::process::id();
    let Some(own_session) = Stat::read(me).map(|stat| stat.session) else { return Vec::new() };
    let is_orphan = |stat: &Stat| {
        stat.parent == me && stat.session != own_session && awaited.is_none_or(|pids| !pids.contains(&stat.pid))
    };
    process::all().into_iter().filter(is_orphan).collect()
}

fn awaited() -> MutexGuard<'static, Option<HashSet<u32>>> {
    AWAITED.lock().unwrap_or_else(PoisonError::into_inner)
}
