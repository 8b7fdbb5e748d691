//! `shelf`: the command line and the servers of Shelfmark.
//!
//! Arguments are parsed, settings are resolved once, and a command runs. Daily verbs call the same tools that agents
//! call, so that people and agents see one behaviour. stdout is data, stderr is talk.

mod cli;
mod commands;
mod memory;
mod outcome;
mod output;
mod process;
mod progress;
mod settings;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    memory::give_back_early();
    process::prepare();
    let arguments = cli::Arguments::parse();
    let output = output::Output::new(&arguments.global);
    match commands::run(arguments, &output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output.error(&error);
            ExitCode::from(error.exit)
        }
    }
}
