//! Why something could not be cited. The first three sentences are the contract's, word for word.

use shelf_base::{ErrorInfo, Kind, NotAnAddress};
use shelf_reading::{CutError, Unreadable, media::MediaError};

use crate::{Caller, Error};

/// Problems of a map that one message lists.
const SHOWN: usize = 20;

/// Why a call of the citations family failed.
#[derive(Debug, thiserror::Error)]
pub enum CitationError {
    /// `getStructure` of something unknown.
    #[error("No map found for resource '{0}'. Expected at: .resource_maps/{0}.json")]
    NoMap(String),
    /// Another call with an unknown resource.
    #[error("Resource '{0}' not found.")]
    NoResource(String),
    /// A node that the map does not have.
    #[error("Node '{0}' not found.")]
    NoNode(String),
    /// An address that is none.
    #[error(transparent)]
    Address(#[from] NotAnAddress),
    /// A place that the resource does not have.
    #[error("{0}")]
    NoPlace(String),
    /// A document that has no parts.
    #[error(
        "'{path}' ({mime}) is neither text, a PDF, an image nor a recording, so parts of it cannot be cited"
    )]
    NotCitable {
        /// Its path.
        path: String,
        /// Its type.
        mime: String,
    },
    /// The document cannot be read.
    #[error("'{path}' cannot be read: {source}")]
    Unreadable {
        /// Its path.
        path: String,
        /// Why.
        source: Unreadable,
    },
    /// The recording cannot be read or cut.
    #[error("'{path}' cannot be used: {source}")]
    Media {
        /// Its path.
        path: String,
        /// Why.
        source: MediaError,
    },
    /// A map that does not fit its document.
    #[error("the map does not fit the document: {}", listed(.problems))]
    BadMap {
        /// Each thing that is wrong.
        problems: Vec<String>,
    },
    /// Anything else.
    #[error(transparent)]
    Engine(#[from] Error),
}

fn listed(problems: &[String]) -> String {
    let shown = problems.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("; ");
    match problems.len().checked_sub(SHOWN) {
        Some(more) if more > 0 => format!("{shown}; and {more} more"),
        _ => shown,
    }
}

impl CitationError {
    pub(super) fn unreadable(path: &str, source: Unreadable) -> Self {
        Self::Unreadable { path: path.to_owned(), source }
    }

    pub(super) fn media(path: &str, source: MediaError) -> Self {
        match source {
            MediaError::Stopped(stopped) => Self::Engine(stopped.into()),
            source => Self::Media { path: path.to_owned(), source },
        }
    }

    /// The error as a caller may see it: without the paths of the server's own files.
    pub(super) fn seen_by(self, caller: &Caller) -> Self {
        let seen = |path: String| super::visible_path(caller, &path);
        match self {
            Self::NotCitable { path, mime } => Self::NotCitable { path: seen(path), mime },
            Self::Unreadable { path, source } => Self::Unreadable { path: seen(path), source },
            Self::Media { path, source } => Self::Media { path: seen(path), source },
            Self::Engine(Error::TooLarge { what, limit }) => {
                Self::Engine(Error::TooLarge { what: seen(what), limit })
            }
            other => other,
        }
    }

    pub(super) fn cut(path: &str, source: CutError) -> Self {
        match source {
            CutError::Unreadable(source) => Self::unreadable(path, source),
            CutError::NoPage { .. } => Self::NoPlace(source.to_string()),
        }
    }
}

impl From<shelf_catalog::Error> for CitationError {
    fn from(error: shelf_catalog::Error) -> Self {
        Self::Engine(error.into())
    }
}

impl From<shelf_base::Stopped> for CitationError {
    fn from(stopped: shelf_base::Stopped) -> Self {
        Self::Engine(stopped.into())
    }
}

impl ErrorInfo for CitationError {
    fn kind(&self) -> Kind {
        match self {
            Self::NoMap(_) | Self::NoResource(_) | Self::NoNode(_) => Kind::NotFound,
            Self::Address(_) | Self::NoPlace(_) | Self::NotCitable { .. } | Self::BadMap { .. } => {
                Kind::Invalid
            }
            Self::Unreadable { source, .. } => source.kind(),
            Self::Media { source, .. } => source.kind(),
            Self::Engine(error) => error.kind(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::NoMap(_)
            | Self::NoResource(_)
            | Self::NoNode(_)
            | Self::Address(_)
            | Self::NoPlace(_)
            | Self::NotCitable { .. }
            | Self::BadMap { .. } => Vec::new(),
            Self::Unreadable { source, .. } => source.hints(),
            Self::Media { source, .. } => source.hints(),
            Self::Engine(error) => error.hints(),
        }
    }
}
