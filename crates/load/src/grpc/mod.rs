//! Unary gRPC calls: the method and its message, made ready once. On the wire a call is an HTTP/2 request whose body is a length
//! and the message (<https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>); the status comes in the trailers.

#[cfg(feature = "grpc")]
mod call;
#[cfg(not(feature = "grpc"))]
#[path = "left_out.rs"]
mod call;
pub(crate) mod status;

pub(crate) use call::prepare;
