//! Failures of the workshop: its own, and those of the rooms behind it.

use std::io;

use shelf_base::{ErrorInfo, Kind, Stopped};

/// Why a request was not fulfilled.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The thing does not exist, or is not the caller's: the same answer for both.
    #[error("no {what} '{id}'")]
    NotFound {
        /// The sort of thing.
        what: &'static str,
        /// What the caller asked for.
        id: String,
        /// Names that are near.
        near: Vec<String>,
    },
    /// One thing was asked for and several fit.
    #[error("'{name}' means {} documents", candidates.len())]
    Ambiguous {
        /// What the caller asked for.
        name: String,
        /// What fits.
        candidates: Vec<String>,
    },
    /// An argument is wrong.
    #[error("{field} {expected}")]
    Invalid {
        /// The argument.
        field: String,
        /// What it must be.
        expected: String,
    },
    /// An argument is larger than its bound.
    #[error("{what} is larger than {limit}")]
    TooLarge {
        /// What.
        what: String,
        /// The bound, with its unit.
        limit: String,
    },
    /// The caller may not do this.
    #[error("{0}")]
    Denied(String),
    /// Something must be configured first.
    #[error("{what}")]
    Unavailable {
        /// What is off.
        what: String,
        /// How to switch it on.
        hint: String,
    },
    /// Another machine did not give what was asked of it.
    #[error("nothing could be downloaded from {host}: {what}")]
    Fetch {
        /// The machine.
        host: String,
        /// What happened.
        what: String,
        /// What sort of failure that is.
        kind: Kind,
    },
    /// Too much is under way.
    #[error("{0}")]
    Busy(String),
    /// The call ended early.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// A file of the caller's could not be used.
    #[error("{action} '{path}': {}", plain(source))]
    File {
        /// What failed: `cannot read`, `cannot write`.
        action: &'static str,
        /// The path as the caller gave it.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A snapshot's listing is damaged.
    #[error("the listing of snapshot {snapshot} is damaged: {what}")]
    Listing {
        /// Which snapshot.
        snapshot: String,
        /// What is wrong.
        what: &'static str,
    },
    /// Content that does not have its hash any more.
    #[error("the content {0} is damaged: its bytes do not have this hash")]
    WrongHash(shelf_base::Digest),
    /// A backup cannot be made or used.
    #[error("{what}")]
    Backup {
        /// What is wrong.
        what: String,
        /// What sort of failure that is.
        kind: Kind,
        /// What to do next.
        hint: String,
    },
    /// The blocks failed.
    #[error(transparent)]
    Blocks(#[from] shelf_blocks::Error),
    /// The catalog failed.
    #[error(transparent)]
    Catalog(#[from] shelf_catalog::Error),
    /// The search index failed.
    #[error(transparent)]
    Index(#[from] shelf_index::Error),
    /// Something about accounts or tokens failed.
    #[error(transparent)]
    Accounts(#[from] shelf_accounts::Error),
    /// The locks of the data directory failed.
    #[error("the data directory cannot be locked: {0}")]
    Lock(#[source] io::Error),
}

/// The text of an OS error without its number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

impl Error {
    /// An argument is wrong.
    pub fn invalid(field: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::Invalid { field: field.into(), expected: expected.into() }
    }

    pub(crate) fn missing(what: &'static str, id: impl Into<String>) -> Self {
        Self::NotFound { what, id: id.into(), near: Vec::new() }
    }

    pub(crate) fn reading(path: impl Into<String>, source: io::Error) -> Self {
        Self::File { action: "cannot read", path: path.into(), source }
    }

    pub(crate) fn writing(path: impl Into<String>, source: io::Error) -> Self {
        Self::File { action: "cannot write", path: path.into(), source }
    }
}

impl ErrorInfo for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::NotFound { .. } => Kind::NotFound,
            Self::Ambiguous { .. } => Kind::Conflict,
            Self::Invalid { .. } => Kind::Invalid,
            Self::TooLarge { .. } => Kind::TooLarge,
            Self::Denied(_) => Kind::Denied,
            Self::Unavailable { .. } => Kind::Unavailable,
            Self::Fetch { kind, .. } | Self::Backup { kind, .. } => *kind,
            Self::Busy(_) => Kind::Busy,
            Self::Stopped(Stopped::Cancelled) => Kind::Cancelled,
            Self::Stopped(Stopped::TimedOut) => Kind::TimedOut,
            Self::File { source, .. } => Kind::of_io(source),
            Self::Listing { .. } | Self::WrongHash(_) => Kind::Corrupt,
            Self::Blocks(error) => error.kind(),
            Self::Catalog(error) => error.kind(),
            Self::Index(error) => error.kind(),
            Self::Accounts(error) => error.kind(),
            Self::Lock(error) => Kind::of_io(error),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::NotFound { near, .. } if !near.is_empty() => {
                vec![format!("did you mean {}?", near.join(", "))]
            }
            Self::Ambiguous { candidates, .. } => {
                let mut hints = vec![
                    "name one of these by its whole path or document ID, with its collection if need be:"
                        .to_owned(),
                ];
                hints.extend(candidates.iter().cloned());
                hints
            }
            Self::Unavailable { hint, .. } | Self::Backup { hint, .. } => vec![hint.clone()],
            Self::Blocks(error) => error.hints(),
            Self::Catalog(error) => error.hints(),
            Self::Index(error) => error.hints(),
            Self::Accounts(error) => error.hints(),
            Self::File { .. } if self.kind() == Kind::StorageFull => {
                vec!["free some disk space, then repeat".into()]
            }
            Self::WrongHash(_) | Self::Listing { .. } => {
                vec!["run `shelf check` to see everything affected".into()]
            }
            _ => Vec::new(),
        }
    }
}
