#![doc = include_str!("../README.md")]

pub mod admitted;
pub mod blocks;
pub mod notices;
pub mod profile;
pub mod read;
pub mod record;
pub mod role;
pub mod spans;
pub mod timeline;
pub mod units;
pub mod write;
