//! Fuzz target: what prost decodes the sink decodes, to as many spans.
#![no_main]

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let ours = unladen_sink::fuzz::otlp_protobuf(bytes);
    if let Ok(request) = ExportTraceServiceRequest::decode(bytes) {
        let scopes = request.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
        let spans: usize = scopes.map(|scope| scope.spans.len()).sum();
        assert_eq!(ours, Some(spans as u64));
    }
});
