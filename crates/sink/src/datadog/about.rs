//! What the sink says of itself to Datadog's tracers: `GET /info`.

use bytes::Bytes;
use hmac_sha256::Hash;
use http::{HeaderMap, HeaderValue};
use serde_json::json;

use super::{STATS, TELEMETRY, V03, V04, V05, V10};

/// Where it stands.
pub(super) const PATH: &str = "/info";
/// The agent that tracers take the sink for.
const VERSION: &str = "7.80.0";
/// On every answer: when it changes, tracers ask again.
const STATE: &str = "datadog-agent-state";

/// The answer to `/info`, and its digest.
#[derive(Debug)]
pub(crate) struct About {
    body: Bytes,
    state: Option<HeaderValue>,
}

impl About {
    /// `statsd_port` is where tracers are to send their own metrics over UDP.
    pub(crate) fn new(statsd_port: u16) -> Self {
        // An endpoint that is not listed is not used. A tracer that finds `client_drop_p0s` and the stats counts by itself what it
        // does not send: part of what it costs in production.
        let body = json!({
            "version": VERSION,
            "endpoints": [V03, V04, V05, V10, STATS, TELEMETRY],
            "client_drop_p0s": true,
            "span_meta_structs": true,
            "span_events": true,
            "long_running_spans": true,
            "peer_tags": [],
            "config": { "default_env": "none", "statsd_port": statsd_port },
        });
        Self::of(body.to_string().into())
    }

    fn of(body: Bytes) -> Self {
        let hex = Hash::hash(&body).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        Self { body, state: HeaderValue::from_str(&hex).ok() }
    }

    /// JSON.
    pub(super) fn body(&self) -> Bytes {
        self.body.clone()
    }

    /// Says on an answer which state it comes from.
    pub(super) fn sign(&self, headers: &mut HeaderMap) {
        if let Some(state) = &self.state {
            headers.insert(STATE, state.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Java's tracer compares it with a digest of its own, and asks after every payload if they differ.
    #[test]
    fn state_is_the_digest_of_the_body() {
        let mut headers = HeaderMap::new();
        About::of(Bytes::from_static(b"abc")).sign(&mut headers);
        // The example of FIPS 180-4.
        assert_eq!(headers[STATE], "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_ne!(About::new(8126).state, About::new(8125).state, "another port is another state");
    }
}
