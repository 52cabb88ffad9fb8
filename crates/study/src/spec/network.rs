//! Which network the services are in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which network the services of a run are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Each variant has one of its own, with a 127.0.0.1 and ports that it shares with nobody.
    Own,
    /// That of the machine.
    Host,
}
