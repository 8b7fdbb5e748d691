//! Where things are in a checkout, in one place, so that no task guesses a path or forgets CARGO_TARGET_DIR.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::step;

/// The top of the checkout.
pub fn root() -> PathBuf {
    let manifest = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Cargo's output folder.
pub fn target() -> Result<PathBuf> {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => std::path::absolute(&folder).context("cannot make CARGO_TARGET_DIR absolute"),
        None => Ok(root().join("target")),
    }
}

/// The release build of the program, built now if it is not up to date.
pub fn built_shelf() -> Result<PathBuf> {
    build_programs()?;
    let shelf = target()?.join("release").join("shelf");
    if !shelf.is_file() {
        bail!(
            "the build gave no {}; check that crates/shelf still names its binary `shelf`",
            shelf.display()
        );
    }
    Ok(shelf)
}

/// Builds every program of the workspace as it ships.
///
/// Always with the same package selection: another one would join features differently and compile
/// the dependencies a second time.
pub fn build_programs() -> Result<()> {
    step::run(
        "building the programs",
        "Correct what the compiler said above.",
        step::cargo().args(["build", "--release", "--workspace", "--bins"]),
    )
}
