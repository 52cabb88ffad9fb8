//! Sentry's envelopes (<https://develop.sentry.dev/sdk/foundations/transport/envelopes/>): transactions and spans, and what an SDK tells of
//! spans that it lost. The key of a DSN stands in for the name of a service, which Sentry does not know.

mod envelope;
pub mod reports;
pub mod spans;

pub use envelope::id;
