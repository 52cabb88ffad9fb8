//! The load generator alone: a plan as JSON on standard input, events as JSON lines on standard output.
//!
//! `echo '{"url":"http://127.0.0.1:8080/", …}' | cargo run --release -p unladen-load --example generator`

use std::process::ExitCode;

fn main() -> ExitCode {
    unladen_load::child::main(std::io::stdin(), std::io::stdout())
}
