//! Datadog's tracers: traces as MessagePack, versions 0.3 to 1.0, and what the tracers tell of spans that they dropped.

pub mod losses;
#[cfg(test)]
mod message;
mod msgpack;
pub mod spans;
pub mod streamed;
