//! Where requests go: a URL taken apart, and its host's address.

use std::net::{SocketAddr, ToSocketAddrs};

use crate::error::LoadError;

/// A URL, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Host, without the brackets of an IPv6 address.
    pub host: String,
    /// Port; 80 if the URL has none.
    pub port: u16,
    /// Value of the `Host` header: as in the URL.
    pub authority: String,
    /// Path and query, from the slash on.
    pub path: String,
}

impl Target {
    /// Takes a URL apart: `http://host[:port][/path][?query]`. A fragment is left out, as it is never sent.
    ///
    /// # Errors
    /// [`LoadError::Url`] if it is not such a URL.
    pub fn parse(url: &str) -> Result<Self, LoadError> {
        let bad = |reason: &str| LoadError::Url { url: url.to_owned(), reason: reason.to_owned() };
        let (scheme, rest) = url.split_once("://").ok_or_else(|| bad("it has no scheme"))?;
        if !scheme.eq_ignore_ascii_case("http") {
            return Err(bad("only http is spoken"));
        }
        let rest = rest.split('#').next().unwrap_or(rest);
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err(bad("user and password belong in an Authorization header"));
        }
        if url.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err(bad("it holds spaces or control characters; percent-encode them"));
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or_else(|| bad("a bracket is not closed"))?;
                (host, port.strip_prefix(':'))
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        if host.is_empty() {
            return Err(bad("it has no host"));
        }
        let port = match port {
            None => 80,
            Some(port) => {
                port.parse().ok().filter(|&port| port > 0).ok_or_else(|| bad("the port is not 1 to 65535"))?
            }
        };
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { host: host.to_owned(), port, authority: authority.to_owned(), path })
    }

    /// Addresses of the host, in the resolver's order.
    ///
    /// # Errors
    /// [`LoadError::Resolve`] if it has none.
    pub fn resolve(&self) -> Result<Vec<SocketAddr>, LoadError> {
        let failed = |source| LoadError::Resolve { host: format!("{}:{}", self.host, self.port), source };
        let found: Vec<SocketAddr> = (self.host.as_str(), self.port).to_socket_addrs().map_err(failed)?.collect();
        if found.is_empty() { Err(failed(std::io::Error::other("the name has no address"))) } else { Ok(found) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        for (url, host, port, authority, path) in [
            ("http://localhost", "localhost", 80, "localhost", "/"),
            ("http://127.0.0.1:8080/vets?x=1#top", "127.0.0.1", 8080, "127.0.0.1:8080", "/vets?x=1"),
            ("HTTP://a.example?q", "a.example", 80, "a.example", "/?q"),
            ("http://[::1]:9/x", "::1", 9, "[::1]:9", "/x"),
            ("http://[::1]", "::1", 80, "[::1]", "/"),
        ] {
            let target = Target::parse(url).expect("a good url");
            assert_eq!(
                (target.host.as_str(), target.port, target.authority.as_str(), target.path.as_str()),
                (host, port, authority, path),
                "{url}"
            );
        }
    }

    #[test]
    fn bad_urls_are_refused_with_a_remedy() {
        for url in [
            "localhost:8080",
            "ftp://x/",
            "http://",
            "http://:80/",
            "http://h:0/",
            "http://h:99999/",
            "http://h:x/",
            "http://[::1/",
            "http://u:p@h/",
            "http://h/a b",
            "http://h/\r\nX: y",
        ] {
            let error = Target::parse(url).expect_err(url).to_string();
            assert!(error.contains("http://host:port/path"), "{error}");
        }
    }

    #[test]
    fn addresses_resolve_to_themselves() {
        let target = Target::parse("http://127.0.0.1:8080/").expect("a good url");
        assert_eq!(target.resolve().expect("an address"), [SocketAddr::from(([127, 0, 0, 1], 8080))]);
    }
}
