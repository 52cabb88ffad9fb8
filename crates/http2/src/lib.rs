#![doc = include_str!("../README.md")]

pub mod connection;
pub mod flow;
pub mod frame;
pub mod hpack;
mod huffman;
mod static_table;
mod violation;

pub use violation::Violation;
