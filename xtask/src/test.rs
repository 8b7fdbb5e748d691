//! `cargo xtask test`: all tests that must pass before a change is merged, in the order that fails fastest.

use std::process::Command;

use anyhow::Result;

use crate::arguments::Arguments;
use crate::{clients, conformance, described, needs, places, python, soak, step};

/// Runs the tests. With filters, only matching Rust tests run, and the tests in Python are skipped.
pub fn run(mut arguments: Arguments) -> Result<()> {
    let full = arguments.take_flag("--full");
    let filters = arguments.take_rest()?;
    needs::ensure()?;
    let shelf = places::built_shelf()?;
    rust_tests(&filters, full)?;
    doc_tests(&filters)?;
    if filters.is_empty() {
        python::client_test(&shelf)?;
        python::console_test(&shelf)?;
    }
    if full {
        conformance::run()?;
        described::run(&shelf)?;
        clients::tour(&shelf, false)?;
        soak::for_minutes(&shelf, soak::MINUTES)?;
    }
    for (tool, what) in [("deny", "licences and sources of dependencies"), ("machete", "unused dependencies")]
    {
        if !step::succeeds("cargo", &[tool, "--version"]) {
            println!(
                "test: {what} were not checked; `cargo install --locked cargo-{tool}` installs the check"
            );
        }
    }
    println!("test: all passed");
    Ok(())
}

/// The number of rounds of the long tests with `--full`; the default is a few.
const ROUNDS: &str = "200";
/// How long the storm over several nodes lasts with `--full`; half a minute otherwise.
const STORM_SECONDS: &str = "600";

fn rust_tests(filters: &[String], full: bool) -> Result<()> {
    let remedy = "Fix the failures above; `cargo xtask test NAME` runs a single test.";
    let mut command = step::cargo();
    if step::succeeds("cargo-nextest", &["nextest", "--version"]) {
        command.args(["nextest", "run", "--release", "--workspace"]).args(filters);
    } else {
        command.args(["test", "--release", "--workspace", "--bins", "--lib", "--tests", "--"]).args(filters);
    }
    if full {
        command.env("TEST_ROUNDS", ROUNDS).env("TEST_STORM_SECONDS", STORM_SECONDS);
    }
    step::run("running the Rust tests", remedy, without_personal_settings(&mut command))
}

fn doc_tests(filters: &[String]) -> Result<()> {
    step::run(
        "running the documentation tests",
        "Fix the examples listed above.",
        step::cargo().args(["test", "--release", "--workspace", "--doc", "--"]).args(filters),
    )
}

/// Removes `SHELF_*` variables, so that personal settings do not affect the tests.
fn without_personal_settings(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("SHELF_")) {
            command.env_remove(name);
        }
    }
    command
}
