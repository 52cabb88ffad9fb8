#![doc = include_str!("../README.md")]

pub mod cli;
pub mod commands;
pub mod guard;
pub mod live;
pub mod progress;
pub mod push;
pub mod serve;
pub mod under_way;
