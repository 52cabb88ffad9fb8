//! Azure Application Insights: `POST /v2.1/track`, telemetry as lines of JSON or as one array, which is what its agents and
//! exporters send to the `IngestionEndpoint` of a connection string
//! (<https://learn.microsoft.com/azure/azure-monitor/app/connection-strings>). Also what they ask beside it: live metrics, which are not
//! wanted, and the application's id.
//!
//! Telemetry that is no span (messages, metrics, exceptions) is taken and not looked into.

use http::{HeaderName, HeaderValue, Method, Response, StatusCode};
use unladen_decode::azure::{self, Received};
use unladen_decode::span::Protocol;

use crate::answer::Reply;
use crate::hub::Hub;
use crate::inbound::Request;
use crate::web::{self, Failure, JSON, TEXT};

/// The exporter for Python puts a slash between an endpoint that ends with one and the path.
const TRACK: [&str; 3] = ["/v2.1/track", "//v2.1/track", "/v2/track"];
/// Answers to those who ask for the id of an application.
const APP_ID: &str = "00000000-0000-0000-0000-000000000001";
/// Errors that an answer lists.
const MAX_ERRORS: usize = 100;

/// Answers one request.
pub(crate) async fn serve(hub: &Hub, request: Request) -> Response<Reply> {
    let path = request.uri().path();
    if request.method() == Method::GET && path.starts_with("/api/profiles/") && path.ends_with("/appId") {
        return web::reply(StatusCode::OK, TEXT, APP_ID);
    }
    if path.starts_with("/QuickPulseService.svc/") {
        let mut response = web::reply(StatusCode::OK, JSON, "");
        let name = HeaderName::from_static("x-ms-qps-subscribed");
        response.headers_mut().insert(name, HeaderValue::from_static("false"));
        return response;
    }
    match track(hub, request).await {
        Ok(received) => answer(&received),
        Err(failure) => {
            let errors =
                serde_json::json!([{ "index": 0, "statusCode": failure.status.as_u16(), "message": failure.message }]);
            reply(failure.status, 0, 0, &errors)
        }
    }
}

async fn track(hub: &Hub, request: Request) -> Result<Received, Failure> {
    web::expect_post(&request, &TRACK, TRACK[0])?;
    let body = web::receive(hub, request).await?;
    let mut received = Received::default();
    let taken = hub.take(Protocol::Azure, body, |bytes, arena| azure::decode(bytes, arena, &mut received)).await;
    taken.map_err(|reason| Failure::refused(reason, "telemetry of Application Insights"))?;
    Ok(received)
}

fn answer(received: &Received) -> Response<Reply> {
    let accepted = received.items - received.rejected.len() as u64;
    let status = match (received.rejected.is_empty(), accepted) {
        (true, _) => StatusCode::OK,
        (false, 0) => StatusCode::BAD_REQUEST,
        (false, _) => StatusCode::PARTIAL_CONTENT,
    };
    let error =
        |(index, message): &(u64, &str)| serde_json::json!({ "index": index, "statusCode": 400, "message": message });
    let errors = received.rejected.iter().take(MAX_ERRORS).map(error).collect();
    reply(status, received.items, accepted, &errors)
}

fn reply(status: StatusCode, received: u64, accepted: u64, errors: &serde_json::Value) -> Response<Reply> {
    let body = serde_json::json!({ "itemsReceived": received, "itemsAccepted": accepted, "errors": errors });
    let mut response = web::reply(status, JSON, body.to_string());
    web::retry(&mut response);
    response
}
