//! unladen's span sink: receives what instrumentation sends, counts and stores every span. Usable alone.

pub mod config;
pub mod summary;
