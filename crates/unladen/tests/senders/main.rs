//! Real senders against the real executable: every SDK and agent sends spans that are known one by one, and the sink has
//! to have exactly those. `make deps` sets the senders up in `target/senders` (sources: `subjects/senders`); one that is
//! not there is a failure, never a test that is left out.

mod agents;
mod libraries;
mod sink;
mod spans;
