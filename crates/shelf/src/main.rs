//! `shelf`: the command line and the servers of Shelfmark.
//!
//! Arguments are parsed, settings are resolved once, and a command runs. Most commands call the same tools that agents
//! call, so that people and agents see the same behaviour. Data goes to stdout, messages go to stderr.

mod cli;
mod commands;
mod drawing;
mod memory;
mod outcome;
mod output;
mod process;
mod progress;
mod settings;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    memory::give_back_early();
    if let Some(code) = drawing::when_asked() {
        return code;
    }
    process::prepare();
    let arguments = cli::Arguments::read();
    let output = output::Output::new(&arguments.global);
    match commands::run(arguments, &output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output.error(&error);
            ExitCode::from(error.exit)
        }
    }
}
