//! `${…}`: known, defined, and known at the place where it stands.

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
}

const ALL: Known = Known { no_replica: None, no_run: None };
const LOAD: Known = Known { no_replica: Some(ONLY_IN_A_SERVICE), no_run: None };
const SHARED: Known = Known { no_replica: None, no_run: Some("it is the folder of a run, and this service lives through all of them") };
const BUILD: Known = Known {
    no_replica: Some("it numbers the replicas of a service, which is built once for all of them"),
    no_run: Some("it is the folder of a run, and services are built before the first"),
};

impl Check<'_> {
    pub(super) fn references(&mut self) {
        let study = self.study;
        for (name, value) in &study.variables {
            // Where a variable is used decides what may stand in it; here it must only be whole.
            let before = self.problems.len();
            self.text(KeyPath::of(&["variables", name]), value, ALL);
            if self.problems.len() > before {
                self.faulty.push(name.clone());
            }
        }
        for (name, service) in &study.services {
            let path = KeyPath::of(&["services", name]);
            let known = if service.lifetime == Lifetime::Run { ALL } else { SHARED };
            self.command_texts(&path.key("command"), &service.command, known);
            self.texts(&path.key("args"), service.args.iter(), known);
            self.named_texts(&path.key("env"), service.env.iter(), known);
            self.optional(path.key("cwd"), service.cwd.as_ref(), known);
            self.ready_texts(&path.key("ready"), &service.ready, known);
            if let Some(build) = &service.build {
                self.command_texts(&path.key("build"), build, BUILD);
            }
        }
        for (name, variant) in &study.variants {
            for (service, change) in &variant.services {
                let path = KeyPath::of(&["variants", name, "services", service]);
                let known = ALL;
                if let Some(command) = &change.command {
                    self.command_texts(&path.key("command"), command, known);
                }
                self.texts(&path.key("args"), change.args.iter(), known);
                self.named_texts(&path.key("env"), change.env.iter(), known);
                self.optional(path.key("cwd"), change.cwd.as_ref(), known);
                if let Some(ready) = &change.ready {
                    self.ready_texts(&path.key("ready"), ready, known);
                }
                if let Some(build) = &change.build {
                    self.command_texts(&path.key("build"), build, BUILD);
                }
            }
        }
        let path = KeyPath::of(&["load"]);
        self.text(path.key("url"), &study.load.url, LOAD);
        self.named_texts(&path.key("headers"), study.load.headers.iter(), LOAD);
        self.optional(path.key("body"), study.load.body.as_ref(), LOAD);
    }

    fn command_texts(&mut self, path: &KeyPath, command: &Command, known: Known) {
        match command {
            Command::Line(line) => self.text(path.clone(), line, known),
            Command::Words(words) => self.texts(path, words.iter(), known),
        }
    }

    fn ready_texts(&mut self, path: &KeyPath, ready: &Ready, known: Known) {
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
        if let Err(error) = self.reference_problem(text, known) {
            self.say(path, error);
        }
    }

    fn reference_problem(&self, text: &str, known: Known) -> Result<(), VariableError> {
        // A variable that is wrong has been told of where it stands.
        let is_faulty = |reference: &Reference| matches!(reference, Reference::Variable(name) if self.faulty.contains(name));
        if names(text)?.iter().any(is_faulty) {
            return Ok(());
        }
        for reference in names(&expand(text, &self.study.variables, |_| None)?)? {
            let unavailable = |why| VariableError::Unavailable { name: reference.to_string(), why };
            match &reference {
                Reference::Replica => known.no_replica.map_or(Ok(()), |why| Err(unavailable(why)))?,
                Reference::RunDir => known.no_run.map_or(Ok(()), |why| Err(unavailable(why)))?,
                Reference::Port { name, replica: Some(replica) } => {
                    let replicas = self.study.services.get(name).map(|service| service.replicas);
                    if let Some(replicas) = replicas.filter(|replicas| replica >= replicas) {
                        let (service, replica) = (name.clone(), *replica);
                        return Err(VariableError::NoSuchReplica { service, replica, replicas });
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}
