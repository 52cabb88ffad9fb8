#![doc = include_str!("../README.md")]

mod consumer;
mod knobs;
pub mod options;
mod provider;
mod provider_client;
mod server;
mod telemetry;
#[cfg(test)]
mod tests;
mod work;

use anyhow::Context as _;
pub use options::Options;

/// The study that `unladen demo` runs, as YAML. `${unladen}` stands for this executable.
pub const STUDY: &str = include_str!("study.yaml");

/// Is the consumer or the provider until SIGTERM or SIGINT.
///
/// # Errors
/// If the port cannot be bound, or the consumer is asked for something that it cannot have (memory to hold, an
/// exporter for an endpoint that is no URL).
pub fn main(options: Options) -> anyhow::Result<()> {
    // One thread: the subject gets one core, and a second worker would only add switches between the two.
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the asynchronous runtime")?
        .block_on(async {
            match options {
                Options::Consumer(options) => consumer::run(*options).await,
                Options::Provider(options) => provider::run(options).await,
            }
        })
}
