//! The generator as a process of its own, without the rest of unladen: a plan as JSON in, events as JSON lines out. For
//! profiling and for the benchmark's development; `unladen load` is the same code.

use std::process::ExitCode;

fn main() -> ExitCode {
    unladen_load::child::main(std::io::stdin(), std::io::stdout())
}
