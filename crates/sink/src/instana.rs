//! Instana's host agent, as its tracers for Python and Node.js call it: they look whether it is there, announce themselves, and hand in
//! spans (`POST /com.instana.plugin.LANGUAGE/traces.PID`). Metrics, profiles, events and logs are welcome and not looked into; commands,
//! which answers may hold, are never given.

use http::{Method, Response, StatusCode};
use serde_json::json;
use unladen_decode::instana;
use unladen_decode::span::Protocol;

use crate::answer::Reply;
use crate::hub::Hub;
use crate::inbound::Request;
use crate::per_sender::PerSender;
use crate::web::{self, Failure, JSON};

const PLUGIN: &str = "/com.instana.plugin.";
const SPANS: &str = "/com.instana.plugin.LANGUAGE/traces.PID";
/// What a tracer posts beside what belongs to its plugin.
const WELCOME: [&str; 2] = ["/com.instana.agent.logger", "/tracermetrics"];
/// Services of processes, by their ids.
pub(crate) type Services = PerSender<Vec<u8>>;

/// Answers one request.
pub(crate) async fn serve(hub: &Hub, services: &Services, request: Request) -> Response<Reply> {
    let path = request.uri().path();
    let is_there = path == "/" || path.starts_with(PLUGIN);
    let is_discovery = is_there && path.ends_with(".discovery");
    match request.method().clone() {
        // A tracer takes somebody with a version for the agent.
        Method::GET if is_there => web::reply(StatusCode::OK, JSON, json!({ "version": "unladen" }).to_string()),
        Method::HEAD if is_there => web::reply(StatusCode::OK, JSON, ""),
        Method::PUT if is_discovery => announced(hub, request).await,
        _ => match post(hub, services, request).await {
            // Nothing to do.
            Ok(()) => web::reply(StatusCode::OK, JSON, "[]"),
            Err(failure) => failure.plain(),
        },
    }
}

/// A tracer that announces itself is told its own process id: the sink sees the same.
async fn announced(hub: &Hub, request: Request) -> Response<Reply> {
    match web::receive(hub, request).await {
        Ok(body) => {
            let hello: serde_json::Value = serde_json::from_slice(body.bytes()).unwrap_or_default();
            let answer = json!({ "pid": hello["pid"], "agentUuid": "unladen" });
            web::reply(StatusCode::OK, JSON, answer.to_string())
        }
        Err(failure) => failure.plain(),
    }
}

async fn post(hub: &Hub, services: &Services, request: Request) -> Result<(), Failure> {
    let path = request.uri().path().to_owned();
    let of_plugin = path.strip_prefix(PLUGIN);
    if of_plugin.is_none() && !WELCOME.contains(&path.as_str()) {
        let message = format!("unladen's sink does not know {path} here; spans go to {SPANS}");
        return Err(Failure::new(StatusCode::NOT_FOUND, message));
    }
    if request.method() != Method::POST {
        return Err(Failure::new(StatusCode::METHOD_NOT_ALLOWED, format!("{path} takes POST requests only")));
    }
    let body = web::receive(hub, request).await?;
    if let Some((_, process)) = of_plugin.and_then(|rest| rest.split_once("/traces.")) {
        let service = services.of(&[process.as_bytes()]);
        let taken = hub
            .take(Protocol::Instana, body, |bytes, arena| {
                instana::decode(bytes, arena, process.as_bytes(), &mut service.borrow_mut())
            })
            .await;
        taken.map_err(|reason| Failure::refused(reason, "list of Instana's spans"))?;
    } else if path == "/tracermetrics" {
        let service_of = |process: u64| services.of(&[process.to_string().as_bytes()]).borrow().clone();
        // What cannot be read tells of no loss.
        let _ = instana::losses(body.bytes(), service_of, |loss| hub.reported(loss));
    }
    Ok(())
}
