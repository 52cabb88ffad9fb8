//! Who may ask: requests whose `Host` is a name that can only mean this machine, so that no page on the web reaches the server by
//! having its own name point here (DNS rebinding). An address cannot be made to point elsewhere, a name can.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};

/// The names that are answered to.
#[derive(Debug, Clone)]
pub struct Names {
    listen: IpAddr,
    also: Vec<String>,
}

impl Names {
    /// Loopback, the address that is listened on, and these names.
    #[must_use]
    pub fn new(listen: IpAddr, also: Vec<String>) -> Self {
        Self { listen, also }
    }

    /// Whether a `Host` is one of them.
    #[must_use]
    pub fn allow(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else { return false };
        if host.contains('@') {
            return false;
        }
        let name = authority.host().trim_end_matches('.');
        match name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            Ok(address) => address.is_loopback() || address == self.listen || self.listen.is_unspecified(),
            Err(_) => {
                let same = |it: &str| it.eq_ignore_ascii_case(name);
                same("localhost") || self.also.iter().any(|it| same(it))
            }
        }
    }
}

/// The router, behind a look at every request's `Host`.
pub fn guarded(router: Router, names: Names) -> Router {
    router.layer(middleware::from_fn_with_state(Arc::new(names), check))
}

async fn check(State(names): State<Arc<Names>>, request: Request, next: Next) -> Response {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    match host {
        Some(host) if hosts.next().is_none() && names.allow(host) => next.run(request).await,
        _ => (
            StatusCode::MISDIRECTED_REQUEST,
            "this server answers to localhost and to the address that it listens on; `--name` lets it answer to others\n",
        )
            .into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_can_point_anywhere_are_refused() {
        let names = Names::new("127.0.0.1".parse().expect("an address"), vec!["bench.lan".to_owned()]);
        for host in
            ["localhost", "LOCALHOST:7077", "127.0.0.1:7077", "127.9.9.9", "[::1]:80", "bench.lan:1", "localhost."]
        {
            assert!(names.allow(host), "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example:80",
            "192.168.1.7",
            "0.0.0.0",
            "",
            "localhost@evil.example",
            "evil@localhost",
            "a b",
            "bench.lan.evil",
        ] {
            assert!(!names.allow(host), "{host}");
        }
    }

    #[test]
    fn on_all_addresses_any_address_is_its_own() {
        let names = Names::new("0.0.0.0".parse().expect("an address"), Vec::new());
        assert!(names.allow("192.168.1.7:7077") && !names.allow("evil.example"));
    }
}
