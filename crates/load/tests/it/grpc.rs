//! Unary gRPC calls to tonic's health service, found by tonic's reflection or a `.proto` file.

use std::net::TcpListener;

use tonic_health::pb::FILE_DESCRIPTOR_SET;
use unladen_load::LoadError;
use unladen_load::plan::{Grpc, Pacing, Plan};

use crate::engine::run;

/// The service's own definition, <https://github.com/grpc/grpc/blob/master/doc/health-checking.md>.
const HEALTH: &str = r#"
syntax = "proto3";
package grpc.health.v1;
message HealthCheckRequest { string service = 1; }
message HealthCheckResponse { enum ServingStatus { UNKNOWN = 0; SERVING = 1; } ServingStatus status = 1; }
service Health { rpc Check(HealthCheckRequest) returns (HealthCheckResponse); }
"#;

/// A server with the health service; dropping it stops it.
struct Server {
    url: String,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
}

impl Server {
    fn start(reflection: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        listener.set_nonblocking(true).expect("supported");
        let (stop, stopped) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let incoming = tonic::transport::server::TcpIncoming::from(
                    tokio::net::TcpListener::from_std(listener).expect("registers"),
                );
                let (_reporter, health) = tonic_health::server::health_reporter();
                let described = reflection.then(|| {
                    tonic_reflection::server::Builder::configure()
                        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
                        .build_v1()
                        .expect("a good descriptor")
                });
                let served = tonic::transport::Server::builder()
                    .add_service(health)
                    .add_optional_service(described)
                    .serve_with_incoming_shutdown(incoming, async { drop(stopped.await) })
                    .await;
                assert!(served.is_ok(), "{served:?}");
            });
        });
        Self { url, stop: Some(stop) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }
}

/// A plan that asks for the health of a service.
fn plan(server: &Server, service: &str) -> Plan {
    let message = serde_json::json!({ "service": service });
    Plan {
        pacing: Pacing::Constant { rate: 200.0 },
        connections: 2,
        streams: 4,
        warmup_s: 0.0,
        window_s: 0.5,
        timeout_s: 5.0,
        grpc: Some(Grpc {
            method: "grpc.health.v1.Health/Check".to_owned(),
            message,
            protos: Vec::new(),
            includes: Vec::new(),
            descriptors: None,
            status: None,
        }),
        ..Plan::new(&server.url)
    }
}

fn refused(plan: &Plan) -> LoadError {
    unladen_load::run(plan, &mut |_| {}, &std::sync::atomic::AtomicBool::new(false)).expect_err("refused")
}

#[test]
fn calls_found_by_reflection_are_answered_and_statuses_counted() {
    let server = Server::start(true);
    let outcome = run(&plan(&server, ""));
    assert_eq!((outcome.requests, outcome.errors), (100, 0), "{:?}", outcome.error_classes);
    assert_eq!(outcome.grpc_statuses.into_iter().collect::<Vec<_>>(), [("OK".to_owned(), 100)]);
    // Prefix, tag and value: serving.
    assert_eq!(outcome.bodies.iter().map(|body| (body.length, body.count)).collect::<Vec<_>>(), [(7, 100)]);
    let outcome = run(&plan(&server, "nobody"));
    assert_eq!(outcome.grpc_statuses.into_iter().collect::<Vec<_>>(), [("NOT_FOUND".to_owned(), 100)]);
    assert_eq!(outcome.error_classes.into_iter().collect::<Vec<_>>(), [("grpc".to_owned(), 100)]);
    assert_eq!(outcome.statuses.into_iter().collect::<Vec<_>>(), [(200, 100)]);
}

#[test]
fn a_proto_file_or_a_descriptor_set_does_without_reflection() {
    let server = Server::start(false);
    let folder = tempfile::tempdir().expect("a folder");
    let (proto, set) = (folder.path().join("health.proto"), folder.path().join("health.bin"));
    std::fs::write(&proto, HEALTH).expect("written");
    std::fs::write(&set, FILE_DESCRIPTOR_SET).expect("written");
    let plan = plan(&server, "");
    let call = plan.grpc.clone().expect("given");
    for call in [Grpc { protos: vec![proto], ..call.clone() }, Grpc { descriptors: Some(set), ..call }] {
        let outcome = run(&Plan { grpc: Some(call), ..plan.clone() });
        assert_eq!((outcome.requests, outcome.errors), (100, 0), "{:?}", outcome.error_classes);
    }
    let error = refused(&plan);
    assert!(error.to_string().contains("reflection"), "{error}");
}

#[test]
fn calls_that_do_not_exist_are_refused_before_the_load() {
    let server = Server::start(true);
    let mut plan = plan(&server, "");
    let call = plan.grpc.clone().expect("given");
    for (method, words) in [
        ("grpc.health.v1.Health/Cheque", "Check, Watch"),
        ("grpc.health.v1.Health/Watch", "streaming"),
        ("nobody.Nothing/Do", "nobody.Nothing"),
        ("nonsense", "package.Service/Method"),
    ] {
        plan.grpc = Some(Grpc { method: method.to_owned(), ..call.clone() });
        let error = refused(&plan);
        assert!(matches!(error, LoadError::Grpc { .. }) && error.to_string().contains(words), "{method}: {error}");
    }
    plan.grpc = Some(Grpc { message: serde_json::json!({"colour": "red"}), ..call });
    assert!(refused(&plan).to_string().contains("colour"));
}
