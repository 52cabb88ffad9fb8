//! What a study must be beyond its types: names that exist, numbers in range, texts that mean something.
//!
//! Everything that is wrong is told at once. Pure: whether a program exists or a port is free shows when it is run.

mod agents;
mod compose;
mod files;
mod kubernetes;
mod load;
mod network;
mod references;
mod rounds;
mod script;
mod services;
mod spans;
mod variants;

use indexmap::IndexMap;
use unladen_journal::units::Time;
use unladen_stats::plan::TwoLooks;

use super::guess::{Guess, guess};
use super::key::KeyPath;
use super::matrix::MAX_VARIANTS;
use super::metrics;
use super::problem::{Problem, ProblemKind};
use super::schema;
use super::spec::script::Script;
use super::spec::{Load, OnUndecided, Study, TraceHeader};
use super::variables::{is_name, is_variable};

/// Everything that is wrong with a study, the cells of its matrix apart; empty if nothing is.
pub(super) fn check(study: &Study) -> Vec<Problem> {
    let mut check = Check { study, problems: Vec::new(), faulty: Vec::new(), ports: references::Ports::default() };
    check.whole();
    check.rounds();
    check.design();
    check.compose();
    check.kubernetes();
    check.services();
    check.variants();
    check.ladders();
    check.load();
    check.network();
    check.spans();
    check.by_metric(&KeyPath::of(&["budgets"]), &study.budgets);
    check.prices();
    check.references();
    check.matrix();
    check.problems
}

/// Everything that is wrong with a script that stands alone.
pub(super) fn script(script: &Script) -> Vec<Problem> {
    let study = Study::new("script", Load { trace: TraceHeader::None, ..Load::new("http://localhost/") });
    let mut check =
        Check { study: &study, problems: Vec::new(), faulty: Vec::new(), ports: references::Ports::default() };
    check.script(&KeyPath::default(), script);
    check.problems
}

/// The checks under way.
struct Check<'a> {
    study: &'a Study,
    problems: Vec<Problem>,
    /// Variables whose value is wrong: what uses them need not be told of too.
    faulty: Vec<String>,
    /// The ports that services are told of, and those that something asks for.
    ports: references::Ports,
}

impl Check<'_> {
    fn say(&mut self, path: KeyPath, kind: impl Into<ProblemKind>) {
        self.problems.push(Problem { path, place: None, kind: kind.into() });
    }

    fn name(&mut self, path: KeyPath, what: &'static str, name: &str) {
        if !is_name(name) || name.len() > 64 {
            self.say(path, ProblemKind::BadName { what, name: name.to_owned() });
        }
    }

    fn range(&mut self, path: KeyPath, fits: bool, range: &'static str, found: impl ToString) {
        if !fits {
            self.say(path, ProblemKind::OutOfRange { range, found: found.to_string() });
        }
    }

    fn longer_than_zero(&mut self, path: KeyPath, time: Time) {
        self.range(path, !time.0.is_zero(), "longer than zero", time);
    }

    /// The keys at the top.
    fn whole(&mut self) {
        let study = self.study;
        let top = |key: &str| KeyPath::of(&[key]);
        self.name(top("study"), "a study", &study.study);
        // A number of requests can be all that there is to do; a warm-up would do some of it beforehand.
        if !study.load.is_fixed_work() {
            self.longer_than_zero(top("warmup"), study.warmup);
        }
        self.longer_than_zero(top("window"), study.window);
        self.range(
            top("margin"),
            study.margin.0 > 0.0 && study.margin.0 < 1.0,
            "more than 0 % and less than 100 %",
            study.margin,
        );
        let repeat = KeyPath::of(&["repeat"]);
        let limits =
            [("steal", study.repeat.steal), ("others", study.repeat.others), ("at_most", study.repeat.at_most)];
        for (key, share) in limits {
            self.range(repeat.key(key), (0.0..=1.0).contains(&share.0), "from 0 % to 100 %", share);
        }
        if study.on_undecided == OnUndecided::Extend
            && let Err(early) = TwoLooks::new(study.rounds as usize)
        {
            self.say(top("rounds"), ProblemKind::TooEarly(early));
        }
        if study.drain.limit.0 < study.drain.quiet.0 {
            let (limit, quiet) = (study.drain.limit.to_string(), study.drain.quiet.to_string());
            self.say(KeyPath::of(&["drain", "limit"]), ProblemKind::DrainLimitTooShort { limit, quiet });
        }
        for name in study.variables.keys() {
            let path = KeyPath::of(&["variables", name]);
            let first = name.split('.').next().unwrap_or(name);
            if schema::top_level_keys().contains(&first) || name == "profile" {
                self.say(path, ProblemKind::ReservedVariable { name: name.clone() });
            } else if !is_variable(name) || name.len() > 64 {
                self.say(path, ProblemKind::BadName { what: "a variable", name: name.clone() });
            }
        }
        for name in study.profiles.keys() {
            self.name(KeyPath::of(&["profiles", name]), "a profile", name);
        }
    }

    /// A matrix: keys that may be set, values, and not too many variants. Whether a value fits shows in `cells`.
    fn matrix(&mut self) {
        let study = self.study;
        let allowed = ["variants.", "services.", "load.", "sink."];
        let mut cells = 1_usize;
        for (key, values) in &study.matrix {
            let path = KeyPath::of(&["matrix", key]);
            if !study.variables.contains_key(key) && !allowed.iter().any(|start| key.starts_with(start)) {
                self.say(path.clone(), ProblemKind::NoAxis { key: key.clone() });
            }
            if values.is_empty() {
                self.say(path.clone(), ProblemKind::EmptyAxis);
            }
            for (index, value) in values.iter().enumerate().filter(|(index, value)| values[..*index].contains(value)) {
                self.say(path.item(index), ProblemKind::ValueTwice { value: value.clone() });
            }
            cells = cells.saturating_mul(values.len().max(1));
        }
        let variants = cells.saturating_mul(study.variants.len());
        if !study.matrix.is_empty() && variants > 2 * MAX_VARIANTS {
            self.say(KeyPath::of(&["matrix"]), ProblemKind::MatrixTooLarge { variants });
        }
    }

    fn prices(&mut self) {
        let Some(prices) = &self.study.prices else { return };
        let root = KeyPath::of(&["prices"]);
        let positive = |value: f64| value > 0.0 && value.is_finite();
        let rate = prices.requests_per_second;
        self.range(root.key("requests_per_second"), positive(rate), "more than 0", rate);
        self.range(root.key("instances"), prices.instances > 0, "at least 1", prices.instances);
        let hours = [("core_hour", prices.core_hour), ("gib_hour", prices.gib_hour)];
        for (key, price) in hours.into_iter().filter_map(|(key, price)| Some((key, price?))) {
            self.range(root.key(key), price >= 0.0 && price.is_finite(), "at least 0", price);
        }
        if let Some(instance) = &prices.instance {
            let path = root.key("instance");
            self.range(path.key("cores"), positive(instance.cores), "more than 0", instance.cores);
            let share = instance.utilisation;
            let fits = share.0 > 0.0 && share.0 <= 1.0;
            self.range(path.key("utilisation"), fits, "more than 0 % and at most 100 %", share);
            if let Some(memory) = instance.memory {
                self.range(path.key("memory"), memory.0 > 0, "more than 0", memory);
            }
            if let Some(hour) = instance.hour {
                self.range(path.key("hour"), hour >= 0.0 && hour.is_finite(), "at least 0", hour);
            }
        }
    }

    /// Limits by metric, or by metric and service.
    fn by_metric(&mut self, path: &KeyPath, limits: &IndexMap<String, String>) {
        for (name, limit) in limits {
            let path = path.key(name);
            let (name, service) = metrics::of_service(name);
            if let Some(service) = service.filter(|service| !self.study.services.contains_key(*service)) {
                let guess = guess(service, self.study.services.keys().map(String::as_str));
                self.say(path.clone(), ProblemKind::NoSuchService { name: service.to_owned(), guess });
            }
            let Some(metric) = metrics::find(name) else {
                let guess = match name {
                    "memory" | "mem" | "ram" => Guess::Near("rss".to_owned()),
                    name => guess(name, metrics::METRICS.iter().map(|metric| metric.name)),
                };
                self.say(path, ProblemKind::UnknownMetric { name: name.to_owned(), guess });
                continue;
            };
            if metric.limit(limit).is_none() {
                let (metric, found, wanted) = (name.to_owned(), limit.clone(), metric.limit_form());
                self.say(path, ProblemKind::BadLimit { metric, found, wanted });
            }
        }
    }
}
