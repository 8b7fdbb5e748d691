//! Manages a Python environment with the official MCP client, to test against a client that we did not write.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::{needs, places, step};

/// The client package; version 2 is the first that supports both protocol eras.
const CLIENT: &str = "mcp>=2";

/// Fails unless a version of the client that supports both eras is installed.
const PROBE: &str = "from mcp import Client, MCPError, StdioServerParameters";

/// Runs the client test against the given program; `stores` are the variables that lead to shared stores, if they are used.
pub fn client_test(shelf: &Path, stores: &[(&'static str, String)]) -> Result<()> {
    let interpreter = interpreter()?;
    let script = places::root().join("tests").join("python").join("client_test.py");
    let what = if stores.is_empty() { "" } else { " on PostgreSQL and S3" };
    step::run(
        &format!("testing with the Python client{what}"),
        "Fix the failure, or run tests/python/client_test.py manually to investigate.",
        Command::new(interpreter)
            .arg(script)
            .arg(shelf)
            .envs(stores.iter().map(|(name, value)| (name, value)))
            .env("PYTHONDONTWRITEBYTECODE", "1"),
    )
}

/// The browser that the console is tested in: Debian's own.
const BROWSER: &str = "/usr/bin/chromium";
/// The package that drives it.
const DRIVER: &str = "playwright";
/// The package that looks for pages that some people cannot use. It is used by the test only, and never shipped.
const ACCESSIBILITY: &str = "axe-core@4";

/// Tests the web console in a browser. Where there is none, and none can be installed, a line says so.
pub fn console_test(shelf: &Path) -> Result<()> {
    let skipped = |remedy: &str| {
        println!("SKIPPED: the web console was not tested in a browser; {remedy}");
        Ok(())
    };
    if !needs::offer(|| Path::new(BROWSER).exists(), &["chromium"]) {
        return skipped("install chromium with `apt-get install chromium`");
    }
    let interpreter = interpreter()?;
    let name = interpreter.to_string_lossy().into_owned();
    let probe = format!("import {DRIVER}.sync_api");
    if !step::succeeds(&name, &["-c", &probe])
        && !step::succeeds(&name, &["-m", "pip", "install", "--quiet", DRIVER])
    {
        return skipped(&format!("`{name} -m pip install {DRIVER}` failed"));
    }
    let script = places::root().join("tests").join("python").join("console_test.py");
    let shots = places::target()?.join("console");
    let mut command = Command::new(interpreter);
    command.arg(script).arg(shelf).arg(shots).env("PYTHONDONTWRITEBYTECODE", "1");
    match accessibility()? {
        Some(file) => drop(command.env("AXE", file)),
        None => println!(
            "SKIPPED: the web console was not checked for accessibility; install npm with `apt-get install npm`"
        ),
    }
    step::run(
        "testing the web console in a browser",
        "Fix the failure, or run tests/python/console_test.py manually to investigate.",
        &mut command,
    )
}

/// The script of the accessibility check, fetched on first use; `None` where it cannot be had.
fn accessibility() -> Result<Option<PathBuf>> {
    let folder = places::target()?.join("axe");
    let file = folder.join("node_modules").join("axe-core").join("axe.min.js");
    if !file.exists() && needs::offer(|| step::succeeds("npm", &["--version"]), &["npm"]) {
        let to = folder.to_string_lossy().into_owned();
        let arguments = ["install", "--silent", "--no-audit", "--no-fund", "--prefix", &to, ACCESSIBILITY];
        step::succeeds("npm", &arguments);
    }
    Ok(file.exists().then_some(file))
}

/// The environment's interpreter, set up on first use.
fn interpreter() -> Result<PathBuf> {
    let folder = places::target()?.join("python");
    let interpreter = folder.join("bin").join("python");
    let name = interpreter.to_string_lossy().into_owned();
    if step::succeeds(&name, &["-c", PROBE]) {
        return Ok(interpreter);
    }
    step::run(
        "creating a Python environment",
        "Install python3-venv (or the venv module of your Python).",
        Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder),
    )?;
    step::run(
        "installing the Python MCP client",
        &format!(
            "pip could not install `{CLIENT}`: it needs Python 3.10 or newer and a reachable package index. \
             Install it yourself with `{name} -m pip install '{CLIENT}'`."
        ),
        Command::new(&interpreter).args(["-m", "pip", "install", "--quiet", CLIENT]),
    )?;
    step::run(
        "checking the Python MCP client",
        &format!("Remove {} and run the test again.", folder.display()),
        Command::new(&interpreter).args(["-c", PROBE]),
    )?;
    Ok(interpreter)
}
