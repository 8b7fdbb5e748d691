//! Errors of the block store.

use std::io;

use shelf_base::{ErrorInfo, Kind};

use crate::BlockId;

/// A failure of the block store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The underlying object storage failed.
    #[error("storage failed to {action} {object}: {source}")]
    Storage {
        /// The operation that failed.
        action: &'static str,
        /// The object's name.
        object: String,
        /// The underlying error.
        source: io::Error,
    },
    /// A referenced block is in no pack.
    #[error("block {0} is missing from the store")]
    Missing(BlockId),
    /// Stored bytes differ from what was written.
    #[error("{object} is damaged: {what}")]
    Damaged {
        /// The pack or manifest.
        object: String,
        /// What is wrong with it.
        what: String,
    },
    /// The caller's content could not be read.
    #[error("reading the content failed: {0}")]
    Source(#[source] io::Error),
}

impl Error {
    pub(crate) fn damaged(object: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Damaged { object: object.into(), what: what.into() }
    }
}

impl ErrorInfo for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Storage { source, .. } => match Kind::of_io(source) {
                Kind::NotFound => Kind::Io,
                kind => kind,
            },
            Self::Missing(_) | Self::Damaged { .. } => Kind::Corrupt,
            Self::Source(source) => Kind::of_io(source),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self.kind() {
            Kind::StorageFull => vec!["free some disk space, then repeat the call; nothing was lost".into()],
            Kind::Corrupt => vec!["run `shelf check` to list every damaged block and what needs it".into()],
            _ => Vec::new(),
        }
    }
}
