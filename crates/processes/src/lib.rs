#![doc = include_str!("../README.md")]

mod ask;
pub mod linux;
pub mod probe;
pub mod profile;
pub mod relay;
pub mod scrape;
pub mod subject;
