//! What can go wrong with a fetch.

use shelf_base::{ErrorInfo, Kind, Stopped};

/// A failure of a fetch.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request is wrong.
    #[error("{field} {expected}")]
    Invalid {
        /// The argument.
        field: &'static str,
        /// What it must be.
        expected: String,
    },
    /// The request is larger than a bound.
    #[error("{what} is larger than {limit}")]
    TooLarge {
        /// What.
        what: &'static str,
        /// The bound.
        limit: String,
    },
    /// Too many fetches are under way.
    #[error("{0}")]
    Busy(String),
    /// The other machine did not give the file.
    #[error("{host}: {what}")]
    Host {
        /// The host.
        host: String,
        /// What sort of failure it is.
        kind: Kind,
        /// What happened.
        what: String,
    },
    /// A file of this machine failed.
    #[error("{action} {path}: {source}")]
    File {
        /// What was attempted.
        action: &'static str,
        /// With which file.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// The call ended early.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl Error {
    pub(crate) fn invalid(field: &'static str, expected: impl Into<String>) -> Self {
        Self::Invalid { field, expected: expected.into() }
    }

    pub(crate) fn reading(path: impl Into<String>, source: std::io::Error) -> Self {
        Self::File { action: "cannot read", path: path.into(), source }
    }
}

impl ErrorInfo for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Invalid { .. } => Kind::Invalid,
            Self::TooLarge { .. } => Kind::TooLarge,
            Self::Busy(_) => Kind::Busy,
            Self::Host { kind, .. } => *kind,
            Self::File { source, .. } => Kind::of_io(source),
            Self::Stopped(Stopped::Cancelled) => Kind::Cancelled,
            Self::Stopped(Stopped::TimedOut) => Kind::TimedOut,
        }
    }
}
