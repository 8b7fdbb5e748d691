//! Paths in a checkout, defined in one place so that no task ignores `CARGO_TARGET_DIR`.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::step;

/// The root of the checkout.
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
            "the build did not produce {}; check that the binary of crates/shelf is still named `shelf`",
            shelf.display()
        );
    }
    Ok(shelf)
}

/// The release build of the server that the conformance suite tests, with the suite's own tools, prompts and resources.
pub fn built_fixture() -> Result<PathBuf> {
    step::run(
        "building the server with the fixtures of the conformance suite",
        "Fix the compiler errors above.",
        step::cargo()
            .args(["build", "--release", "--workspace", "--example", "conformance"])
            .args(["--features", "shelf-serve/conformance"]),
    )?;
    Ok(target()?.join("release").join("examples").join("conformance"))
}

/// Builds every program of the workspace in the release profile.
///
/// The package selection is always the same: a different one would unify features differently and compile the
/// dependencies a second time.
pub fn build_programs() -> Result<()> {
    step::run(
        "building the programs",
        "Fix the compiler errors above.",
        step::cargo().args(["build", "--release", "--workspace", "--bins"]),
    )
}
