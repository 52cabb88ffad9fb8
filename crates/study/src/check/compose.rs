//! Compose files, and what a study can say of their services.

use super::super::key::KeyPath;
use super::super::problem::ProblemKind;
use super::super::spec::{Lifetime, Network, Override, Service};
use super::Check;

impl Check<'_> {
    pub(super) fn compose(&mut self) {
        let study = self.study;
        let path = KeyPath::of(&["on", "compose"]);
        let Some(compose) = &study.on.compose else {
            for (name, variant) in &study.variants {
                if !variant.compose.is_empty() {
                    let path = KeyPath::of(&["variants", name, "compose"]);
                    self.say(path, ProblemKind::Lacks { key: "compose", needed: "on" });
                }
            }
            return;
        };
        let files = compose.project().files;
        let of_variants = study.variants.values().flat_map(|variant| &variant.compose);
        if files.is_empty() || files.iter().chain(of_variants).any(|file| file.trim().is_empty()) {
            self.say(path.clone(), ProblemKind::NoComposeFile);
        }
        if study.network == Some(Network::Own) {
            let remedy = "the engine makes the networks of a Compose project; remove `network`";
            self.say(path, ProblemKind::Contradiction { one: "network: own", other: "on.compose", remedy });
        }
        for (name, service) in study.services.iter().filter(|(_, service)| study.is_stacked(service)) {
            self.composed(&KeyPath::of(&["services", name]), service);
            for (variant, change) in &study.variants {
                if let Some(change) = change.services.get(name) {
                    self.composed_change(&KeyPath::of(&["variants", variant, "services", name]), change);
                }
            }
        }
    }

    /// What the file says of a service of its own, the study cannot.
    fn composed(&mut self, path: &KeyPath, service: &Service) {
        let lives_on = service.lifetime == Lifetime::Study;
        self.of_file(
            path,
            &[
                ("args", !service.args.is_empty()),
                ("volumes", !service.volumes.is_empty()),
                ("user", service.user.is_some()),
                ("cwd", service.cwd.is_some()),
                ("build", service.build.is_some()),
                ("needs", !service.needs.is_empty()),
                ("lifetime", lives_on),
                ("role", service.role.ends_by_itself()),
            ],
        );
    }

    fn composed_change(&mut self, path: &KeyPath, change: &Override) {
        self.of_file(
            path,
            &[
                ("command", change.command.is_some()),
                ("image", change.image.is_some()),
                ("args", !change.args.is_empty()),
                ("volumes", !change.volumes.is_empty()),
                ("cwd", change.cwd.is_some()),
                ("build", change.build.is_some()),
            ],
        );
    }

    fn of_file(&mut self, path: &KeyPath, given: &[(&'static str, bool)]) {
        for (key, _) in given.iter().filter(|(_, is_given)| *is_given) {
            self.say(path.key(key), ProblemKind::InComposeFile { key });
        }
    }
}
