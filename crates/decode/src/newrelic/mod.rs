//! The spans of New Relic's agents: as JSON to its collector, a sample of them, or as Protocol Buffers in a stream (Infinite Tracing), all
//! of them. A span is three maps: what the agent says of it (intrinsics), attributes of the program, attributes of the agent. Their names
//! and units are those of <https://github.com/newrelic/newrelic-python-agent> and its kin; the field's names replace the agent's where
//! there are any.

mod found;
pub mod json;
pub mod protobuf;
