//! Pinpoint's collector (`v1/Service.proto` of <https://github.com/pinpoint-apm/pinpoint-grpc-idl>): gRPC, all services on one port.
//! Spans come in a stream, the names of their methods in calls of their own, perhaps after the first spans. What else agents send (about
//! themselves, statistics, answers to commands that they never get) is welcome and not looked into.
//!
//! Spans have no acknowledgement: `Empty`, the answer to a stream, is withheld until every message of it is taken.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use http::StatusCode;
use unladen_decode::pinpoint::{self, Agent};
use unladen_decode::span::Protocol;

use crate::answer::Answer;
use crate::grpc::{self, Messages};
use crate::hub::Hub;
use crate::inbound::Request;
use crate::per_sender::PerSender;
use crate::status::Code;
use crate::web::Failure;

/// Services whose calls are welcome.
const WELCOME: [&str; 4] = ["/v1.Agent/", "/v1.Metadata/", "/v1.Stat/", "/v1.ProfilerCommandService/"];
/// `PResult`: success.
const SUCCESS: [u8; 2] = [1 << 3, 1];
/// Bytes of a name, and of all names together: more than any load needs, and a bound for memory.
const MAX_NAME: usize = 500;
const MAX_NAMES: usize = 16 << 20;
/// Bytes that a name takes beside its own.
const BESIDE_NAME: usize = 32;

/// Names of an agent's methods.
type Names = HashMap<i32, Box<[u8]>>;

/// What is known of the methods of all agents.
#[derive(Debug, Default)]
pub(crate) struct Apis {
    agents: PerSender<Names>,
    /// Of all names.
    bytes: Cell<usize>,
}

impl Apis {
    /// Remembers a name, if there is room for it.
    fn learn(&self, names: &RefCell<Names>, number: i32, name: &[u8]) {
        let name = &name[..name.len().min(MAX_NAME)];
        let bytes = self.bytes.get() + name.len() + BESIDE_NAME;
        if bytes <= MAX_NAMES {
            self.bytes.set(bytes);
            names.borrow_mut().insert(number, name.into());
        }
    }
}

/// Answers one request.
pub(crate) async fn serve(hub: &Hub, apis: &Apis, request: Request) -> Answer {
    if grpc::is_grpc(&request) {
        return call(hub, apis, request).await.into();
    }
    Failure::new(StatusCode::NOT_FOUND, "unladen's sink takes Pinpoint's spans by gRPC only").plain().into()
}

async fn call(hub: &Hub, apis: &Apis, request: Request) -> Result<Vec<u8>, grpc::Failure> {
    let path = request.uri().path().to_owned();
    let told = |name: &str| request.headers().get(name).map(|value| value.as_bytes().to_owned()).unwrap_or_default();
    let [id, service, start] = ["agentid", "applicationname", "starttime"].map(told);
    // An agent is the same process for as long as it started at the same time.
    let names = apis.agents.of(&[&id, &start]);
    match path.as_str() {
        "/v1.Span/SendSpan" => {
            let (service, id) = (service.as_slice(), id.as_slice());
            grpc::take_stream(hub, request, Protocol::Pinpoint, "PSpanMessage", |messages, arena| {
                pinpoint::decode(messages, arena, Agent { service, id, apis: &names.borrow() })
            })
            .await?;
            Ok(Vec::new())
        }
        "/v1.Metadata/RequestApiMetaData" => {
            let message = grpc::unary(hub, request).await?;
            let (number, name) = pinpoint::api(message.bytes()).map_err(|error| {
                hub.undecodable();
                grpc::Failure::new(Code::InvalidArgument, format!("this is no PApiMetaData: {error}"))
            })?;
            apis.learn(&names, number, name);
            Ok(SUCCESS.to_vec())
        }
        _ if WELCOME.iter().any(|service| path.starts_with(service)) => {
            // Some of these streams last as long as the agent; to those the answer is their end.
            let is_told = path.contains("/Request");
            Messages::of(hub, request).ignore(hub).await?;
            Ok(if is_told { SUCCESS.to_vec() } else { Vec::new() })
        }
        _ => {
            let message = format!("unladen's sink does not know {path}; spans go to /v1.Span/SendSpan");
            Err(grpc::Failure::new(Code::Unimplemented, message))
        }
    }
}
