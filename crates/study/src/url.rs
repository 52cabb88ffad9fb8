//! Where requests may go: URLs that are whole, and on this machine unless the study allows more.

use std::net::IpAddr;

use http::Uri;
use unladen_load::target::Target;

use super::mask::mask_text;
use super::problem::ProblemKind;

/// What is wrong with a URL that requests are to go to. Hosts other than this machine must be `allowed`.
pub(super) fn url_problem(text: &str, allowed: impl Fn(&str) -> bool) -> Option<ProblemKind> {
    let bad = |why| Some(ProblemKind::BadUrl { found: mask_text(text), why });
    if text.starts_with("unix:") {
        // A socket is on this machine by nature.
        return Target::parse(text).is_err().then(|| bad("a socket is `unix:/path/of/socket:/path`")).flatten();
    }
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
    (!is_loopback(host) && !allowed(host)).then(|| ProblemKind::Remote { host: host.to_owned() })
}

/// Whether a host is this machine. Names other than `localhost` are not looked up: they may be anything tomorrow.
pub(super) fn is_loopback(host: &str) -> bool {
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
            "unix:/run/app.sock:/x",
        ] {
            assert_eq!(url_problem(url, |_| false), None, "{url}");
        }
        for host in ["example.org", "10.0.0.1", "0.0.0.0", "2130706433", "localhost.example.org", "[::2]"] {
            let url = format!("http://{host}/");
            assert_eq!(url_problem(&url, |_| false), Some(ProblemKind::Remote { host: host.to_owned() }), "{url}");
            assert_eq!(url_problem(&url, |_| true), None, "{url}");
        }
        // What stands before the `@` is no host.
        assert!(matches!(url_problem("http://localhost@example.org/", |_| false), Some(ProblemKind::Remote { .. })));
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
            "unix:app.sock",
            "",
        ] {
            assert!(matches!(url_problem(url, |_| true), Some(ProblemKind::BadUrl { .. })), "{url}");
        }
    }
}
