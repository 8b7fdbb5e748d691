//! Tests the REST API against its OpenAPI document: schemathesis generates valid and invalid requests from it, and
//! fails on a server error or on a reply that the document does not allow.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::scratch::Scratch;
use crate::server::Server;
use crate::{places, step};

/// The checker is pinned: each version generates different requests.
const CHECKER: &str = "schemathesis==4.32.5";

/// The checks to run. The server runs with `--no-auth`, so authorization checks would be meaningless.
const CHECKS: &str =
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";

/// Runs the checker against a running server.
pub fn run(shelf: &Path) -> Result<()> {
    let program = program()?;
    let scratch = Scratch::new("described")?;
    let workspace = scratch.path().join("workspace");
    std::fs::create_dir_all(workspace.join("docs"))?;
    let server = Server::start_with_workspace(shelf, &scratch.path().join("library"), &workspace)?;
    let document = format!("http://{}/api/v1/openapi.json", server.address());
    step::run(
        "testing REST against its OpenAPI document",
        "Fix the reply, or the document in crates/serve/src/http/openapi.rs.",
        Command::new(program)
            .args(["run", &document, "--checks", CHECKS, "--max-examples", "25", "--seed", "1"])
            .args(["--workers", "1", "--request-timeout", "20", "--phases", "examples,fuzzing"])
            .current_dir(scratch.path()),
    )
}

/// The checker's program, installed on first use.
fn program() -> Result<PathBuf> {
    let folder = places::target()?.join("schemathesis");
    let program = folder.join("bin").join("schemathesis");
    if step::succeeds(&program.to_string_lossy(), &["--version"]) {
        return Ok(program);
    }
    step::run(
        "creating a Python environment",
        "Install python3-venv (or the venv module of your Python).",
        Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder),
    )?;
    step::run(
        "installing schemathesis",
        &format!("pip could not install `{CHECKER}`: it needs a reachable package index."),
        Command::new(folder.join("bin").join("pip")).args(["install", "--quiet", CHECKER]),
    )?;
    Ok(program)
}
