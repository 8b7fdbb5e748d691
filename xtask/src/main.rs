//! The entry point for all development tasks, so that developers and CI run the same steps.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a task runner prints to the terminal")]

mod arguments;
mod bench;
mod bundle;
mod clients;
mod conformance;
mod described;
mod docs;
mod needs;
mod places;
mod python;
mod scratch;
mod server;
mod soak;
mod step;
mod stores;
mod test;
mod tidy;

use std::process::ExitCode;

use anyhow::{Result, bail};

use arguments::Arguments;

/// Printed by `cargo xtask` without arguments.
const HELP: &str = "\
Development tasks. Run one with `cargo xtask COMMAND`:

  test [--full] [FILTER..]       build, then run unit, integration, doc and Python client tests;
                                 --full adds the conformance suite and more, FILTER selects Rust tests by name
  tidy                           check the project rules that no compiler checks
  docs [--check]                 render docs/reference and the API documentation;
                                 --check only lists stale pages
  bundle PROGRAM FILE.mcpb       pack a program as a bundle that clients install with one click
  conformance                    run the MCP conformance suite against conformance/baseline.yml
  clients [--update]             other people's clients call every tool, and replies are compared with reviewed ones;
                                 --program FILE tests another build
  stores COMMAND..               run a command with TEST_CATALOG and TEST_OBJECTS leading to a PostgreSQL and an S3 server,
                                 which end with it: `stores cargo nextest run --release -p shelf-tools`
  soak [--minutes N]             load from 16 clients with random kills, then check every acknowledged write;
                                 20 minutes by default; --program FILE tests another build
  bench ingest [--quick]         measure adding, re-adding and stored size, next to restic and borg
  bench serve [--quick]          measure start, memory, reads and durable writes over stdio
  bench search [--quick]         measure indexing and searching over stdio, next to tantivy and SQLite's FTS5
  bench grep [--quick]           measure pattern searches over stdio, next to ripgrep
  bench hostile [--quick]        measure 16 clients next to 200 misbehaving connections
  bench gc [--quick]             measure garbage collection of many snapshots
  bench books [--quick]          measure books: lessons, globs, patterns, archives, many agents
  bench collection [--quick]     measure one collection with very many documents and snapshots
  bench cluster [--quick]        measure one library on PostgreSQL and S3 with one, two and three nodes
  bench compare [--quick] --before PROGRAM
                                 measure this program next to an earlier one, in turns

--quick uses corpora of one twentieth of the size: for trying out a change, not for published figures.";

fn main() -> ExitCode {
    match dispatch(Arguments::from_command_line()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the task named by the first argument with the remaining arguments.
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
        Some("clients") => clients::run(arguments),
        Some("soak") => soak::run(arguments),
        Some("bench") => bench::run(arguments),
        Some("bundle") => bundle::run(arguments),
        Some("stores") => stores::run(arguments),
        Some(other) => bail!("there is no task `{other}`; run `cargo xtask` for a list of tasks"),
    }
}
