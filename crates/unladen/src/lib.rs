//! unladen: what does instrumentation cost a service, and do its spans arrive?
//!
//! One direction, no back and forth: `study` → `run` → `journal` → `judge` → `report`. `run` drives `subject` and
//! `probe` and, as processes of their own, the load generator and the sink. See `ARCHITECTURE.md`.

pub mod cli;
pub mod commands;
pub mod demo;
pub mod guard;
pub mod live;
pub mod progress;
pub mod push;
pub mod serve;
pub mod under_way;
