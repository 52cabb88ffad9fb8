//! Elastic APM's intake, version 2 (<https://www.elastic.co/docs/solutions/observability/apm/elastic-apm-events-intake-api>):
//! `POST /intake/v2/events`, one JSON object a line. Also what agents ask before and between: the server's version at `/`
//! and their central configuration, which is empty.
//!
//! As in Elastic's own server sound lines are taken even if others are broken; the answer says how many.

mod intake;

use http::{HeaderValue, Method, Response, StatusCode, header};

use crate::answer::Reply;
use crate::hub::Hub;
use crate::inbound::Request;
use crate::web::{self, Failure, JSON};
use intake::Taken;

const INTAKE: &str = "/intake/v2/events";
const CONFIG: &str = "/config/v1/agents";
/// The server that agents take the sink for: they switch on what it understands.
const VERSION: &str = "8.15.0";
/// Of the empty configuration.
const ETAG: &str = "\"unladen\"";
/// For how long agents need not ask again for their configuration.
const CONFIG_AGE: &str = "max-age=300, must-revalidate";

/// Answers one request.
pub(crate) async fn serve(hub: &Hub, request: Request) -> Response<Reply> {
    let path = request.uri().path();
    match (request.method(), path) {
        (&Method::GET | &Method::HEAD, "/") => {
            let about = serde_json::json!({ "version": VERSION, "publish_ready": true });
            web::reply(StatusCode::OK, JSON, about.to_string())
        }
        (&Method::GET | &Method::POST, CONFIG) => configuration(&request),
        _ => {
            if let Err(failure) = web::expect_post(&request, &[INTAKE], INTAKE) {
                return fail(&failure, 0);
            }
            let query = request.uri().query().unwrap_or_default();
            let is_verbose = query.split('&').any(|part| part == "verbose" || part.starts_with("verbose="));
            match intake::intake(hub, request).await {
                (taken, None) => answer(&taken, is_verbose),
                (taken, Some(failure)) => fail(&failure, taken.accepted()),
            }
        }
    }
}

fn configuration(request: &Request) -> Response<Reply> {
    let is_known = request.headers().get(header::IF_NONE_MATCH).is_some_and(|tag| tag.as_bytes() == ETAG.as_bytes());
    let mut response =
        if is_known { web::reply(StatusCode::NOT_MODIFIED, JSON, "") } else { web::reply(StatusCode::OK, JSON, "{}") };
    let headers = response.headers_mut();
    headers.insert(header::ETAG, HeaderValue::from_static(ETAG));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(CONFIG_AGE));
    response
}

fn answer(taken: &Taken, is_verbose: bool) -> Response<Reply> {
    let accepted = taken.accepted();
    match taken.reason {
        Some(reason) => fail(&Failure::new(StatusCode::BAD_REQUEST, reason), accepted),
        None if is_verbose => {
            web::reply(StatusCode::ACCEPTED, JSON, serde_json::json!({ "accepted": accepted }).to_string())
        }
        None => web::reply(StatusCode::ACCEPTED, JSON, ""),
    }
}

fn fail(failure: &Failure, accepted: u64) -> Response<Reply> {
    let body = serde_json::json!({ "accepted": accepted, "errors": [{ "message": failure.message }] });
    let mut response = web::reply(failure.status, JSON, body.to_string());
    web::retry(&mut response);
    response
}
