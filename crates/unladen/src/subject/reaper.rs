//! Reaps the orphans of services: unladen is their subreaper, so they are its to reap, or they stay as zombies.
//!
//! Children that somebody waits for (services, guards) are registered and left alone. So is everything in unladen's own
//! session, where its build steps and tools run.

use std::collections::HashSet;
use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, WaitOptions, waitpid};

use crate::linux::process::{self, Stat};

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
    let me = std::process::id();
    let Some(own_session) = Stat::read(me).map(|stat| stat.session) else { return };
    for stat in process::all() {
        let orphan = stat.parent == me && !stat.is_alive() && stat.session != own_session;
        let waited_for = awaited.as_ref().is_some_and(|pids| pids.contains(&stat.pid));
        if orphan
            && !waited_for
            && let Some(pid) = i32::try_from(stat.pid).ok().and_then(Pid::from_raw)
        {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

fn awaited() -> MutexGuard<'static, Option<HashSet<u32>>> {
    AWAITED.lock().unwrap_or_else(PoisonError::into_inner)
}
