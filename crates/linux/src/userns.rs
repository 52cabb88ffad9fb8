//! The right to make network namespaces, for those who are not root: as the owner of a user namespace. See
//! user_namespaces(7) and capabilities(7).
//!
//! The whole process moves, and can never go back. Users and groups keep their numbers in there, so files and services are
//! as they were: nobody runs as root who did not. The rights are unladen's own; of what it starts only its instrument gets
//! them ([`lend`]). What is no longer possible: programs that become another user (setuid, `sudo`), and other users' files
//! show no owner.

use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{WaitOptions, getegid, geteuid, waitpid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, configure_capability_in_ambient_set, set_capabilities, unshare_unsafe,
};

use super::netns::unshare_network;

/// What it takes: to make and enter network namespaces, to set them up, and to listen there below port 1024.
const RIGHTS: [CapabilitySet; 3] =
    [CapabilitySet::SYS_ADMIN, CapabilitySet::NET_ADMIN, CapabilitySet::NET_BIND_SERVICE];

/// Whether this process owns a user namespace.
static MOVED: AtomicBool = AtomicBool::new(false);

/// Makes this process able to make network namespaces. Where it is already (root), nothing changes; else it moves into a user
/// namespace of its own. To be called while the process has a single thread.
///
/// # Errors
/// Why it is not possible, and what to do, in words. Nothing has changed then.
pub fn become_able() -> Result<(), String> {
    let move_there = || {
        if in_a_child(unshare_network).is_ok() {
            return Ok(());
        }
        // A process that is stopped half-way would be nobody, with no way back: so first in a child.
        rehearse()?;
        let maps = Maps::of_this_process();
        own_namespace(&maps)?;
        MOVED.store(true, Ordering::Relaxed);
        Ok(())
    };
    move_there().map_err(|error: io::Error| refusal(&error))
}

/// Hands the rights to the program that is executed next. For the instrument's processes, which enter network namespaces. Safe
/// between fork and exec.
///
/// # Errors
/// What the kernel says if a right cannot be handed on.
pub fn lend() -> io::Result<()> {
    if MOVED.load(Ordering::Relaxed) {
        for right in RIGHTS {
            configure_capability_in_ambient_set(right, true)?;
        }
    }
    Ok(())
}

/// Makes a network namespace in a child process that ends at once, there and then or in a user namespace of its own.
pub(super) fn rehearse() -> io::Result<()> {
    let maps = Maps::of_this_process();
    in_a_child(unshare_network).or_else(|_| {
        in_a_child(|| {
            own_namespace(&maps)?;
            unshare_network()
        })
    })
}

/// Who this process is, for the files that say so to a new user namespace.
struct Maps {
    user: String,
    group: String,
}

impl Maps {
    fn of_this_process() -> Self {
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        Self { user: format!("{user} {user} 1"), group: format!("{group} {group} 1") }
    }
}

/// Moves into a new user namespace, as the same user, and keeps only what is needed of the rights there: other processes of ours
/// may look into this one only if they have as many. Safe between fork and exec.
fn own_namespace(maps: &Maps) -> rustix::io::Result<()> {
    let write = |path: &str, text: &str| {
        fs::write(path, text).map_err(|error| rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO))
    };
    // SAFETY: the flag concerns credentials alone; descriptors and memory stay shared.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER) }?;
    // Without this the group may not be told.
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &maps.user)?;
    write("/proc/self/gid_map", &maps.group)?;
    let rights = RIGHTS.into_iter().collect();
    set_capabilities(None, CapabilitySets { effective: rights, permitted: rights, inheritable: rights })
}

/// What comes of something that is done in a child process.
fn in_a_child(work: impl FnOnce() -> rustix::io::Result<()>) -> io::Result<()> {
    // SAFETY: the child makes system calls on what was prepared before, allocates nothing, takes no lock, and ends without
    // running anything that the parent has registered for its own end.
    let child = match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => {
            let code = work().map_or_else(rustix::io::Errno::raw_os_error, |()| 0);
            // SAFETY: always sound; it does not return.
            unsafe { libc::_exit(code) }
        }
        child => rustix::process::Pid::from_raw(child),
    };
    let (_, status) = waitpid(child, WaitOptions::empty())?.ok_or(io::ErrorKind::NotFound)?;
    match status.exit_status() {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(code)),
        None => Err(io::Error::other("the process that tried it was killed")),
    }
}

/// Words for why there are no network namespaces, with the remedy that fits this machine.
pub(super) fn refusal(error: &io::Error) -> String {
    let setting = |path: &str| fs::read_to_string(format!("/proc/sys/{path}")).ok();
    format!("this process may not make network namespaces: {error}. {}", remedy(setting))
}

/// What to do, by the kernel's settings.
fn remedy(setting: impl Fn(&str) -> Option<String>) -> String {
    let settings = [
        ("kernel/unprivileged_userns_clone", "0", "1"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
        ("user/max_user_namespaces", "0", "10000"),
        ("user/max_net_namespaces", "0", "10000"),
    ];
    match settings.into_iter().find(|(path, bad, _)| setting(path).is_some_and(|value| value.trim() == *bad)) {
        Some((path, _, good)) => format!("Run as root, or allow it: `sysctl {}={good}`", path.replace('/', ".")),
        None => {
            "Run as root; in a container, give it the capabilities SYS_ADMIN and NET_ADMIN (`docker run --cap-add SYS_ADMIN --cap-add NET_ADMIN`)".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_fits_the_machine() {
        let with = |name: &'static str, value: &'static str| {
            remedy(move |path: &str| (path == name).then(|| format!("{value}\n")))
        };
        assert!(with("kernel/unprivileged_userns_clone", "0").contains("`sysctl kernel.unprivileged_userns_clone=1`"));
        assert!(with("user/max_net_namespaces", "0").contains("`sysctl user.max_net_namespaces=10000`"));
        let ubuntu = with("kernel/apparmor_restrict_unprivileged_userns", "1");
        assert!(ubuntu.contains("`sysctl kernel.apparmor_restrict_unprivileged_userns=0`"), "{ubuntu}");
        assert!(with("user/max_net_namespaces", "63000").contains("container"));
    }

    #[test]
    fn what_a_child_finds_out_is_told() {
        in_a_child(|| Ok(())).expect("nothing is wrong");
        let error = in_a_child(|| Err(rustix::io::Errno::NOSPC)).expect_err("as it says");
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    }
}
