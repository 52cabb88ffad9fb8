//! Compose files, and what a study can say of their services.

use super::super::key::KeyPath;
use super::super::problem::ProblemKind;
use super::super::spec::{Network, Override, Service};
use super::{Check, files};

impl Check<'_> {
    pub(super) fn compose(&mut self) {
        let study = self.study;
        let path = KeyPath::of(&["on", "compose"]);
        let Some(compose) = &study.on.compose else {
            for (name, variant) in &study.variants {
                self.needs(&KeyPath::of(&["variants", name]), !variant.compose.is_empty(), "compose", "on");
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
        self.in_files(path, files::of_service(service), |key| ProblemKind::InComposeFile { key });
    }

    fn composed_change(&mut self, path: &KeyPath, change: &Override) {
        let own = [("command", change.command.is_some()), ("image", change.image.is_some())];
        let keys = own.into_iter().chain(files::of_change(change));
        self.in_files(path, keys, |key| ProblemKind::InComposeFile { key });
    }
}
