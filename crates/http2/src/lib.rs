#![doc = include_str!("../README.md")]

pub mod frame;
pub mod hpack;
mod huffman;
mod static_table;
