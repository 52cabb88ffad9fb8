//! Agents: known, with what they need, and of a command that they can be put into.

use super::super::agents::{Needs, find, guess_name};
use super::super::key::KeyPath;
use super::super::problem::ProblemKind;
use super::super::spec::{Agent, Override, Service, TraceHeader, Variant};
use super::super::variables::expand;
use super::super::words;
use super::Check;
use crate::spec::Command;

impl Check<'_> {
    pub(super) fn agent(&mut self, path: &KeyPath, agent: &Agent, service: &Service, change: &Override) {
        let Some(preset) = find(&agent.name) else {
            let kind = ProblemKind::UnknownAgent { name: agent.name.clone(), guess: guess_name(&agent.name) };
            return self.say(path.clone(), kind);
        };
        let name = preset.name.as_str();
        let has_own_program = change.command.is_some() || change.build.is_some();
        match (preset.needs, agent.path.as_deref()) {
            (Needs::Package, Some(_)) => self.say(path.clone(), ProblemKind::AgentWithoutPath { agent: name }),
            (Needs::Package, None) => {}
            (Needs::Build, None) if has_own_program => {}
            (needs, None | Some("")) => {
                let kind = ProblemKind::AgentLacks { agent: name, what: needs.name(), install: &preset.install };
                self.say(path.clone(), kind);
            }
            (Needs::Jar | Needs::Folder | Needs::Build, Some(_)) => {}
        }
        let is_stacked = service.says_nothing_to_run() && change.command.is_none();
        if service.image.is_some() || change.image.is_some() || is_stacked {
            return self.say(path.clone(), ProblemKind::AgentInContainer { agent: name });
        }
        let Some(words) = self.words(change.command.as_ref().unwrap_or(&service.command)) else { return };
        if let Err(error) = preset.put(Vec::new(), None, words) {
            self.say(path.clone(), ProblemKind::of_agent(preset, error));
        }
    }

    /// The load sends one header.
    pub(super) fn agents_headers(&mut self, path: &KeyPath, variant: &Variant) {
        let mut agents = variant.agents();
        let (None, Some(one)) = (variant.trace, agents.next()) else { return };
        if self.study.load.trace == TraceHeader::W3c
            && let Some(other) = agents.find(|other| other.trace != one.trace)
        {
            let header = serde_json::to_value(one.trace).ok().and_then(|it| it.as_str().map(str::to_owned));
            let header = header.unwrap_or_default();
            self.say(path.clone(), ProblemKind::AgentHeaders { one: &one.name, other: &other.name, header });
        }
    }

    /// The words of a command, as far as they are known; `None`: something else is wrong with it.
    fn words(&self, command: &Command) -> Option<Vec<String>> {
        let fill = |word: &str| expand(word, &self.study.variables, |_| None);
        match command {
            Command::Line(line) => words::split(line).ok()?.iter().map(|word| fill(word).ok()).collect(),
            Command::Words(words) => words.iter().map(|word| fill(word).ok()).collect(),
        }
    }
}
