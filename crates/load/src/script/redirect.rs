//! Where a reference of the server leads: whether a redirect stays on the connection that it came on, and to which path.
//! Pure; RFC 3986, 5, and RFC 9110, 10.2.2 and 15.4.

use super::text::{Escape, escape_tail};
use crate::plan::Plan;
use crate::target::Target;

/// Host and port of a connection, under the names that they are asked for by.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    secure: bool,
    names: Vec<(String, u16)>,
}

/// Where a reference leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// Whether that is where the connection leads.
    pub(super) here: bool,
    /// Path and query, ready to be sent.
    pub(super) path: Vec<u8>,
}

/// Host (in lower case) and port of an authority.
fn name(authority: &str, secure: bool) -> (String, u16) {
    let usual = if secure { 443 } else { 80 };
    let (host, port) = match authority.rsplit_once(':') {
        // The last colon of an IPv6 address without a port stands within its brackets.
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().unwrap_or(usual)),
        _ => (authority, usual),
    };
    (host.to_ascii_lowercase(), port)
}

impl Origin {
    /// Of a plan: its URL's, and that of the `Host` header that it may set.
    pub(super) fn new(plan: &Plan, target: &Target) -> Self {
        let given = plan.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
        let names = given.map(|(_, value)| value.as_str()).into_iter().chain([target.authority.as_str()]);
        Self { secure: target.secure, names: names.map(|authority| name(authority, target.secure)).collect() }
    }

    /// Where a reference leads that stands in an answer to `current` (path and query). `None`: it leads nowhere over HTTP.
    pub(super) fn resolve(&self, current: &str, reference: &[u8]) -> Option<Place> {
        let text = String::from_utf8_lossy(reference);
        let text = text.split('#').next().unwrap_or_default().trim();
        let scheme = text
            .split_once(':')
            .map(|(scheme, _)| scheme)
            .filter(|scheme| scheme.starts_with(|first: char| first.is_ascii_alphabetic()))
            .filter(|scheme| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)));
        let (secure, rest) = match scheme {
            Some(scheme) if scheme.eq_ignore_ascii_case("http") => (false, &text[scheme.len() + 1..]),
            Some(scheme) if scheme.eq_ignore_ascii_case("https") => (true, &text[scheme.len() + 1..]),
            Some(_) => return None,
            None => (self.secure, text),
        };
        let (here, path) = match rest.strip_prefix("//") {
            Some(rest) => {
                let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
                let here = secure == self.secure && self.names.contains(&name(authority, secure));
                (here, if path.starts_with('/') { path.to_owned() } else { format!("/{path}") })
            }
            None if scheme.is_some() => return None,
            None => (true, merge(current, rest)),
        };
        let mut path = without_dots(&path).into_bytes();
        escape_tail(&mut path, 0, Escape::Path);
        Some(Place { here, path })
    }
}

/// A reference without authority, seen from the current path (RFC 3986, 5.2.2 and 5.2.3).
fn merge(current: &str, reference: &str) -> String {
    let path = current.split('?').next().unwrap_or_default();
    match reference.as_bytes().first() {
        None => current.to_owned(),
        Some(b'/') => reference.to_owned(),
        Some(b'?') => format!("{path}{reference}"),
        Some(_) => format!("{}{reference}", path.rsplit_once('/').map_or("/", |(folder, _)| &path[..=folder.len()])),
    }
}

/// Takes the segments `.` and `..` out of a path (RFC 3986, 5.2.4); the query stays as it is.
fn without_dots(text: &str) -> String {
    let (path, query) = text.split_at(text.find('?').unwrap_or(text.len()));
    let mut resolved: Vec<&str> = Vec::new();
    let mut segments = path.strip_prefix('/').unwrap_or(path).split('/').peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    resolved.pop();
                }
                if last {
                    resolved.push("");
                }
            }
            _ => resolved.push(segment),
        }
    }
    format!("/{}{query}", resolved.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(url: &str, host: Option<&str>) -> Origin {
        let mut plan = Plan::new(url);
        plan.headers.extend(host.map(|host| ("host".to_owned(), host.to_owned())));
        Origin::new(&plan, &Target::parse(url).expect("a good url"))
    }

    #[test]
    fn references_by_table() {
        let origin = origin("http://Shop.example:8080/a/b?x=1", Some("front.example"));
        for (reference, here, path) in [
            ("/new", true, "/new"),
            ("/new?y=2#top", true, "/new?y=2"),
            ("new", true, "/a/new"),
            ("../new", true, "/new"),
            ("./", true, "/a/"),
            ("../../..", true, "/"),
            ("/x/../y/./z", true, "/y/z"),
            ("/x?up=../..", true, "/x?up=../.."),
            ("?y=2", true, "/a/b?y=2"),
            ("", true, "/a/b?x=1"),
            ("http://shop.example:8080/new", true, "/new"),
            ("HTTP://SHOP.EXAMPLE:8080", true, "/"),
            ("//shop.example:8080/new", true, "/new"),
            ("http://front.example/new", true, "/new"),
            ("http://front.example:80?q", true, "/?q"),
            ("http://shop.example/new", false, "/new"),
            ("https://shop.example:8080/new", false, "/new"),
            ("http://other.example:8080/new", false, "/new"),
            ("//other.example/new", false, "/new"),
            ("/with space\r\nX: y", true, "/with%20space%0D%0AX:%20y"),
            ("/ä", true, "/%C3%A4"),
            // Nothing is mended: see docs/adr/0006-urls.md.
            ("\\\\other.example/x", true, "/a/%5C%5Cother.example/x"),
            ("/%2e%2e/x", true, "/%2e%2e/x"),
        ] {
            let place = origin.resolve("/a/b?x=1", reference.as_bytes());
            assert_eq!(place, Some(Place { here, path: path.as_bytes().to_vec() }), "{reference:?}");
        }
        for reference in ["mailto:a@b", "javascript:alert(1)", "http:/x", "ftp://shop.example:8080/"] {
            assert_eq!(origin.resolve("/", reference.as_bytes()), None, "{reference}");
        }
    }

    #[test]
    fn usual_ports_and_addresses_are_the_same_with_and_without() {
        for (url, reference) in [
            ("https://h/", "https://h:443/x"),
            ("https://h:443/", "https://h/x"),
            ("http://[::1]:9/", "http://[::1]:9/x"),
            ("http://[::1]/", "http://[::1]:80/x"),
            ("unix:/run/app.sock", "http://localhost/x"),
        ] {
            let place = origin(url, None).resolve("/", reference.as_bytes()).expect("over HTTP");
            assert!(place.here && place.path == b"/x", "{url} {reference}");
        }
        assert!(!origin("http://[::1]:9/", None).resolve("/", b"http://[::1]/x").expect("over HTTP").here);
    }
}
