//! Apache SkyWalking's segments, version 3 (apache/skywalking-data-collect-protocol), as Protocol Buffers or JSON.

mod found;
pub mod json;
pub mod segment;
