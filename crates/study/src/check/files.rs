//! What the files of another tool say of a service, Compose's or a cluster's: the study cannot say it again.

use super::super::key::KeyPath;
use super::super::problem::ProblemKind;
use super::super::spec::{Lifetime, Override, Service};
use super::Check;

/// A key, and whether the study has it.
pub(super) type Given = (&'static str, bool);

/// Keys of a service.
pub(super) fn of_service(service: &Service) -> [Given; 8] {
    [
        ("args", !service.args.is_empty()),
        ("volumes", !service.volumes.is_empty()),
        ("user", service.user.is_some()),
        ("cwd", service.cwd.is_some()),
        ("build", service.build.is_some()),
        ("needs", !service.needs.is_empty()),
        ("lifetime", service.lifetime == Lifetime::Study),
        ("role", service.role.ends_by_itself()),
    ]
}

/// Keys of what a variant changes in it.
pub(super) fn of_change(change: &Override) -> [Given; 4] {
    [
        ("args", !change.args.is_empty()),
        ("volumes", !change.volumes.is_empty()),
        ("cwd", change.cwd.is_some()),
        ("build", change.build.is_some()),
    ]
}

impl Check<'_> {
    /// A problem for each key that is given.
    pub(super) fn in_files(
        &mut self,
        path: &KeyPath,
        keys: impl IntoIterator<Item = Given>,
        problem: impl Fn(&'static str) -> ProblemKind,
    ) {
        for (key, _) in keys.into_iter().filter(|(_, is_given)| *is_given) {
            self.say(path.key(key), problem(key));
        }
    }
}
