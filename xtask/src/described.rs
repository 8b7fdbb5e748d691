//! Holds REST to its own description: schemathesis makes requests from the OpenAPI document, good and bad, and fails on
//! a reply that the document does not allow, or on a server error.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::scratch::Scratch;
use crate::server::Server;
use crate::{places, step};

/// The checker, pinned: another version makes other requests.
const CHECKER: &str = "schemathesis==4.32.5";

/// What a reply is held to. `--no-auth` serves everybody, so checks of authorisation say nothing here.
const CHECKS: &str =
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";

/// Runs the checker against a live server.
pub fn run(shelf: &Path) -> Result<()> {
    let program = program()?;
    let scratch = Scratch::new("described")?;
    let workspace = scratch.path().join("workspace");
    std::fs::create_dir_all(workspace.join("docs"))?;
    let server = Server::start_with_workspace(shelf, &scratch.path().join("library"), &workspace)?;
    let document = format!("http://{}/api/v1/openapi.json", server.address());
    step::run(
        "holding REST to its description",
        "Correct the reply, or the description in crates/serve/src/http/openapi.rs.",
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
        "making a Python environment",
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
