//! `cargo xtask test`: all tests that must pass before a change is merged, in the order that fails fastest.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::arguments::Arguments;
use crate::stores::Stores;
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
        python::client_test(&shelf, &[])?;
        python::console_test(&shelf)?;
        on_shared_stores(&shelf)?;
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

/// Tests at a time on shared stores: the database of the tests accepts 120 connections.
const THREADS: &str = "4";

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

/// Runs the tests of tools and identities, and the Python client, a second time: with every library in PostgreSQL and a bucket.
/// One server of each serves them all.
fn on_shared_stores(shelf: &Path) -> Result<()> {
    let Some(stores) = Stores::start() else {
        println!("SKIPPED: tools, identities and the Python client on shared stores. Install: postgresql");
        return Ok(());
    };
    let variables = stores.test_variables();
    let mut command = step::cargo();
    if step::succeeds("cargo-nextest", &["nextest", "--version"]) {
        command.args(["nextest", "run", "--release", "--workspace", "--test-threads", THREADS]);
        command.args(["-E", "package(shelf-tools) & kind(test)"]);
    } else {
        command.args([
            "test",
            "--release",
            "--workspace",
            "--test",
            "store",
            "--",
            "--test-threads",
            THREADS,
        ]);
    }
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    step::run(
        "running the tests of tools and identities on PostgreSQL and S3",
        "Fix the failures above; `cargo xtask stores` runs a single test that way: see CONTRIBUTING.md.",
        without_personal_settings(&mut command),
    )?;
    python::client_test(shelf, &variables)
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
