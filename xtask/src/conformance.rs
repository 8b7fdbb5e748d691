//! `cargo xtask conformance`: runs the official MCP conformance suite against the server, with a strict baseline.

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
const NODE: &str = "node@22";

/// The protocol revisions that the server supports.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// Runs the suite for every revision against one running server.
pub fn run() -> Result<()> {
    let folder = places::target()?.join("conformance");
    install(&folder)?;
    let shelf = places::built_shelf()?;
    let scratch = Scratch::new("conformance")?;
    let server = Server::start(&shelf, &scratch.path().join("library"))?;
    let verdicts = REVISIONS.map(|revision| judge(&folder, &server, revision));
    let complaints: Vec<String> =
        verdicts.into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect();
    if !complaints.is_empty() {
        bail!("{}", complaints.join("\n"));
    }
    println!("conformance: {} match conformance/baseline.yml", REVISIONS.join(" and "));
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
fn judge(folder: &Path, server: &Server, revision: &str) -> Result<()> {
    let results = folder.join("results").join(revision);
    if results.is_dir() {
        fs::remove_dir_all(&results)?;
    }
    fs::create_dir_all(&results)?;
    let remedy = format!(
        "Fix the unexpected failures, and remove stale entries from conformance/baseline.yml. \
         Requests and replies are in {}",
        results.display()
    );
    step::run(
        &format!("conformance with {revision}"),
        &remedy,
        Command::new(node(folder))
            .arg(suite(folder))
            .args(["server", "--url", &server.endpoint(), "--requirements", revision])
            .arg("--expected-failures")
            .arg(places::root().join("conformance").join("baseline.yml"))
            .arg("-o")
            .arg(&results),
    )
}

fn node(folder: &Path) -> PathBuf {
    folder.join("node_modules/node/bin/node")
}

fn suite(folder: &Path) -> PathBuf {
    folder.join("node_modules/@modelcontextprotocol/conformance/dist/index.js")
}
