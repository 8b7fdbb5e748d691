//! One door to every development task, so that a person and a build machine run the very same steps.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a task runner talks to the terminal")]

mod arguments;
mod bench;
mod conformance;
mod described;
mod docs;
mod needs;
mod places;
mod python;
mod scratch;
mod server;
mod step;
mod test;
mod tidy;

use std::process::ExitCode;

use anyhow::{Result, bail};

use arguments::Arguments;

/// What `cargo xtask` prints when it is not told what to do.
const HELP: &str = "\
Development tasks. Run one with `cargo xtask COMMAND`:

  test [--full] [FILTER..]       build, then run unit, integration, doc and Python client tests;
                                 --full adds the conformance suite, FILTER narrows to Rust tests by name
  tidy                           check the rules of the library that no compiler checks
  docs [--check]                 render docs/reference and the API documentation;
                                 --check only says which pages are stale
  conformance                    run the MCP conformance suite against conformance/baseline.yml
  bench ingest [--quick]         measure adding, re-adding and stored size, next to restic and borg
  bench serve [--quick]          measure start, memory, reads and durable writes over stdio
  bench search [--quick]         measure indexing and searching over stdio, next to tantivy and SQLite's FTS5
  bench grep [--quick]           measure patterns over stdio, next to ripgrep

--quick uses corpora of one twentieth of the size: for trying a change, not for figures to quote.";

fn main() -> ExitCode {
    match dispatch(Arguments::from_command_line()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Hands the rest of the command line to the task its first word names.
fn dispatch(mut arguments: Arguments) -> Result<()> {
    match arguments.take_word().as_deref() {
        None | Some("help" | "--help" | "-h") => {
            println!("{HELP}");
            Ok(())
        }
        Some("test") => test::run(arguments),
        Some("tidy") => tidy::run(arguments),
        Some("docs") => docs::run(arguments),
        Some("conformance") => {
            arguments.finish()?;
            conformance::run()
        }
        Some("bench") => bench::run(arguments),
        Some(other) => bail!("there is no task `{other}`; `cargo xtask` lists the tasks"),
    }
}
