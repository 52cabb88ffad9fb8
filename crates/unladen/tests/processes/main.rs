//! `subject` and `probe` on real processes: children that burn, hold, fork, hide, refuse to go or die at once.
//!
//! The children are this same test binary, started again on the test [`child::child`], or plain shell commands.

mod child;
mod guarding;
mod jvm;
mod networks;
mod probing;
mod scratch;
mod starting;
mod stopping;
