//! Sentry's envelopes (<https://develop.sentry.dev/sdk/foundations/transport/envelopes/>): `POST /api/PROJECT/envelope/`, as its
//! SDKs send them to the address of a DSN such as `http://pets@127.0.0.1:9000/1`. Transactions and spans are taken; what
//! else an SDK sends (errors, sessions, logs, …) is welcome and not looked into, but for its account of what it lost.
//!
//! Sentry knows no names of services. The DSN's key, here `pets`, stands in for one.

use http::{Method, Response, StatusCode};
use unladen_decode::sentry;
use unladen_decode::span::Protocol;

use crate::answer::Reply;
use crate::hub::Hub;
use crate::inbound::Request;
use crate::web::{self, Failure, JSON};

/// Where a key stands, in the header of its own as in the query.
const KEY: &str = "sentry_key=";

/// Answers one request.
pub(crate) async fn serve(hub: &Hub, request: Request) -> Response<Reply> {
    match post(hub, request).await {
        Ok(id) => web::reply(StatusCode::OK, JSON, serde_json::json!({ "id": id }).to_string()),
        Err(failure) => failure.plain(),
    }
}

/// Takes one envelope; the id that its sender gave it.
async fn post(hub: &Hub, request: Request) -> Result<String, Failure> {
    let path = request.uri().path();
    if !is_envelope(path) {
        let message = format!("unladen's sink does not know {path} here; envelopes go to /api/PROJECT/envelope/");
        return Err(Failure::new(StatusCode::NOT_FOUND, message));
    }
    if request.method() != Method::POST {
        return Err(Failure::new(StatusCode::METHOD_NOT_ALLOWED, format!("{path} takes POST requests only")));
    }
    let key = key(&request).to_owned();
    let body = web::receive(hub, request).await?;
    // First, and whatever becomes of the spans: no SDK sends an envelope a second time.
    sentry::reports::visit(body.bytes(), key.as_bytes(), |loss| hub.reported(loss));
    let id = sentry::id(body.bytes());
    let taken =
        hub.take(Protocol::Sentry, body, |bytes, arena| sentry::spans::decode(bytes, arena, key.as_bytes())).await;
    taken.map_err(|reason| Failure::refused(reason, "envelope of Sentry's"))?;
    Ok(id)
}

fn is_envelope(path: &str) -> bool {
    let project = path.strip_prefix("/api/").and_then(|rest| rest.trim_end_matches('/').strip_suffix("/envelope"));
    project.is_some_and(|project| !project.is_empty() && !project.contains('/'))
}

/// The key of the DSN: some SDKs send it in a header, some in the query. Empty if there is none.
fn key(request: &Request) -> &str {
    let header = request.headers().get("x-sentry-auth").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let header = header.split([' ', ',']).find_map(|part| part.strip_prefix(KEY));
    let query = request.uri().query().unwrap_or_default().split('&').find_map(|part| part.strip_prefix(KEY));
    header.or(query).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envelopes_go_to_a_project() {
        for path in ["/api/1/envelope/", "/api/1/envelope", "/api/pets/envelope/"] {
            assert!(is_envelope(path), "{path}");
        }
        for path in ["/", "/api/1/store/", "/api/envelope/", "/api//envelope/", "/api/1/2/envelope/", "/v1/traces"] {
            assert!(!is_envelope(path), "{path}");
        }
    }
}
