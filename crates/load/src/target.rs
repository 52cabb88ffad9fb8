//! Where requests go: a URL taken apart, and its host's address.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use crate::error::LoadError;
use crate::network::Network;

/// A URL, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Host, without the brackets of an IPv6 address.
    pub host: String,
    /// Port; 80 if the URL has none (`https`: 443).
    pub port: u16,
    /// Value of the `Host` header: as in the URL.
    pub authority: String,
    /// Path and query, from the slash on.
    pub path: String,
    /// Whether it is `https`.
    pub secure: bool,
    /// The socket's path, if it is a Unix socket; host and port then mean nothing.
    pub unix: Option<PathBuf>,
}

/// An address that can be connected to.
#[derive(Debug, Clone)]
pub(crate) enum Address {
    /// TCP, in a network namespace if it is not that of the process.
    Tcp(SocketAddr, Option<Network>),
    /// A Unix socket.
    Unix(PathBuf),
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address, _) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

impl Target {
    /// Takes a URL apart: `http[s]://host[:port][/path][?query]`, or `unix:/path/of/socket[:/path][?query]` for HTTP over a Unix
    /// socket. A fragment is left out, as it is never sent.
    ///
    /// # Errors
    /// [`LoadError::Url`] if it is not such a URL.
    pub fn parse(url: &str) -> Result<Self, LoadError> {
        // Errors are written down and passed around.
        let bad = |reason: &str| LoadError::Url { url: without_user(url), reason: reason.to_owned() };
        if url.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err(bad("it holds spaces or control characters; percent-encode them"));
        }
        if let Some(rest) = url.strip_prefix("unix:") {
            let (socket, path) = rest.split_once(":/").unwrap_or((rest, ""));
            if !socket.starts_with('/') {
                return Err(bad("the socket's path does not begin with a slash"));
            }
            let path = format!("/{}", path.split('#').next().unwrap_or_default());
            let (host, authority) = ("localhost".to_owned(), "localhost".to_owned());
            return Ok(Self { host, port: 0, authority, path, secure: false, unix: Some(socket.into()) });
        }
        let (scheme, rest) = url.split_once("://").ok_or_else(|| bad("it has no scheme"))?;
        let secure = scheme.eq_ignore_ascii_case("https");
        if !secure && !scheme.eq_ignore_ascii_case("http") {
            return Err(bad("only http, https and unix are spoken"));
        }
        let rest = rest.split('#').next().unwrap_or(rest);
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err(bad("user and password belong in an Authorization header"));
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
            None if secure => 443,
            None => 80,
            Some(port) => {
                port.parse().ok().filter(|&port| port > 0).ok_or_else(|| bad("the port is not 1 to 65535"))?
            }
        };
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { host: host.to_owned(), port, authority: authority.to_owned(), path, secure, unix: None })
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

/// The URL with `***` for a `user:password@`, which nobody else needs to see: reports and errors are passed around.
#[must_use]
pub fn without_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://***@{host}{path}"),
        None => url.to_owned(),
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
            // What is written is what is sent, see docs/adr/0006-urls.md.
            ("http://h:80/a/../b/./c", "h", 80, "h:80", "/a/../b/./c"),
            ("http://H/{id}|\"//x", "H", 80, "H", "/{id}|\"//x"),
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
    fn the_scheme_decides_on_tls_and_the_port() {
        for (url, secure, port) in
            [("http://h/", false, 80), ("https://h/", true, 443), ("HTTPS://h:8443/x", true, 8443)]
        {
            let target = Target::parse(url).expect("a good url");
            assert_eq!((target.secure, target.port, target.unix), (secure, port, None), "{url}");
        }
    }

    #[test]
    fn unix_sockets_have_a_path_of_their_own() {
        for (url, socket, path) in [
            ("unix:/run/app.sock", "/run/app.sock", "/"),
            ("unix:/run/app.sock:/vets?x=1#top", "/run/app.sock", "/vets?x=1"),
        ] {
            let target = Target::parse(url).expect("a good url");
            assert_eq!((target.unix, target.path.as_str()), (Some(PathBuf::from(socket)), path), "{url}");
            assert_eq!((target.authority.as_str(), target.secure), ("localhost", false));
        }
    }

    #[test]
    fn bad_urls_are_refused_with_a_remedy() {
        for url in [
            "unix:relative.sock",
            "unix:",
            "localhost:8080",
            "ftp://x/",
            "http://",
            "http:/x",
            "http:///x",
            "http://:80/",
            "http://h:0/",
            "http://h:99999/",
            "http://h:x/",
            "http://h:${port.app}/",
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

    #[test]
    fn an_error_gives_no_password_away() {
        for url in ["http://me:hunter2@127.0.0.1:80/x?at=@", "ftp://me:hunter2@host", "http://me:hunter2@host/a b"] {
            let error = Target::parse(url).expect_err(url).to_string();
            assert!(!error.contains("hunter2") && error.contains("://***@"), "{error}");
        }
    }
}
