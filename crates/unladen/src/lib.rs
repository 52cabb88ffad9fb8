//! unladen: what does instrumentation cost a service, and do its spans arrive?
//!
//! The executable: what was typed, and what is shown of a study under way and of those that were judged. The work is done by the
//! crates beside it, in one direction, no back and forth: `study` → `measure` → `journal` → `judge` → `report`. See
//! `ARCHITECTURE.md`.

pub mod cli;
pub mod commands;
pub mod demo;
pub mod guard;
pub mod live;
pub mod progress;
pub mod push;
pub mod serve;
pub mod under_way;
