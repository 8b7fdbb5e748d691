//! The workspace: a folder of the user's whose files an agent may read, within rules, and whose memory it may append to.
//!
//! The folder is opened once. Every path is first judged by its words, then resolved beneath the handle and judged again
//! as what it really is, and at last opened step by step without following any link: nothing that is swapped in between
//! leads anywhere else.

mod memory;
mod read;
mod rules;
mod secrets;

use std::path::{Path, PathBuf};

use cap_std::{ambient_authority, fs::Dir};
pub use memory::{Appended, MemoryFile};
pub use read::{RepoFile, RepoWindow};
use rules::Rules;

use crate::{House, Result};

/// Where the workspace is, and what beyond the contract's folders may be read.
#[derive(Clone, Debug, Default)]
pub struct WorkspaceSettings {
    /// Its folder.
    pub root: PathBuf,
    /// Further globs that may be read.
    pub also: Vec<String>,
}

/// Why the workspace did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The path may not be read; whether it exists is not told.
    #[error("Path is not allowed: {0}")]
    PathNotAllowed(String),
    /// Nothing is there.
    #[error("File not found: {path}{}", near_text(near))]
    NotFound {
        /// The path.
        path: String,
        /// Names that are near.
        near: Vec<String>,
    },
    /// The file is not one that may be appended to.
    #[error("Writing to '{file}' is not allowed: {why}")]
    WriteNotAllowed {
        /// The file.
        file: String,
        /// Why not, and what to do.
        why: &'static str,
    },
    /// The entry is larger than the bound.
    #[error("The entry has {bytes} bytes as compact JSON; at most {limit} are allowed")]
    EntryTooLarge {
        /// Its size.
        bytes: usize,
        /// The bound.
        limit: usize,
    },
    /// The request is wrong.
    #[error("{0}")]
    Invalid(String),
    /// There is no workspace here.
    #[error("No workspace is configured on this server")]
    Absent,
    /// The operating system failed.
    #[error("The file cannot be used: {0}")]
    Io(#[from] std::io::Error),
}

fn near_text(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!(". Did you mean '{}'?", near.join("' or '")) }
}

/// An open workspace.
pub(crate) struct Workspace {
    folder: Dir,
    root: PathBuf,
    rules: Rules,
}

impl Workspace {
    pub(crate) fn open(settings: &WorkspaceSettings) -> Result<Self> {
        let shown = settings.root.display().to_string();
        let failed = |error| crate::Error::File {
            action: "cannot open the workspace",
            path: shown.clone(),
            source: error,
        };
        let root = settings.root.canonicalize().map_err(failed)?;
        let folder = Dir::open_ambient_dir(&root, ambient_authority()).map_err(failed)?;
        Ok(Self { folder, root, rules: Rules::new(&settings.also)? })
    }
}

impl House {
    pub(crate) fn workspace(&self) -> std::result::Result<&Workspace, WorkspaceError> {
        self.workspace.as_ref().ok_or(WorkspaceError::Absent)
    }

    /// The folder of the workspace, when there is one.
    pub fn workspace_root(&self) -> Option<&Path> {
        self.workspace.as_ref().map(|workspace| workspace.root.as_path())
    }
}
