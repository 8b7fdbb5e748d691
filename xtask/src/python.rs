//! Manages a Python environment with the official MCP client, to test against a client that we did not write.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::{places, step};

/// The client package; version 2 is the first that supports both protocol eras.
const CLIENT: &str = "mcp>=2";

/// Fails unless a version of the client that supports both eras is installed.
const PROBE: &str = "from mcp import Client, MCPError, StdioServerParameters";

/// Runs the client test against the given program.
pub fn client_test(shelf: &Path) -> Result<()> {
    let interpreter = interpreter()?;
    let script = places::root().join("tests").join("python").join("client_test.py");
    step::run(
        "testing with the Python client",
        "Fix the failure, or run tests/python/client_test.py manually to investigate.",
        Command::new(interpreter).arg(script).arg(shelf).env("PYTHONDONTWRITEBYTECODE", "1"),
    )
}

/// The browser that the console is tested in: Debian's own.
const BROWSER: &str = "/usr/bin/chromium";
/// The package that drives it.
const DRIVER: &str = "playwright";

/// Tests the web console in a browser. Where there is none, a line says so.
pub fn console_test(shelf: &Path) -> Result<()> {
    if !Path::new(BROWSER).exists() {
        println!(
            "test: the web console was not tested in a browser; `apt-get install chromium` installs one"
        );
        return Ok(());
    }
    let interpreter = interpreter()?;
    let name = interpreter.to_string_lossy().into_owned();
    let probe = format!("import {DRIVER}.sync_api");
    if !step::succeeds(&name, &["-c", &probe])
        && !step::succeeds(&name, &["-m", "pip", "install", "--quiet", DRIVER])
    {
        println!(
            "test: the web console was not tested in a browser; `{name} -m pip install {DRIVER}` failed"
        );
        return Ok(());
    }
    let script = places::root().join("tests").join("python").join("console_test.py");
    let shots = places::target()?.join("console");
    step::run(
        "testing the web console in a browser",
        "Fix the failure, or run tests/python/console_test.py manually to investigate.",
        Command::new(interpreter).arg(script).arg(shelf).arg(shots).env("PYTHONDONTWRITEBYTECODE", "1"),
    )
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
