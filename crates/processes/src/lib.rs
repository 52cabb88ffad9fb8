#![doc = include_str!("../README.md")]

pub mod relay;
pub mod subject;
