//! Errors of the index. Rebuilding fixes all of them, since the index is derived state.

use std::io;

use shelf_base::{ErrorInfo, Kind};

/// Why the index could not be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An index file differs from what was written.
    #[error("the index file {file} is damaged: {what}")]
    Damaged {
        /// The file's name.
        file: String,
        /// What is wrong.
        what: String,
    },
    /// The index was written by a newer program.
    #[error("the index has format {found}, but this program supports only formats up to {known}")]
    TooNew {
        /// The format of the index.
        found: u32,
        /// The newest supported format.
        known: u32,
    },
    /// The full-text library (tantivy) failed.
    #[error("the word index failed: {0}")]
    Words(#[from] tantivy::TantivyError),
    /// A file could not be read or written.
    #[error("the index cannot be used: {0}")]
    Io(#[from] io::Error),
}

impl Error {
    pub(crate) fn damaged(file: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Damaged { file: file.into(), what: what.into() }
    }
}

impl ErrorInfo for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Damaged { .. } | Self::Words(_) => Kind::Corrupt,
            Self::TooNew { .. } => Kind::Conflict,
            Self::Io(error) => Kind::of_io(error),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Io(error) if Kind::of_io(error) == Kind::Denied => {
                vec!["this user may only read the library; its owner can do this".into()]
            }
            Self::Io(error) if Kind::of_io(error) == Kind::StorageFull => {
                vec!["free some disk space, then repeat the call; nothing was lost".into()]
            }
            _ => vec!["run `shelf reindex` to rebuild the index; nothing in the library is lost".into()],
        }
    }
}
