//! What a core and a gigabyte cost the user, so that a cost per request becomes money a year.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unladen_journal::units::{Bytes, Ratio};

/// Traffic and prices of the service in production. What is measured here is applied to them unchanged: the same cost per
/// request, the same memory per instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Requests per second that the service answers in production, on average over the year.
    pub requests_per_second: f64,
    /// Running instances (processes, pods) of the service; each needs the memory.
    #[serde(default = "one")]
    pub instances: u32,
    /// Price of one core for an hour.
    #[serde(default)]
    pub core_hour: Option<f64>,
    /// Price of one GiB of memory for an hour.
    #[serde(default)]
    pub gib_hour: Option<f64>,
    /// What machines the service runs on, to tell how many more of them are needed.
    #[serde(default)]
    pub instance: Option<Instance>,
    /// Currency of the prices, for the report.
    #[serde(default = "currency")]
    pub currency: String,
}

/// One machine that instances run on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Its cores.
    pub cores: f64,
    /// Its memory.
    #[serde(default)]
    pub memory: Option<Bytes>,
    /// How much of it may be used before another one is needed.
    #[serde(default = "utilisation")]
    pub utilisation: Ratio,
    /// Price of one for an hour.
    #[serde(default)]
    pub hour: Option<f64>,
}

fn one() -> u32 {
    1
}

fn currency() -> String {
    "EUR".to_owned()
}

fn utilisation() -> Ratio {
    Ratio(0.6)
}
