//! The sink as a process: a configuration as one line of JSON on standard input, events on standard output. The same as
//! `unladen __sink`, in an executable that builds without the rest of unladen.

use std::process::ExitCode;

fn main() -> ExitCode {
    unladen_sink::child::main(std::io::stdin(), std::io::stdout(), std::io::stderr())
}
