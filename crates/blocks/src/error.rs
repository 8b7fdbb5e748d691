//! Errors of the block store.

use std::io;

use shelf_base::{ErrorInfo, Kind};

use crate::{BlockId, objects::Failure};

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

    /// The class of a failure of a remote store. Then nothing is known of the data itself.
    pub fn failure(&self) -> Option<Failure> {
        match self {
            Self::Storage { source, .. } => Failure::of(source),
            Self::Missing(_) | Self::Damaged { .. } | Self::Source(_) => None,
        }
    }

    /// Whether the data may be as it should, and only could not be reached now.
    pub(crate) fn is_out_of_reach(&self) -> bool {
        self.failure().is_some_and(|failure| failure != Failure::Gone)
    }
}

impl ErrorInfo for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Storage { source, .. } => match (Failure::of(source), Kind::of_io(source)) {
                (Some(Failure::Throttled | Failure::Away), _) => Kind::Busy,
                (_, Kind::NotFound) => Kind::Io,
                (_, kind) => kind,
            },
            Self::Missing(_) | Self::Damaged { .. } => Kind::Corrupt,
            Self::Source(source) => Kind::of_io(source),
        }
    }

    fn hints(&self) -> Vec<String> {
        if let Some(failure) = self.failure() {
            return match failure {
                Failure::Gone => vec!["run `shelf check` to see what is missing".into()],
                Failure::Denied => {
                    vec!["check the bucket's name and policy, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY".into()]
                }
                Failure::Throttled => vec!["nothing was lost; repeat the call a little later".into()],
                Failure::Away => vec![
                    "nothing was lost; repeat the call when the object store answers again".into(),
                    "`shelf doctor` says what it finds there; AWS_ENDPOINT_URL and AWS_REGION say where it is".into(),
                ],
            };
        }
        match self.kind() {
            Kind::StorageFull => vec!["free some disk space, then repeat the call; nothing was lost".into()],
            Kind::Corrupt => vec!["run `shelf check` to list every damaged block and what needs it".into()],
            _ => Vec::new(),
        }
    }
}
