//! Services: commands, readiness, limits, and who needs whom.

use unladen_journal::role::Role;

use super::super::guess::guess;
use super::super::key::KeyPath;
use super::super::metrics;
use super::super::order::start_order;
use super::super::problem::ProblemKind;
use super::super::scrape::MAPPABLE;
use super::super::spec::{Command, Lifetime, Limits, Ready, Scrape, Service, Texts};
use super::super::url::url_problem;
use super::super::variables::{Reference, expand};
use super::super::words;
use super::Check;

impl Check<'_> {
    pub(super) fn services(&mut self) {
        let services = &self.study.services;
        if !services.values().any(|service| service.role == Role::Subject) {
            self.say(KeyPath::of(&["services"]), ProblemKind::NoSubject);
        }
        for (name, service) in services {
            let path = KeyPath::of(&["services", name]);
            self.name(path.clone(), "a service", name);
            self.service(&path, name, service);
        }
        if let Err(circle) = start_order(services) {
            let names = circle.join(" → ");
            let path = KeyPath::of(&["services", &circle[0], "needs"]);
            let itself = circle.len() == 2;
            let kind = match circle.into_iter().next() {
                Some(service) if itself => ProblemKind::NeedsItself { service },
                _ => ProblemKind::Circle { circle: names },
            };
            self.say(path, kind);
        }
    }

    fn service(&mut self, path: &KeyPath, name: &str, service: &Service) {
        if service.role == Role::Subject && service.lifetime == Lifetime::Study {
            self.say(path.key("lifetime"), ProblemKind::SubjectLivesOn);
        }
        self.what_runs(path, name, service);
        if let Some(build) = &service.build {
            self.command(path.key("build"), build);
        }
        self.environment_names(&path.key("env"), service.env.keys());
        self.ready(&path.key("ready"), &service.ready);
        self.expected(&path.key("expect_log"), name, service.role, &service.expect_log);
        self.program(path, name, service);
        self.limits(&path.key("limits"), &service.limits);
        if let Some(url) = service.pprof.as_deref().and_then(|text| self.with_samples(text)) {
            self.plain_url(path.key("pprof"), &url);
        }
        if let Some(scrape) = &service.scrape {
            self.scrape(&path.key("scrape"), scrape);
        }
        self.range(path.key("replicas"), (1..=100).contains(&service.replicas), "from 1 to 100", service.replicas);
        for (position, needed) in service.needs.iter().enumerate() {
            self.need(path.key("needs").item(position), name, service, needed);
        }
        for (position, variant) in service.only.iter().enumerate() {
            if !self.study.variants.contains_key(variant) {
                let guess = guess(variant, self.study.variants.keys().map(String::as_str));
                let kind = ProblemKind::NoSuchVariant { name: variant.clone(), guess };
                self.say(path.key("only").item(position), kind);
            }
        }
    }

    /// A program, or a container.
    fn what_runs(&mut self, path: &KeyPath, name: &str, service: &Service) {
        let mut changes = self.study.variants.values().filter_map(|variant| variant.services.get(name));
        let is_container = service.image.is_some() || changes.any(|change| change.image.is_some());
        match (&service.image, service.command.is_absent()) {
            (Some(image), _) if image.trim().is_empty() => self.say(path.key("image"), ProblemKind::EmptyImage),
            (Some(_), true) => {}
            (None, true) if self.study.is_stacked(service) => {}
            (None, true) if service.workload.is_some() => {}
            (None, true) if self.study.on.kubernetes.is_some() => self.say(path.clone(), ProblemKind::NoWorkload),
            (None, true) => self.say(path.clone(), ProblemKind::NothingToRun),
            (_, false) => self.command(path.key("command"), &service.command),
        }
        if !is_container && !self.study.is_stacked(service) {
            let lacking = [("volumes", !service.volumes.is_empty()), ("user", service.user.is_some())];
            for (key, _) in lacking.into_iter().filter(|(_, is_given)| *is_given) {
                self.say(path.key(key), ProblemKind::Lacks { key, needed: "image" });
            }
        }
        self.volumes(&path.key("volumes"), &service.volumes);
    }

    /// Paths, so that nothing of one run is left for the next one unless the study says where.
    pub(super) fn volumes(&mut self, path: &KeyPath, volumes: &[String]) {
        for (position, volume) in volumes.iter().enumerate() {
            let Some(sample) = self.with_samples(volume) else { continue };
            let parts: Vec<&str> = sample.split(':').collect();
            let is_host = |part: &str| part.starts_with('/') || part.starts_with("./");
            let fits = match parts[..] {
                [own] => own.starts_with('/'),
                [host, inside] | [host, inside, _] => is_host(host) && inside.starts_with('/'),
                _ => false,
            };
            if !fits {
                self.say(path.item(position), ProblemKind::BadVolume { found: volume.clone() });
            }
        }
    }

    /// What is started when its turn has come, and runs to its end.
    fn program(&mut self, path: &KeyPath, name: &str, service: &Service) {
        let has_a_turn = matches!(service.role, Role::Check | Role::Setup);
        if has_a_turn && (service.lifetime == Lifetime::Study || service.replicas != 1) {
            let (service, role) = (name.to_owned(), service.role.name());
            let why = "runs once in every run; remove its `lifetime` and `replicas`";
            self.say(path.clone(), ProblemKind::Program { service, role, why });
        }
        let Some(time) = service.at_most else { return };
        self.longer_than_zero(path.key("at_most"), time);
        if !has_a_turn {
            self.say(path.key("at_most"), ProblemKind::AtMostOfWhom);
        }
    }

    /// What a service must say.
    pub(super) fn expected(&mut self, path: &KeyPath, name: &str, role: Role, patterns: &Texts) {
        if role.ends_by_itself() && !patterns.all().is_empty() {
            self.say(path.clone(), ProblemKind::ExpectOfWhom { service: name.to_owned() });
        }
        for (position, pattern) in patterns.all().iter().enumerate() {
            let path = if matches!(patterns, Texts::One(_)) { path.clone() } else { path.item(position) };
            self.regex(&path, pattern);
        }
    }

    /// Whether some service's `only` names a variant that isn't there, so that where services run isn't known.
    pub(super) fn unknown_only(&self) -> bool {
        let mut only = self.study.services.values().flat_map(|service| &service.only);
        only.any(|name| !self.study.variants.contains_key(name))
    }

    fn need(&mut self, path: KeyPath, name: &str, service: &Service, needed: &str) {
        let services = &self.study.services;
        let Some(other) = services.get(needed) else {
            let guess = guess(needed, services.keys().map(String::as_str).filter(|known| *known != name));
            return self.say(path, ProblemKind::NoSuchService { name: needed.to_owned(), guess });
        };
        let (owner, needed) = (name.to_owned(), needed.to_owned());
        if other.role.ends_by_itself() && !service.role.ends_by_itself() {
            return self.say(path, ProblemKind::NeedsProgram { service: owner, needed, role: other.role.name() });
        }
        if service.lifetime == Lifetime::Study && other.lifetime == Lifetime::Run {
            return self.say(path, ProblemKind::NeedsShorterLife { service: owner, needed });
        }
        if self.unknown_only() {
            return;
        }
        let lacking = self.study.variants.keys().find(|variant| service.runs_in(variant) && !other.runs_in(variant));
        if let Some(variant) = lacking {
            self.say(path, ProblemKind::NeedsAbsent { service: owner, needed, variant: variant.clone() });
        }
    }

    pub(super) fn command(&mut self, path: KeyPath, command: &Command) {
        match command {
            Command::Line(line) => {
                if let Err(error) = words::split(line) {
                    self.say(path, error);
                }
            }
            Command::Words(list) if list.first().is_none_or(String::is_empty) => {
                self.say(path, words::WordsError::Empty);
            }
            Command::Words(_) => {}
        }
    }

    pub(super) fn environment_names<'n>(&mut self, path: &KeyPath, names: impl Iterator<Item = &'n String>) {
        for name in names {
            if name.is_empty() || name.contains(['=', '\0']) {
                self.say(path.key(name), ProblemKind::BadEnvironmentName { name: name.clone() });
            }
        }
    }

    pub(super) fn ready(&mut self, path: &KeyPath, ready: &Ready) {
        self.longer_than_zero(path.key("timeout"), ready.timeout);
        if let Some(url) = ready.http.as_deref().and_then(|text| self.with_samples(text))
            && let Some(kind) = url_problem(&url, |_| true)
        {
            self.say(path.key("http"), kind);
        }
        if let Some(address) = ready.tcp.as_deref().and_then(|text| self.with_samples(text)) {
            let port =
                address.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port.parse::<u16>());
            if !matches!(port, Some(Ok(1..))) {
                self.say(path.key("tcp"), ProblemKind::BadTcp { found: address });
            }
        }
        if ready.log.as_deref() == Some("") {
            self.say(path.key("log"), ProblemKind::EmptyLog);
        }
    }

    /// A URL at which a service is asked something by unladen itself.
    fn plain_url(&mut self, path: KeyPath, url: &str) {
        let kind = url_problem(url, |_| true).or_else(|| {
            let why = "a service is asked over plain `http://`";
            (!url.starts_with("http://")).then(|| ProblemKind::BadUrl { found: url.to_owned(), why })
        });
        if let Some(kind) = kind {
            self.say(path, kind);
        }
    }

    fn scrape(&mut self, path: &KeyPath, scrape: &Scrape) {
        self.longer_than_zero(path.key("every"), scrape.every);
        if let Some(url) = self.with_samples(&scrape.url) {
            self.plain_url(path.key("url"), &url);
        }
        if scrape.keep.is_empty() {
            self.say(path.key("keep"), ProblemKind::KeepsNothing);
        }
        for (name, keep) in &scrape.keep {
            let path = path.key("keep").key(name);
            let of_exposition = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
            if name.is_empty() || !name.chars().all(of_exposition) {
                self.say(path.clone(), ProblemKind::BadExpositionName { name: name.clone() });
            }
            let metric = keep.metric(name);
            if !MAPPABLE.contains(&metric) && metrics::find(metric).is_some() {
                let metric = metric.to_owned();
                self.say(path.key("as"), ProblemKind::NotMappable { metric, known: MAPPABLE.join("`, `") });
            }
        }
    }

    pub(super) fn limits(&mut self, path: &KeyPath, limits: &Limits) {
        if let Some(cpus) = limits.cpus {
            self.range(path.key("cpus"), cpus.is_finite() && cpus > 0.0, "more than 0", cpus);
        }
        if let Some(memory) = limits.memory {
            self.range(path.key("memory"), memory.0 > 0, "more than 0", memory);
        }
        if let Some(cores) = &limits.cpuset
            && !limits.on_all_cores()
            && !is_cpuset(cores)
        {
            self.say(path.key("cpuset"), ProblemKind::BadCpuset { found: cores.clone() });
        }
    }

    /// The text with something in place of every `${…}`, to look at its form; `None` if that can only be known when the
    /// study is run (the environment), or if a reference is wrong, which is told elsewhere.
    pub(super) fn with_samples(&self, text: &str) -> Option<String> {
        let sample = expand(text, &self.study.variables, |reference| match reference {
            Reference::Port { .. } | Reference::Replica => Some("1".to_owned()),
            Reference::Sink { part, .. } => Some(part.of("127.0.0.1:1").to_owned()),
            Reference::StudyDir | Reference::RunDir | Reference::Unladen => Some("/x".to_owned()),
            Reference::Variable(_) | Reference::Environment { .. } => None,
        });
        sample.ok().filter(|text| !text.contains("${")).map(|text| text.replace("$$", "$"))
    }
}

/// A Linux list of cores: `0-1,3`.
fn is_cpuset(text: &str) -> bool {
    let core = |text: &str| -> Option<u32> {
        let digits = !text.is_empty() && text.len() <= 4 && text.chars().all(|c| c.is_ascii_digit());
        digits.then(|| text.parse().ok())?
    };
    text.split(',').all(|part| match part.split_once('-') {
        Some((first, last)) => matches!((core(first), core(last)), (Some(first), Some(last)) if first <= last),
        None => core(part).is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::is_cpuset;

    #[test]
    fn lists_of_cores() {
        for text in ["0", "0-1", "0-1,3", "5,7-9"] {
            assert!(is_cpuset(text), "{text}");
        }
        for text in ["", "a", "1-", "3-1", "0,,1", "0;1", "-1", "99999", "0 - 1"] {
            assert!(!is_cpuset(text), "{text}");
        }
    }
}
