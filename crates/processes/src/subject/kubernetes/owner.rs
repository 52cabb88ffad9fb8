//! Whose an object of a cluster is, by its labels; and of a namespace the process that made it, on the machine where that runs. Whoever finds it
//! later can tell whether it is still in use.

use std::fs;
use std::str::FromStr;

use unladen_linux::process::Identity;

/// Who made an object, in a label that many tools know …
pub(super) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// … and its value.
pub(super) const UNLADEN: &str = "unladen";
/// Label of all that belongs to the Job of a study.
pub(super) const JOB: &str = "unladen.job";
/// Annotation of the namespaces of a study: [`Owner`].
pub(super) const OWNER: &str = "unladen.owner";

/// A process, wherever it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    /// Of the machine, since its start.
    boot: String,
    /// The process namespace that its number is of.
    namespace: String,
    process: Identity,
}

/// What is known of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Alive,
    Gone,
    /// It is on a machine that cannot be looked at from here.
    Elsewhere,
}

/// What tells this machine's start from all others.
pub(super) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Where this process is: boot id and process namespace.
fn here() -> (String, String) {
    (boot_id(), fs::read_link("/proc/self/ns/pid").unwrap_or_default().display().to_string())
}

impl Owner {
    pub(super) fn of_this_process() -> Self {
        let (boot, namespace) = here();
        let pid = std::process::id();
        Self { boot, namespace, process: Identity::of(pid).unwrap_or(Identity { pid, start_ticks: 0 }) }
    }

    /// `boots`: those of the nodes of the cluster.
    pub(super) fn state(&self, boots: &[&str]) -> State {
        let (boot, namespace) = here();
        if (&boot, &namespace) == (&self.boot, &self.namespace) {
            return if self.process.is_alive() { State::Alive } else { State::Gone };
        }
        // unladen runs on a node: one that was started again, or is no longer there, has ended it.
        if boot != self.boot && !boots.contains(&self.boot.as_str()) { State::Gone } else { State::Elsewhere }
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {} {}", self.boot, self.namespace, self.process.pid, self.process.start_ticks)
    }
}

impl FromStr for Owner {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let [boot, namespace, pid, ticks] = text.split(' ').collect::<Vec<_>>()[..] else { return Err(()) };
        let (pid, start_ticks) = (pid.parse().map_err(drop)?, ticks.parse().map_err(drop)?);
        let (boot, namespace) = (boot.to_owned(), namespace.to_owned());
        Ok(Self { boot, namespace, process: Identity { pid, start_ticks } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_alive_gone_or_out_of_sight() {
        let me = Owner::of_this_process();
        assert_eq!(me.to_string().parse(), Ok(me.clone()));
        assert_eq!(me.state(&[]), State::Alive);
        let start_ticks = me.process.start_ticks + 1;
        let earlier = Owner { process: Identity { start_ticks, ..me.process }, ..me.clone() };
        assert_eq!(earlier.state(&[]), State::Gone, "its number is somebody else's by now");
        let elsewhere = Owner { boot: "b".to_owned(), ..me.clone() };
        assert_eq!(elsewhere.state(&["b"]), State::Elsewhere);
        assert_eq!(elsewhere.state(&["c"]), State::Gone, "the node was started again");
        let within = Owner { namespace: "pid:[1]".to_owned(), ..me };
        assert_eq!(within.state(&[]), State::Elsewhere, "numbers of another namespace say nothing here");
        assert_eq!("b pid:[1] 7".parse::<Owner>(), Err(()));
    }
}
