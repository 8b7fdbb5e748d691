//! The workspace: a folder of the user's whose files an agent may read, within rules, and whose memory it may append to.
//!
//! The folder is opened once. Every path is first judged by its words, then resolved beneath the handle and judged again
//! as what it really is, and at last opened step by step without following any link: nothing that is swapped in between
//! leads anywhere else.

mod list;
mod memory;
mod practices;
mod read;
mod rules;
mod secrets;

use std::path::{Path, PathBuf};

use cap_std::{ambient_authority, fs::Dir};
pub use list::{RepoEntry, RepoList};
pub use memory::{
    Appended, MemoryFault, MemoryFile, MemoryFinding, MemoryLine, MemoryMatches, MemoryQuery, MemoryReport,
};
pub use practices::Practice;
pub use read::{RepoFile, RepoWindow};
use rules::Rules;
use shelf_base::{ErrorInfo, Kind, Stopped};
use shelf_catalog::Account;

use crate::{Caller, FileAccess, Library, Result};

/// Where the workspace is, and what beyond the contract's folders may be read.
#[derive(Clone, Debug, Default)]
pub struct WorkspaceSettings {
    /// Its folder.
    pub root: PathBuf,
    /// Further globs that may be read.
    pub also: Vec<String>,
    /// Names of accounts that may use it over HTTP, beside administrators.
    pub accounts: Vec<String>,
}

/// Why the workspace did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The path may not be read; whether it exists is not told.
    #[error(
        "Path is not allowed: {0}; readable are relative paths below paths/, docs/, .claude/memory/, templates/ and \
         examples/, but no secrets, keys, .env or .git"
    )]
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
    #[error(
        "No workspace is configured on this server: start it with --workspace DIR, or set workspace.root"
    )]
    Absent,
    /// Another program holds the file.
    #[error("The memory file is locked by another program; nothing was written: try again")]
    Locked,
    /// The workspace is there, but not for this account.
    #[error(
        "The workspace is open to administrators and to the accounts that workspace.accounts in shelf.toml names; this is \
         neither"
    )]
    NotOpen,
    /// The catalog could not be asked who calls.
    #[error(transparent)]
    Catalog(#[from] shelf_catalog::Error),
    /// The call ended early.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The operating system failed.
    #[error("The workspace cannot be used: {}", plain(.0))]
    Io(#[from] std::io::Error),
}

impl ErrorInfo for WorkspaceError {
    fn kind(&self) -> Kind {
        match self {
            Self::PathNotAllowed(_) | Self::WriteNotAllowed { .. } => Kind::Denied,
            Self::NotFound { .. } => Kind::NotFound,
            Self::EntryTooLarge { .. } => Kind::TooLarge,
            Self::Invalid(_) => Kind::Invalid,
            Self::Absent => Kind::Unavailable,
            Self::NotOpen => Kind::Denied,
            Self::Locked => Kind::Busy,
            Self::Catalog(error) => error.kind(),
            Self::Stopped(Stopped::Cancelled) => Kind::Cancelled,
            Self::Stopped(Stopped::TimedOut) => Kind::TimedOut,
            Self::Io(error) => Kind::of_io(error),
        }
    }
}

/// The text of an OS error without its number.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

fn near_text(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!(". Did you mean '{}'?", near.join("' or '")) }
}

/// An open workspace.
pub(crate) struct Workspace {
    folder: Dir,
    root: PathBuf,
    rules: Rules,
    accounts: Vec<String>,
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
        let accounts = settings.accounts.clone();
        Ok(Self { folder, root, rules: Rules::new(&settings.also)?, accounts })
    }
}

impl Library {
    /// The workspace, when there is one and the caller may use it: whoever is at the machine, administrators, and the
    /// accounts that are named for it.
    pub(crate) fn workspace(&self, caller: &Caller) -> std::result::Result<&Workspace, WorkspaceError> {
        let workspace = self.workspace.as_ref().ok_or(WorkspaceError::Absent)?;
        if caller.file_access == FileAccess::OperatingSystem || caller.pass.may_administer() {
            return Ok(workspace);
        }
        let account = self.catalog.account(caller.pass.account())?;
        let may_use =
            |account: &Account| account.is_superuser || workspace.accounts.contains(&account.username);
        if account.as_ref().is_some_and(may_use) { Ok(workspace) } else { Err(WorkspaceError::NotOpen) }
    }

    /// The folder of the workspace, when there is one.
    pub fn workspace_root(&self) -> Option<&Path> {
        self.workspace.as_ref().map(|workspace| workspace.root.as_path())
    }
}
