//! `${…}`: known, defined, and known at the place where it stands.

use std::collections::BTreeSet;

use unladen_journal::admitted::each_text;

use super::super::guess::{Guess, guess};
use super::super::key::KeyPath;
use super::super::problem::ProblemKind;
use super::super::spec::{Command, Lifetime, Ready};
use super::super::variables::{ONLY_IN_A_SERVICE, Reference, VariableError, expand, names};
use super::Check;

/// What is known at a place.
#[derive(Clone, Copy)]
struct Known {
    /// Why `${replica}` isn't, if so.
    no_replica: Option<&'static str>,
    /// Why `${run.dir}` isn't, if so.
    no_run: Option<&'static str>,
    /// What a `${port.…}` means there.
    port: Port,
}

/// What a `${port.…}` means at a place.
#[derive(Clone, Copy)]
enum Port {
    /// A service is told of it, and can listen there.
    Provided,
    /// Somebody is to listen there.
    Expected,
    /// Nothing by itself.
    Neither,
}

const VARIABLE: Known = Known { no_replica: None, no_run: None, port: Port::Neither };
const SERVICE: Known = Known { no_replica: None, no_run: None, port: Port::Provided };
const SHARED: Known = Known {
    no_replica: None,
    no_run: Some("it is the folder of a run, and this service lives through all of them"),
    port: Port::Provided,
};
const BUILD: Known = Known {
    no_replica: Some("it numbers the replicas of a service, which is built once for all of them"),
    no_run: Some("it is the folder of a run, and services are built before the first"),
    port: Port::Provided,
};
const WHEN: Known = Known {
    no_replica: Some(ONLY_IN_A_SERVICE),
    no_run: Some("it is the folder of a run, and who takes part is settled before the first"),
    port: Port::Neither,
};
const LOAD: Known = Known { no_replica: Some(ONLY_IN_A_SERVICE), no_run: None, port: Port::Expected };

const REACH: Known = Known {
    no_replica: Some(ONLY_IN_A_SERVICE),
    no_run: Some("it is the folder of a run, and all runs reach the same"),
    port: Port::Expected,
};

/// The ports that a study speaks of.
#[derive(Default)]
pub(super) struct Ports {
    provided: BTreeSet<String>,
    expected: Vec<(KeyPath, String)>,
}

impl Check<'_> {
    pub(super) fn references(&mut self) {
        let study = self.study;
        let problems_before = self.problems.len();
        for (name, value) in &study.variables {
            // Where a variable is used decides what may stand in it; here it must only be whole.
            let before = self.problems.len();
            self.text(KeyPath::of(&["variables", name]), value, VARIABLE);
            if self.problems.len() > before {
                self.faulty.push(name.clone());
            }
        }
        for (name, service) in &study.services {
            let path = KeyPath::of(&["services", name]);
            let known = if service.lifetime == Lifetime::Run { SERVICE } else { SHARED };
            self.optional(path.key("when"), service.when.as_ref(), WHEN);
            self.command_texts(&path.key("command"), &service.command, known);
            self.optional(path.key("image"), service.image.as_ref(), known);
            self.texts(&path.key("volumes"), service.volumes.iter(), known);
            self.optional(path.key("user"), service.user.as_ref(), known);
            self.texts(&path.key("args"), service.args.iter(), known);
            self.named_texts(&path.key("env"), service.env.iter(), known);
            self.optional(path.key("cwd"), service.cwd.as_ref(), known);
            self.ready_texts(&path.key("ready"), &service.ready, known);
            self.optional(path.key("pprof"), service.pprof.as_ref(), Known { port: Port::Expected, ..known });
            if let Some(scrape) = &service.scrape {
                self.text(path.key("scrape").key("url"), &scrape.url, Known { port: Port::Expected, ..known });
            }
            if let Some(build) = &service.build {
                self.command_texts(&path.key("build"), build, BUILD);
            }
        }
        for (name, variant) in &study.variants {
            self.optional(KeyPath::of(&["variants", name, "when"]), variant.when.as_ref(), WHEN);
            for (service, change) in &variant.services {
                let path = KeyPath::of(&["variants", name, "services", service]);
                let known = SERVICE;
                self.optional(path.key("agent"), change.agent.as_ref().and_then(|agent| agent.path.as_ref()), known);
                if let Some(command) = &change.command {
                    self.command_texts(&path.key("command"), command, known);
                }
                self.optional(path.key("image"), change.image.as_ref(), known);
                self.texts(&path.key("volumes"), change.volumes.iter(), known);
                self.texts(&path.key("args"), change.args.iter(), known);
                self.named_texts(&path.key("env"), change.env.iter(), known);
                self.named_texts(&path.key("labels"), change.labels.iter(), known);
                self.named_texts(&path.key("annotations"), change.annotations.iter(), known);
                for (key, value) in change.patch.iter().flatten() {
                    each_text(value, &mut |text| self.text(path.key("patch").key(key), text, known));
                }
                self.optional(path.key("cwd"), change.cwd.as_ref(), known);
                if let Some(ready) = &change.ready {
                    self.ready_texts(&path.key("ready"), ready, known);
                }
                if let Some(build) = &change.build {
                    self.command_texts(&path.key("build"), build, BUILD);
                }
            }
        }
        for (path, text) in study.load.texts() {
            self.text(path, text, LOAD);
        }
        self.texts(&KeyPath::of(&["reach"]), study.reach.iter(), REACH);
        // A reference that is wrong may be the one that was to tell of the port.
        if self.problems.len() == problems_before {
            self.ports_of_nobody();
        }
    }

    /// A text of which only the references remain to be looked at, where somebody is to listen.
    pub(super) fn expect_port(&mut self, path: KeyPath, text: &str) {
        self.text(path, text, LOAD);
    }

    /// Ports that something asks for and that no service knows of: a slip, since the number is nowhere else.
    fn ports_of_nobody(&mut self) {
        let Ports { mut provided, expected } = std::mem::take(&mut self.ports);
        for (path, name) in expected {
            if provided.contains(&name) {
                continue;
            }
            let advice = match guess(&name, provided.iter().map(String::as_str)) {
                Guess::Near(near) => format!(", did you mean `${{port.{near}}}`?"),
                _ => format!("; give it to one, as in `command: app --port ${{port.{name}}}`"),
            };
            // Once is enough.
            provided.insert(name.clone());
            self.say(path, ProblemKind::PortOfNobody { name, advice });
        }
    }

    fn command_texts(&mut self, path: &KeyPath, command: &Command, known: Known) {
        match command {
            Command::Line(line) => self.text(path.clone(), line, known),
            Command::Words(words) => self.texts(path, words.iter(), known),
        }
    }

    fn ready_texts(&mut self, path: &KeyPath, ready: &Ready, known: Known) {
        let known = Known { port: Port::Expected, ..known };
        self.optional(path.key("http"), ready.http.as_ref(), known);
        self.optional(path.key("tcp"), ready.tcp.as_ref(), known);
        self.optional(path.key("log"), ready.log.as_ref(), known);
    }

    fn texts<'t>(&mut self, path: &KeyPath, texts: impl Iterator<Item = &'t String>, known: Known) {
        for (position, text) in texts.enumerate() {
            self.text(path.item(position), text, known);
        }
    }

    fn named_texts<'t>(&mut self, path: &KeyPath, texts: impl Iterator<Item = (&'t String, &'t String)>, known: Known) {
        for (name, text) in texts {
            self.text(path.key(name), text, known);
        }
    }

    fn optional(&mut self, path: KeyPath, text: Option<&String>, known: Known) {
        if let Some(text) = text {
            self.text(path, text, known);
        }
    }

    fn text(&mut self, path: KeyPath, text: &str, known: Known) {
        if text.contains('\0') {
            self.say(path.clone(), ProblemKind::ZeroByte);
        }
        match self.reference_problem(text, known) {
            Err(error) => self.say(path, error),
            Ok(ports) => match known.port {
                Port::Provided => self.ports.provided.extend(ports),
                Port::Expected => self.ports.expected.extend(ports.into_iter().map(|name| (path.clone(), name))),
                Port::Neither => {}
            },
        }
    }

    /// What is wrong with the references of a text; the names of its ports if nothing is.
    fn reference_problem(&self, text: &str, known: Known) -> Result<Vec<String>, VariableError> {
        // A variable that is wrong has been told of where it stands.
        let is_faulty =
            |reference: &Reference| matches!(reference, Reference::Variable(name) if self.faulty.contains(name));
        if names(text)?.iter().any(is_faulty) {
            return Ok(Vec::new());
        }
        let mut ports = Vec::new();
        for reference in names(&expand(text, &self.study.variables, |_| None)?)? {
            let unavailable = |why| VariableError::Unavailable { name: reference.to_string(), why };
            match &reference {
                Reference::Replica => known.no_replica.map_or(Ok(()), |why| Err(unavailable(why)))?,
                Reference::RunDir => known.no_run.map_or(Ok(()), |why| Err(unavailable(why)))?,
                Reference::Port { name, replica } => {
                    let replicas = self.study.services.get(name).map(|service| service.replicas);
                    if let (Some(replica), Some(replicas)) = (*replica, replicas)
                        && replica >= replicas
                    {
                        return Err(VariableError::NoSuchReplica { service: name.clone(), replica, replicas });
                    }
                    ports.push(name.clone());
                }
                _ => {}
            }
        }
        Ok(ports)
    }
}
