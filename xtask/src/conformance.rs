//! `cargo xtask conformance`: runs the official MCP conformance suite twice.
//!
//! First against a build that mounts the suite's own tools, prompts and resources, where every check must pass. Then
//! against the program as it is shipped, where the baseline names the checks that need those fixtures, and no others.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::scratch::Scratch;
use crate::server::Server;
use crate::{places, step};

/// The suite is pinned: each version has different scenarios and needs a different baseline.
const SUITE: &str = "@modelcontextprotocol/conformance@0.2.0-alpha.12";

/// The suite needs a newer Node than many systems have, so one is installed with it.
pub const NODE: &str = "node@22";

/// The protocol revisions that the server supports.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// Runs the suite for every revision against both servers.
pub fn run() -> Result<()> {
    let folder = places::target()?.join("conformance");
    install(&folder)?;
    let (shelf, fixture) = (places::built_shelf()?, places::built_fixture()?);
    let scratch = Scratch::new("conformance")?;
    let whole = Server::start_fixture(&fixture, &scratch.path().join("fixture"))?;
    let shipped = Server::start(&shelf, &scratch.path().join("library"))?;
    let baseline = places::root().join("conformance").join("baseline.yml");
    let complaints: Vec<String> = REVISIONS
        .into_iter()
        .flat_map(|revision| {
            [
                judge(&folder, ("all checks", &whole), None, revision),
                judge(&folder, ("the shipped program", &shipped), Some(&baseline), revision),
            ]
        })
        .filter_map(|verdict| verdict.err().map(|error| format!("{error:#}")))
        .collect();
    if !complaints.is_empty() {
        bail!("{}", complaints.join("\n"));
    }
    println!(
        "conformance: all checks of {} pass, and the shipped program matches conformance/baseline.yml",
        REVISIONS.join(" and ")
    );
    Ok(())
}

/// Installs the suite and Node once; the stamp records what is installed.
fn install(folder: &Path) -> Result<()> {
    let stamp = folder.join("installed");
    let wanted = format!("{SUITE} {NODE}\n");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) && node(folder).is_file() {
        return Ok(());
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    fs::write(folder.join("package.json"), "{\"private\": true}\n")?;
    step::run(
        "installing the conformance suite",
        "Install npm (Debian: npm), and make sure that it can reach its registry and run install scripts.",
        Command::new("npm")
            .args(["install", "--no-audit", "--no-fund", "--loglevel=error"])
            .args([SUITE, NODE])
            .current_dir(folder),
    )?;
    fs::write(stamp, wanted)?;
    Ok(())
}

/// Tests one revision; the suite fails both on an unexpected failure and on a stale baseline entry.
fn judge(
    folder: &Path,
    (what, server): (&str, &Server),
    baseline: Option<&Path>,
    revision: &str,
) -> Result<()> {
    let results = folder.join("results").join(what.replace(' ', "-")).join(revision);
    if results.is_dir() {
        fs::remove_dir_all(&results)?;
    }
    fs::create_dir_all(&results)?;
    let remedy = format!(
        "Fix the unexpected failures, and remove stale entries from conformance/baseline.yml. \
         Requests and replies are in {}",
        results.display()
    );
    let mut command = Command::new(node(folder));
    command.arg(suite(folder)).args(["server", "--url", &server.endpoint(), "--requirements", revision]);
    if let Some(baseline) = baseline {
        command.arg("--expected-failures").arg(baseline);
    }
    step::run(&format!("conformance of {what} with {revision}"), &remedy, command.arg("-o").arg(&results))
}

fn node(folder: &Path) -> PathBuf {
    folder.join("node_modules/node/bin/node")
}

fn suite(folder: &Path) -> PathBuf {
    folder.join("node_modules/@modelcontextprotocol/conformance/dist/index.js")
}
