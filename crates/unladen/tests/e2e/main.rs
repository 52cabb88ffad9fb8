//! End to end: the real executable, real processes, real load, the way a user runs it.
//!
//! Tests that need the whole machine take turns ([`harness::on_all_cores`]); those whose load and service may share a core run beside
//! each other ([`harness::on_a_core`]), and those that only count share theirs with another one ([`harness::counting`]). Everything
//! listens on loopback and on free ports.

mod agents;
mod alternation;
mod cluster;
mod compose;
mod containers;
mod decisions;
mod engine;
mod failures;
mod governed;
mod harness;
mod identical;
mod in_cluster;
mod interrupted;
mod interrupted_turns;
mod jvm;
mod load_command;
mod loads;
mod losses;
mod machine;
mod open_ended;
mod power;
mod profile;
mod python;
mod real_services;
mod recovered;
mod refusals;
mod rules;
mod scrape;
mod shop;
mod sink;
mod studies;
mod tickets;
mod truth;
