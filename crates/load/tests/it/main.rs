//! The load generator against real sockets: one binary, so that it links once.

mod alternate;
mod certificates;
mod child;
mod counts;
mod engine;
mod grpc;
mod h2;
mod h2_server;
mod hostile;
mod pacing;
mod parts;
mod redirects;
mod scripts;
mod scripts_h2;
mod server;
mod tls;
mod truth;
