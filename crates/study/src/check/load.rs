//! Load: a URL on this machine, one way of pacing, numbers in range, headers that HTTP allows; what follows the window.

use http::{HeaderName, HeaderValue, Method};
use unladen_journal::role::Role;
use unladen_load::target::Target;

use super::super::guess::guess;
use super::super::key::KeyPath;
use super::super::problem::{Problem, ProblemKind};
use super::super::spec::{Arrival, Lifetime, Stage, Tls, TraceHeader};
use super::super::url::{is_loopback, url_problem};
use super::Check;

/// Headers that belong to the load generator.
const TAKEN: [&str; 4] = ["host", "connection", "content-length", "transfer-encoding"];

impl Check<'_> {
    pub(super) fn load(&mut self) {
        let load = &self.study.load;
        let path = KeyPath::of(&["load"]);
        if load.driver.is_some() {
            self.driver(&path);
        } else if load.url.is_empty() {
            self.say(path.clone(), ProblemKind::MissingKey { key: "url" });
        } else if let Some(url) = self.with_samples(&load.url) {
            if let Some(kind) = url_problem(&url, |host| self.study.may_reach(host)) {
                let kind = match kind {
                    ProblemKind::Remote { host } if self.study.on.is_any() => {
                        let guess = guess(&host, self.study.stacked());
                        ProblemKind::NoSuchService { name: host, guess }
                    }
                    kind => kind,
                };
                self.say(path.key("url"), kind);
            }
            self.tls(&path.key("tls"), &url);
        }
        if let Some(problem) = self.unnamed_driver() {
            self.problems.push(problem);
        }
        self.pacing(&path);
        self.protocol(&path);
        let connections = load.connections;
        self.range(path.key("connections"), (1..=65_535).contains(&connections), "from 1 to 65535", connections);
        self.range(path.key("errors"), (0.0..1.0).contains(&load.errors.0), "less than 100 %", load.errors);
        self.longer_than_zero(path.key("timeout"), load.timeout);
        self.longer_than_zero(path.key("connect_timeout"), load.connect_timeout.unwrap_or(load.timeout));
        self.method(path.key("method"), &load.method);
        self.answer(&path.key("check"), load.check);
        for (name, value) in &load.headers {
            self.header(path.key("headers").key(name), name, value);
        }
        if let Some(script) = &load.script {
            self.script(&path.key("script"), script);
        }
        self.phases();
    }

    /// Says that two keys cannot both be given, if they are.
    pub(super) fn apart(&mut self, path: &KeyPath, given: &[(&'static str, bool)], remedy: &'static str) {
        let mut given = given.iter().filter(|(_, is_given)| *is_given).map(|(key, _)| *key);
        if let (Some(one), Some(other)) = (given.next(), given.next()) {
            self.say(path.key(other), ProblemKind::Contradiction { one, other, remedy });
        }
    }

    /// Says that a key means nothing without another one.
    pub(super) fn needs(&mut self, path: &KeyPath, given: bool, key: &'static str, needed: &'static str) {
        if given {
            self.say(path.key(key), ProblemKind::Lacks { key, needed });
        }
    }

    fn rate(&mut self, path: KeyPath, rate: f64) {
        let fits = rate.is_finite() && rate > 0.0 && rate <= 1e7;
        self.range(path, fits, "more than 0 requests per second and at most 10 million", rate);
    }

    /// When requests are due: one way, with numbers in range.
    fn pacing(&mut self, path: &KeyPath) {
        let load = &self.study.load;
        let (users, burst, replay) = (load.users.is_some(), load.burst.is_some(), load.replay.is_some());
        let (rate, stages) = (load.rate.is_some(), !load.stages.is_empty());
        let one_way = "a load is paced in one way: by `rate` (which `stages` may change), `users`, `burst` or `replay`";
        self.apart(path, &[("rate", rate), ("users", users), ("burst", burst), ("replay", replay)], one_way);
        self.apart(path, &[("stages", stages), ("users", users), ("burst", burst), ("replay", replay)], one_way);
        let own = "a burst is a number of requests itself; write it there alone";
        self.apart(path, &[("burst", burst), ("requests", load.requests.is_some())], own);
        self.needs(path, load.arrival != Arrival::Constant && !rate && !stages, "arrival", "rate");
        self.needs(path, load.slot.is_some() && !load.is_open(), "slot", "rate");
        if let Some(rate) = load.rate {
            self.rate(path.key("rate"), rate);
        }
        self.stages(&path.key("stages"), load.rate.unwrap_or(0.0), &load.stages, 1e7);
        if let Some(users) = &load.users {
            let path = path.key("users");
            let fits = users.count >= 0.0 && users.count <= 65_535.0;
            self.range(path.key("count"), fits, "from 0 to 65535", users.count);
            self.range(path.clone(), users.most() > 0.0, "more than 0 users (`count` or a stage)", users.most());
            self.stages(&path.key("stages"), 1.0, &users.stages, 65_535.0);
            if let Some(rate) = users.rate {
                self.rate(path.key("rate"), rate);
            }
        }
        for (key, count) in [("burst", load.burst), ("requests", load.requests), ("work", load.work)] {
            if let Some(count) = count {
                self.range(path.key(key), (1..=1 << 53).contains(&count), "more than 0", count);
            }
        }
        self.longer_than_zero(path.key("at_most"), load.at_most);
        if let Some(slot) = load.slot {
            self.range(path.key("slot"), slot.as_seconds() <= 1.0, "at most 1s", slot);
        }
    }

    fn stages(&mut self, path: &KeyPath, from: f64, stages: &[Stage], most: f64) {
        for (position, stage) in stages.iter().enumerate() {
            let target = path.item(position).key("target");
            self.range(
                target,
                (0.0..=most).contains(&stage.target),
                "0 or more, within what can be sent",
                stage.target,
            );
        }
        if !stages.is_empty() && from <= 0.0 && stages.iter().all(|stage| stage.target <= 0.0) {
            self.range(path.clone(), false, "a list with at least one `target` above 0", "all 0");
        }
    }

    /// Version of HTTP, and what it cannot do.
    fn protocol(&mut self, path: &KeyPath) {
        let load = &self.study.load;
        self.range(path.key("http"), matches!(load.http, 1 | 2), "1 or 2", load.http);
        self.range(path.key("streams"), (1..=10_000).contains(&load.streams), "from 1 to 10000", load.streams);
        let second = load.http == 2 || load.grpc.is_some();
        self.needs(path, load.streams > 1 && !second, "streams", "http: 2");
        let alone = "a gRPC call is the only request; remove the other";
        self.apart(path, &[("grpc", load.grpc.is_some()), ("script", load.script.is_some())], alone);
        self.apart(path, &[("grpc", load.grpc.is_some()), ("body", load.body.is_some())], alone);
        if let Some(grpc) = &load.grpc
            && !grpc.method.trim_start_matches('/').contains('/')
        {
            self.say(path.key("grpc").key("method"), ProblemKind::BadGrpcMethod { found: grpc.method.clone() });
        }
        let redirects = load.redirects > 0;
        self.apart(path, &[("grpc", load.grpc.is_some()), ("redirects", redirects)], "a gRPC call has none; remove it");
        self.range(path.key("redirects"), load.redirects <= 100, "at most 100", load.redirects);
    }

    /// TLS where there is TLS, and no blind trust beyond this machine.
    fn tls(&mut self, path: &KeyPath, url: &str) {
        let tls = &self.study.load.tls;
        if *tls == Tls::default() {
            return;
        }
        let Ok(target) = Target::parse(url) else { return };
        if !target.secure {
            self.say(path.clone(), ProblemKind::NotSecure);
        } else if tls.insecure && !is_loopback(&target.host) {
            self.say(path.key("insecure"), ProblemKind::InsecureRemote { host: target.host });
        }
        self.needs(
            path,
            tls.client_key.is_some() && tls.client_certificate.is_none(),
            "client_key",
            "client_certificate",
        );
        let one = "whoever trusts anybody needs no certificates; remove one of them";
        self.apart(path, &[("ca", tls.ca.is_some()), ("insecure", tls.insecure)], one);
    }

    /// A driver is all of the load.
    fn driver(&mut self, path: &KeyPath) {
        let load = &self.study.load;
        let Some(driver) = &load.driver else { return };
        let key = path.key("driver");
        match self.study.services.get(driver) {
            None => {
                let guess = guess(driver, self.study.services.keys().map(String::as_str));
                self.say(key, ProblemKind::NoSuchService { name: driver.clone(), guess });
            }
            Some(service) => {
                let why = if service.role != Role::Driver {
                    Some("has another role; give it `role: driver`")
                } else if service.lifetime == Lifetime::Study || service.replicas != 1 {
                    Some("is started once in every run; remove its `lifetime` and `replicas`")
                } else if !service.only.is_empty() {
                    Some("does the work of every variant; remove its `only`")
                } else {
                    None
                };
                if let Some(why) = why {
                    self.say(key, ProblemKind::Driver { service: driver.clone(), why });
                }
            }
        }
        let others = [
            ("url", !load.url.is_empty()),
            ("rate", load.rate.is_some()),
            ("stages", !load.stages.is_empty()),
            ("users", load.users.is_some()),
            ("burst", load.burst.is_some()),
            ("replay", load.replay.is_some()),
            ("requests", load.requests.is_some()),
            ("script", load.script.is_some()),
            ("grpc", load.grpc.is_some()),
        ];
        for (other, given) in others {
            self.apart(path, &[("driver", true), (other, given)], "the driver does all of the work; remove the other");
        }
    }

    /// What belongs to a driver that isn't there, and a driver that nothing names.
    fn unnamed_driver(&mut self) -> Option<Problem> {
        let load = &self.study.load;
        if load.driver.is_some() {
            return None;
        }
        let path = KeyPath::of(&["load"]);
        self.needs(&path, load.work.is_some(), "work", "driver");
        self.needs(&path, load.rehearsals > 0, "rehearsals", "driver");
        let (name, _) = self.study.services.iter().find(|(_, service)| service.role == Role::Driver)?;
        let kind = ProblemKind::IdleDriver { service: name.clone() };
        Some(Problem { path: KeyPath::of(&["services", name, "role"]), place: None, kind })
    }

    /// Capacity and saturation after the window.
    fn phases(&mut self) {
        let study = self.study;
        let no_url = "they send the load's own requests; give the load a `url` instead of a driver";
        let driver = study.load.driver.is_some();
        let root = KeyPath::default();
        self.apart(&root, &[("load.driver", driver), ("capacity", study.capacity.is_some())], no_url);
        self.apart(&root, &[("load.driver", driver), ("saturation", study.saturation.is_some())], no_url);
        let fixed = "it is for a load of a fixed time; remove one of the two";
        let (requests, burst) = (study.load.requests.is_some(), study.load.burst.is_some());
        for work in [("load.driver", driver), ("load.requests", requests), ("load.burst", burst)] {
            self.apart(&root, &[work, ("preheat", !study.preheat.0.is_zero())], fixed);
        }
        if let Some(capacity) = &study.capacity {
            let path = KeyPath::of(&["capacity"]);
            for (key, time) in [("limit", capacity.limit), ("trial", capacity.trial), ("time", capacity.time)] {
                self.longer_than_zero(path.key(key), time);
            }
            self.range(path.key("errors"), (0.0..1.0).contains(&capacity.errors.0), "less than 100 %", capacity.errors);
            let precision = capacity.precision;
            let fits = precision.0 >= 0.001 && precision.0 <= 0.5;
            self.range(path.key("precision"), fits, "from 0.1 % to 50 %", precision);
            for (key, rate) in [("from", capacity.from), ("most", Some(capacity.most))] {
                if let Some(rate) = rate {
                    self.rate(path.key(key), rate);
                }
            }
            self.extra_connections(path.key("connections"), capacity.connections);
        }
        if let Some(saturation) = &study.saturation {
            let path = KeyPath::of(&["saturation"]);
            self.longer_than_zero(path.key("time"), saturation.time);
            let fits = saturation.ramp.0 < saturation.time.0;
            self.range(path.key("ramp"), fits, "shorter than `time`", saturation.ramp);
            self.extra_connections(path.key("connections"), saturation.connections);
        }
    }

    fn extra_connections(&mut self, path: KeyPath, connections: Option<u32>) {
        if let Some(count) = connections {
            self.range(path, (1..=65_535).contains(&count), "from 1 to 65535", count);
        }
    }

    pub(super) fn method(&mut self, path: KeyPath, method: &str) {
        if Method::from_bytes(method.as_bytes()).is_err() {
            self.say(path, ProblemKind::BadMethod { found: method.to_owned() });
        }
    }

    pub(super) fn answer(&mut self, path: &KeyPath, check: super::super::spec::Check) {
        if let Some(status) = check.status {
            self.range(path.key("status"), (100..=599).contains(&status), "from 100 to 599", status);
        }
    }

    pub(super) fn header(&mut self, path: KeyPath, name: &str, value: &str) {
        let lower = name.to_ascii_lowercase();
        let owned = name.to_owned();
        if HeaderName::from_bytes(name.as_bytes()).is_err() {
            self.say(path, ProblemKind::BadHeaderName { name: owned });
        } else if TAKEN.contains(&lower.as_str()) {
            self.say(path, ProblemKind::HeaderTaken { name: owned });
        } else if lower == "traceparent" && self.study.load.trace == TraceHeader::W3c {
            self.say(path, ProblemKind::TraceHeaderTaken { name: owned });
        } else if HeaderValue::from_str(value).is_err() {
            self.say(path, ProblemKind::BadHeaderValue { name: owned });
        }
    }
}
