//! The load generator against real sockets: one binary, so that it links once.

mod child;
mod engine;
mod pacing;
mod scripts;
mod server;
