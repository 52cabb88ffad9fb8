//! Load: a URL on this machine, numbers in range, headers that HTTP allows.

use std::net::IpAddr;

use http::{HeaderName, HeaderValue, Method, Uri};

use super::super::key::KeyPath;
use super::super::problem::ProblemKind;
use super::super::spec::TraceHeader;
use super::Check;

/// Headers that belong to the load generator.
const TAKEN: [&str; 4] = ["host", "connection", "content-length", "transfer-encoding"];

impl Check<'_> {
    pub(super) fn load(&mut self) {
        let load = &self.study.load;
        let path = KeyPath::of(&["load"]);
        if let Some(url) = self.with_samples(&load.url)
            && let Some(kind) = url_problem(&url, load.allow_remote)
        {
            self.say(path.key("url"), kind);
        }
        if let Some(rate) = load.rate {
            let fits = rate.is_finite() && rate > 0.0 && rate <= 1e7;
            self.range(path.key("rate"), fits, "more than 0 requests per second and at most 10 million", rate);
        }
        let connections = load.connections;
        self.range(path.key("connections"), (1..=65_535).contains(&connections), "from 1 to 65535", connections);
        self.longer_than_zero(path.key("timeout"), load.timeout);
        if Method::from_bytes(load.method.as_bytes()).is_err() {
            self.say(path.key("method"), ProblemKind::BadMethod { found: load.method.clone() });
        }
        if let Some(status) = load.check.status {
            self.range(path.key("check").key("status"), (100..=599).contains(&status), "from 100 to 599", status);
        }
        for (name, value) in &load.headers {
            self.header(path.key("headers").key(name), name, value);
        }
    }

    fn header(&mut self, path: KeyPath, name: &str, value: &str) {
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

/// What is wrong with a URL that requests are to go to.
pub(in super::super) fn url_problem(text: &str, allow_remote: bool) -> Option<ProblemKind> {
    let bad = |why| Some(ProblemKind::BadUrl { found: super::super::mask::mask_text(text), why });
    if !text.starts_with("http://") && !text.starts_with("https://") {
        return bad("it doesn't begin with `http://`");
    }
    if text.ends_with("://") || text.contains(":///") {
        return bad("it names no host");
    }
    let Ok(uri) = text.parse::<Uri>() else { return bad("it isn't well formed; a blank is `%20`") };
    let Some(authority) = uri.authority().filter(|authority| !authority.host().is_empty()) else {
        return bad("it names no host");
    };
    let after_host = authority.as_str().rsplit('@').next().and_then(|rest| rest.strip_prefix(authority.host()));
    if after_host.is_some_and(|rest| !rest.is_empty()) && !matches!(authority.port_u16(), Some(1..)) {
        return bad("its port isn't a number from 1 to 65535");
    }
    let host = authority.host();
    (!allow_remote && !is_loopback(host)).then(|| ProblemKind::Remote { host: host.to_owned() })
}

/// Whether a host is this machine. Names other than `localhost` are not looked up: they may be anything tomorrow.
fn is_loopback(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_stays_on_this_machine() {
        for url in [
            "http://127.0.0.1:80/x",
            "http://localhost/",
            "https://[::1]:8443",
            "http://127.9.9.9",
            "http://a@LOCALHOST:1/",
        ] {
            assert_eq!(url_problem(url, false), None, "{url}");
        }
        for host in ["example.org", "10.0.0.1", "0.0.0.0", "localhost.example.org", "[::2]"] {
            let url = format!("http://{host}/");
            assert_eq!(url_problem(&url, false), Some(ProblemKind::Remote { host: host.to_owned() }), "{url}");
            assert_eq!(url_problem(&url, true), None, "{url}");
        }
        // What stands before the `@` is no host.
        assert!(matches!(url_problem("http://localhost@example.org/", false), Some(ProblemKind::Remote { .. })));
    }

    #[test]
    fn urls_are_whole() {
        for url in [
            "localhost:8080/x",
            "ftp://localhost/",
            "http://",
            "http:///x",
            "http://localhost:99999/",
            "http://localhost:0",
            "http://a b/",
            "/x",
            "",
        ] {
            assert!(matches!(url_problem(url, true), Some(ProblemKind::BadUrl { .. })), "{url}");
        }
    }
}
