//! The executable: parse, dispatch, exit code.

use std::process::ExitCode;

use clap::Parser;
use unladen::cli::{Cli, Command};
use unladen::commands;
use unladen_processes::{relay, subject};

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Demo(options) => commands::measure::demo(&options),
        Command::Run(options) => commands::measure::run(&options),
        Command::Compare(options) => commands::measure::compare(&options),
        Command::Agents(options) => commands::agents::agents(&options),
        Command::Report(options) => commands::judge::report(&options),
        Command::Gate(options) => commands::judge::gate(&options),
        Command::Serve(options) => commands::serve::serve(&options),
        Command::Merge(options) => commands::merge::merge(&options),
        Command::Prune(options) => commands::prune::prune(&options),
        Command::Fetch(options) => commands::cluster::fetch(&options),
        Command::Clean(options) => commands::cluster::clean(&options),
        Command::Import(options) => commands::import::import(&options),
        Command::Load(options) => commands::load::load(&options),
        Command::Sink(options) => commands::sink::sink(&options),
        Command::Doctor(options) => commands::doctor::doctor(&options),
        Command::Schema => commands::print(&unladen_study::schema::schema_text()),
        Command::Completions { shell } => commands::completions(shell),
        Command::Man { dir } => commands::man(&dir),
        Command::DemoSubject(options) => unladen_demo::main(options).map(|()| ExitCode::SUCCESS),
        Command::InPod(what) => commands::cluster::in_pod(&what),
        Command::LoadProcess => return unladen_load::child::main(std::io::stdin(), std::io::stdout()),
        Command::TurnsProcess => return unladen_measure::turns::main(std::io::stdin(), std::io::stdout()),
        Command::LoadPart => commands::cluster::load_part(),
        Command::Probe { port } => commands::cluster::probe(port),
        Command::SinkProcess => {
            return unladen_sink::child::main(std::io::stdin(), std::io::stdout(), std::io::stderr());
        }
        Command::RelayProcess => return relay::main(std::io::stdin(), std::io::stdout()),
        Command::GuardProcess => return subject::guard::main(),
    };
    outcome.unwrap_or_else(|error| {
        let words = commands::in_words(&error);
        anstream::eprintln!("{}error:{} {words}", commands::RED.render(), commands::RED.render_reset());
        commands::exit_code(&error)
    })
}
