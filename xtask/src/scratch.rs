//! A temporary folder that is removed when dropped, so that tasks clean up even when they fail.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

/// A new empty folder in the system's temporary folder.
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Creates the folder; `purpose` becomes part of its name.
    pub fn new(purpose: &str) -> Result<Self> {
        let moment = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let name = format!("shelf-{purpose}-{}-{moment}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).with_context(|| format!("cannot create the folder {}", path.display()))?;
        Ok(Self { path })
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("xtask: {} could not be removed: {error}", self.path.display());
        }
    }
}
