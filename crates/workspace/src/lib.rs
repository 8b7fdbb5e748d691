//! The workspace: a folder of the user's whose files an agent may read, within rules, and to whose memory it may append.
//! This crate knows no library and no accounts.
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
    Appended, FOLDER as MEMORY_FOLDER, MemoryFault, MemoryFile, MemoryFinding, MemoryLine, MemoryMatches,
    MemoryQuery, MemoryReport,
};
pub use practices::{FILE as PRACTICES_FILE, Practice};
pub use read::{RepoFile, RepoWindow};
use rules::Rules;
use shelf_base::{ErrorInfo, Kind, Stopped};

/// Shorthand for this crate's results.
pub type Result<T, E = WorkspaceError> = std::result::Result<T, E>;

/// Why the workspace did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The path may not be read; whether it exists is not told.
    #[error(
        "Path is not allowed: {path}; readable are relative paths below paths/, docs/, .claude/memory/, templates/ and \
         examples/{}, but no secrets, keys, .env or .git",
        also_text(also)
    )]
    PathNotAllowed {
        /// The path.
        path: String,
        /// What may be read beyond the contract's folders.
        also: Vec<String>,
    },
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
    /// What is to be appended is larger than the bound.
    #[error("{what} has {bytes} bytes; at most {limit} are allowed")]
    EntryTooLarge {
        /// What it is.
        what: &'static str,
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
    /// Whether the caller may use the workspace could not be found out.
    #[error("{message}")]
    Unknown {
        /// What sort of failure this is.
        kind: Kind,
        /// What happened.
        message: String,
    },
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
            Self::PathNotAllowed { .. } | Self::WriteNotAllowed { .. } => Kind::Denied,
            Self::NotFound { .. } => Kind::NotFound,
            Self::EntryTooLarge { .. } => Kind::TooLarge,
            Self::Invalid(_) => Kind::Invalid,
            Self::Absent => Kind::Unavailable,
            Self::NotOpen => Kind::Denied,
            Self::Locked => Kind::Busy,
            Self::Unknown { kind, .. } => *kind,
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

fn also_text(also: &[String]) -> String {
    if also.is_empty() { String::new() } else { format!(", and {}", also.join(", ")) }
}

fn near_text(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!(". Did you mean '{}'?", near.join("' or '")) }
}

/// An open workspace. Who may use it is for the caller of this crate to decide.
pub struct Workspace {
    folder: Dir,
    root: PathBuf,
    rules: Rules,
}

impl Workspace {
    /// Opens the workspace in `root`; `also` holds globs of files that may be read beyond the contract's folders.
    pub fn open(root: &Path, also: &[String]) -> Result<Self> {
        let root = root.canonicalize()?;
        let folder = Dir::open_ambient_dir(&root, ambient_authority())?;
        Ok(Self { folder, root, rules: Rules::new(also)? })
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }
}
