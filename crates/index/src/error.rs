//! Failures of the index. All of them are cured by rebuilding: the index is derived state.

use std::io;

use shelf_base::{ErrorInfo, Kind};

/// Why the index could not be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the index is not what was written.
    #[error("the index file {file} is damaged: {what}")]
    Damaged {
        /// Its name.
        file: String,
        /// What is wrong.
        what: String,
    },
    /// The index was written by a newer program.
    #[error("the index has format {found}, this program knows {known}")]
    TooNew {
        /// Its format.
        found: u32,
        /// The newest known.
        known: u32,
    },
    /// The text library failed.
    #[error("the word index failed: {0}")]
    Words(#[from] tantivy::TantivyError),
    /// A file could not be used.
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
        vec!["run `shelf reindex` to build the index anew; nothing of the library is lost".into()]
    }
}
