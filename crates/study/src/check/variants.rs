//! Variants: a baseline to compare with, and changes to services that are there.

use unladen_journal::role::Role;

use super::super::guess::guess;
use super::super::key::KeyPath;
use super::super::planned::trace;
use super::super::problem::ProblemKind;
use super::super::spec::{BASELINE, Lifetime, Override, PLACEBO, TraceHeader, Variant};
use super::Check;

impl Check<'_> {
    pub(super) fn variants(&mut self) {
        let study = self.study;
        let root = KeyPath::of(&["variants"]);
        if !study.variants.contains_key(BASELINE) {
            let found = study.variants.keys().cloned().collect();
            self.say(root.clone(), ProblemKind::NoBaseline { found });
        } else if study.variants.len() == 1 && !study.placebo {
            self.say(root.clone(), ProblemKind::NothingToCompare);
        }
        for (name, variant) in &study.variants {
            let path = root.key(name);
            if name == PLACEBO {
                self.say(path.clone(), ProblemKind::ReservedVariant);
            } else {
                self.name(path.clone(), "a variant", name);
            }
            self.variant(&path, name, variant);
        }
    }

    /// Each step of a ladder is a variant, and adds to another one.
    pub(super) fn ladders(&mut self) {
        let study = self.study;
        for (name, steps) in study.ladder.each() {
            let mut path = KeyPath::of(&["ladder"]);
            if !name.is_empty() {
                path = path.key(name);
                self.name(path.clone(), "a ladder", name);
            }
            if steps.len() < 2 {
                self.say(path.clone(), ProblemKind::LadderTooShort);
            }
            for (index, step) in steps.iter().enumerate() {
                let path = path.item(index);
                if !study.variants.contains_key(step) {
                    let guess = guess(step, study.variants.keys().map(String::as_str));
                    self.say(path, ProblemKind::NoSuchVariant { name: step.clone(), guess });
                } else if steps[..index].contains(step) {
                    self.say(path, ProblemKind::StepTwice { name: step.clone() });
                }
            }
        }
    }

    fn variant(&mut self, path: &KeyPath, name: &str, variant: &Variant) {
        let services = &self.study.services;
        let mut subjects = services.values().filter(|service| service.role == Role::Subject).peekable();
        let is_reported = self.unknown_only();
        if !is_reported && subjects.peek().is_some() && !subjects.any(|service| service.runs_in(name)) {
            self.say(path.clone(), ProblemKind::NoSubjectHere);
        }
        if let Some(spans) = variant.spans_per_request {
            let fits = spans.is_finite() && spans >= 0.0;
            self.range(path.key("spans_per_request"), fits, "a number, at least 0", spans);
        }
        if let Some(sampled) = variant.sampled {
            self.range(path.key("sampled"), (0.0..=1.0).contains(&sampled.0), "from 0 % to 100 %", sampled);
            if sampled.0 > 0.0 && sampled.0 < 1.0 && trace(self.study, variant) == TraceHeader::Pinpoint {
                let (one, other) = ("sampled", "trace: pinpoint");
                let remedy = "Pinpoint's headers have no flag for each request; write `sampled: 0%`, or leave it out";
                self.say(path.key("sampled"), ProblemKind::Contradiction { one, other, remedy });
            }
        }
        self.agents_headers(path, variant);
        for (service, change) in &variant.services {
            let path = path.key("services").key(service);
            match services.get(service) {
                None => {
                    let guess = guess(service, services.keys().map(String::as_str));
                    self.say(path.clone(), ProblemKind::NoSuchService { name: service.clone(), guess });
                }
                // Subjects that live on, or run nowhere, are told of already.
                Some(declared) if declared.role == Role::Subject => {}
                Some(declared) if declared.lifetime == Lifetime::Study => {
                    self.say(path.clone(), ProblemKind::SharedService { service: service.clone() });
                }
                Some(declared) if !is_reported && !declared.runs_in(name) => {
                    let kind = ProblemKind::AbsentService { service: service.clone(), variant: name.to_owned() };
                    self.say(path.clone(), kind);
                }
                Some(_) => {}
            }
            let role = services.get(service).map(|declared| declared.role).unwrap_or_default();
            self.expected(&path.key("expect_log"), service, role, &change.expect_log);
            self.change(&path, change);
            if let (Some(agent), Some(declared)) = (&change.agent, services.get(service)) {
                self.agent(&path.key("agent"), agent, declared, change);
            }
        }
    }

    fn change(&mut self, path: &KeyPath, change: &Override) {
        if let Some(command) = &change.command {
            self.command(path.key("command"), command);
        }
        if let Some(build) = &change.build {
            self.command(path.key("build"), build);
        }
        self.volumes(&path.key("volumes"), &change.volumes);
        self.environment_names(&path.key("env"), change.env.keys());
        if let Some(ready) = &change.ready {
            self.ready(&path.key("ready"), ready);
        }
        if let Some(limits) = &change.limits {
            self.limits(&path.key("limits"), limits);
        }
    }
}
