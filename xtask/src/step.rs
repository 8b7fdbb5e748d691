//! Runs external commands as named steps, so that every failure says which step failed and what to do next.

use std::env;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::places;

/// Prints `what`, runs `command` with inherited output, and includes `remedy` in the error if it fails.
pub fn run(what: &str, remedy: &str, command: &mut Command) -> Result<()> {
    println!("== {what}");
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command
        .status()
        .with_context(|| format!("{what}: cannot start `{program}`. Install it or put it on the PATH."))?;
    if !status.success() {
        bail!("{what} failed ({status}). {remedy}");
    }
    Ok(())
}

/// A cargo command in the root of the checkout.
///
/// The variables that `cargo run` sets for xtask itself are removed: build scripts that watch them would otherwise
/// rerun on every switch between `cargo` and `cargo xtask`.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(places::root());
    for (name, _) in env::vars_os() {
        let own = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "LD_LIBRARY_PATH"
        });
        if own {
            command.env_remove(name);
        }
    }
    command
}

/// Whether the command succeeds; its output is discarded.
pub fn succeeds(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The first line that the command prints; `None` if it is not installed or fails.
pub fn first_line(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().ok()?;
    if !output.status.success() {
        return None;
    }
    String::from_utf8_lossy(&output.stdout).lines().next().map(|line| line.trim().to_owned())
}
