//! What a study says about spans: faults that mean something, one way to ask for each number, patterns that can be read.

use regex::Regex;
use unladen_journal::role::Role;
use unladen_journal::units::Ratio;
use unladen_prometheus::Selector;

use super::super::guess::guess;
use super::super::key::KeyPath;
use super::super::problem::ProblemKind;
use super::super::spec::{Count, Delay, Faults, Lifetime, Loss, Service};
use super::super::url::url_problem;
use super::Check;

impl Check<'_> {
    pub(super) fn spans(&mut self) {
        let study = self.study;
        if let Some(faults) = &study.sink.faults {
            self.faults(&KeyPath::of(&["sink", "faults"]), faults);
        }
        let calibration = &study.calibration;
        let path = KeyPath::of(&["calibration"]);
        let requests = calibration.requests;
        self.range(path.key("requests"), requests <= 100_000, "at most 100000", requests);
        let rate = calibration.rate;
        let fits = rate.is_finite() && rate > 0.0 && rate <= 10_000.0;
        self.range(path.key("rate"), fits, "more than 0 requests per second and at most 10000", rate);
        for (name, service) in &study.services {
            if let Some(count) = &service.count {
                self.count(&KeyPath::of(&["services", name, "count"]), service, count);
            }
        }
        for (name, variant) in &study.variants {
            let path = KeyPath::of(&["variants", name]);
            if let Some(faults) = &variant.faults {
                self.faults(&path.key("faults"), faults);
            }
            for (stage, loss) in &variant.losses {
                let path = path.key("losses").key(stage);
                self.name(path.clone(), "a stage", stage);
                self.loss(&path, loss);
            }
            self.storages(&path, name);
        }
    }

    fn faults(&mut self, path: &KeyPath, faults: &Faults) {
        self.share(path.key("drop"), faults.drop);
        if let Some(refuse) = &faults.refuse {
            let path = path.key("refuse");
            self.range(path.key("http"), (400..=599).contains(&refuse.http), "from 400 to 599", refuse.http);
            self.range(path.key("grpc"), (1..=16).contains(&refuse.grpc), "from 1 to 16", refuse.grpc);
            self.share(path.key("share"), refuse.share);
        }
        if let Some(limit) = faults.close_after {
            self.range(path.key("close_after"), limit > 0, "at least 1", limit);
        }
        if let Some(Delay::Fixed(time) | Delay::Uniform(_, time) | Delay::Exponential(time)) = faults.delay {
            self.longer_than_zero(path.key("delay"), time);
        }
        if let Some(flapping) = &faults.flapping {
            let path = path.key("flapping");
            self.longer_than_zero(path.key("good"), flapping.good);
            self.longer_than_zero(path.key("bad"), flapping.bad);
        }
    }

    fn share(&mut self, path: KeyPath, share: Ratio) {
        self.range(path, (0.0..=1.0).contains(&share.0), "from 0 % to 100 %", share);
    }

    fn loss(&mut self, path: &KeyPath, loss: &Loss) {
        let Loss { service, log, prometheus, metric, each, .. } = loss;
        if log.is_some() == prometheus.is_some() {
            self.say(path.clone(), ProblemKind::LogOrPrometheus);
        }
        if let Some(pattern) = log {
            self.pattern(path.key("log"), pattern);
        }
        self.metric(path, prometheus.as_ref(), metric.as_ref());
        self.each(path, *each);
        let Some(name) = service else { return };
        match self.study.services.get(name) {
            None => {
                let guess = guess(name, self.study.services.keys().map(String::as_str));
                self.say(path.key("service"), ProblemKind::NoSuchService { name: name.clone(), guess });
            }
            Some(declared) if declared.lifetime == Lifetime::Study => {
                self.say(path.key("service"), ProblemKind::LogOfManyRuns { service: name.clone() });
            }
            Some(_) => {}
        }
    }

    /// The pattern of lines with a number.
    fn pattern(&mut self, path: KeyPath, pattern: &str) {
        let groups = self.regex(&path, pattern).map_or(1, |regex| regex.captures_len());
        if groups > 2 {
            self.say(path, ProblemKind::ManyGroups { groups: groups - 1 });
        }
    }

    /// A pattern that is one, and is not in every line.
    pub(super) fn regex(&mut self, path: &KeyPath, pattern: &str) -> Option<Regex> {
        match Regex::new(pattern) {
            Err(error) => {
                // The last line says what is wrong, those before it point there.
                let message = error.to_string().lines().last().unwrap_or_default().trim().to_owned();
                let message = message.trim_start_matches("error: ").to_owned();
                self.say(path.clone(), ProblemKind::BadPattern { message });
                None
            }
            Ok(regex) if regex.is_match("") => {
                self.say(path.clone(), ProblemKind::PatternOfNothing);
                None
            }
            Ok(regex) => Some(regex),
        }
    }

    fn count(&mut self, path: &KeyPath, service: &Service, count: &Count) {
        if !matches!(service.role, Role::Collector | Role::Storage) {
            self.say(path.clone(), ProblemKind::CountOfWhom);
        }
        let Count { http, body, pointer, prometheus, metric, each } = count;
        if http.is_some() == prometheus.is_some() {
            self.say(path.clone(), ProblemKind::HttpOrPrometheus);
        } else if http.is_some() == pointer.is_none() || (body.is_some() && http.is_none()) {
            self.say(path.clone(), ProblemKind::HttpAndPointer);
        }
        if let Some(pointer) = pointer.as_ref().filter(|pointer| !pointer.is_empty() && !pointer.starts_with('/')) {
            self.say(path.key("pointer"), ProblemKind::BadPointer { found: pointer.clone() });
        }
        if let Some(url) = http {
            self.query_url(path.key("http"), url);
        }
        self.metric(path, prometheus.as_ref(), metric.as_ref());
        self.each(path, *each);
    }

    fn metric(&mut self, path: &KeyPath, prometheus: Option<&String>, metric: Option<&String>) {
        if prometheus.is_some() != metric.is_some() {
            self.say(path.clone(), ProblemKind::PrometheusAndMetric);
        }
        if let Some(url) = prometheus {
            self.query_url(path.key("prometheus"), url);
        }
        if let Some(Err(error)) = metric.map(|metric| metric.parse::<Selector>()) {
            self.say(path.key("metric"), ProblemKind::BadMetric { message: error.to_string() });
        }
    }

    fn query_url(&mut self, path: KeyPath, url: &str) {
        if let Some(url) = self.with_samples(url)
            && let Some(kind) = url_problem(&url, |host| self.study.may_reach(host))
        {
            self.say(path.clone(), kind);
        }
        self.expect_port(path, url);
    }

    fn each(&mut self, path: &KeyPath, each: f64) {
        self.range(path.key("each"), each.is_finite() && each > 0.0, "more than 0", each);
    }

    /// Spans cannot be said to have arrived in two places.
    fn storages(&mut self, path: &KeyPath, name: &str) {
        let counted =
            self.study.services.iter().filter(|(_, service)| {
                service.role == Role::Storage && service.count.is_some() && service.runs_in(name)
            });
        let names: Vec<String> = counted.map(|(name, _)| format!("`{name}`")).collect();
        if names.len() > 1 {
            self.say(path.clone(), ProblemKind::TwoStorages { names: names.join(" and ") });
        }
    }
}
