//! Embedding errors.

use std::{io, path::PathBuf, time::Duration};

use shelf_base::{ErrorInfo, Kind, Retry, Stopped};

/// Embedding failed. No variant ever contains an endpoint's key.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An endpoint setting is invalid.
    #[error("the embedding setting `{setting}` must be {expected}, not {found:?}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// What it must be.
        expected: &'static str,
        /// Its value.
        found: String,
    },
    /// The call was cancelled or timed out.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The endpoint could not be reached.
    #[error("the embedding endpoint {host} cannot be reached: {source}")]
    Unreachable {
        /// The endpoint's host.
        host: String,
        /// The connection error.
        source: io::Error,
    },
    /// The endpoint did not answer in time.
    #[error("the embedding endpoint {host} did not answer within {timeout:?}")]
    Slow {
        /// The endpoint's host.
        host: String,
        /// The time limit.
        timeout: Duration,
    },
    /// The endpoint did not answer with a success status.
    #[error("the embedding endpoint {host} answered with status {status}: {said:?}")]
    Refused {
        /// The endpoint's host.
        host: String,
        /// The HTTP status.
        status: u16,
        /// The beginning of its message; empty when the message might contain the key.
        said: String,
    },
    /// The endpoint answered with success, but not with a vector for each text.
    #[error("the embedding endpoint {host} sent a reply that cannot be used: {problem}")]
    Reply {
        /// The endpoint's host.
        host: String,
        /// What is wrong with it.
        problem: ReplyError,
    },
    /// A model returned vectors of other dimensions than before, so it must have been replaced.
    #[error("the model {model} returned vectors of {found} dimensions, but earlier ones have {expected}")]
    Dimensions {
        /// The model's id.
        model: String,
        /// The dimensions of earlier vectors.
        expected: usize,
        /// The dimensions of the new ones.
        found: usize,
    },
    /// The vector cache file failed.
    #[error("cannot {action} {}: {source}", file.display())]
    Cache {
        /// The action that failed.
        action: &'static str,
        /// The file.
        file: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

/// Why a reply cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// It exceeds the size limit.
    #[error("it is longer than {limit} bytes")]
    TooLong {
        /// The limit in bytes.
        limit: u64,
    },
    /// It is not an embeddings reply in JSON.
    #[error("{0}")]
    NotEmbeddings(String),
    /// It has too many or too few vectors.
    #[error("it has {found} vectors for {expected} texts")]
    Count {
        /// How many texts were sent.
        expected: usize,
        /// How many vectors came back.
        found: usize,
    },
    /// A vector's index is out of range or repeated.
    #[error("index {index} is out of range or repeated")]
    Index {
        /// The index.
        index: usize,
    },
    /// The vectors are empty or of different sizes.
    #[error("vector {index} has {found} numbers where the first has {expected}")]
    Size {
        /// The vector's index.
        index: usize,
        /// The first vector's size.
        expected: usize,
        /// This vector's size.
        found: usize,
    },
    /// A vector contains infinities.
    #[error("vector {index} contains a number that is too large")]
    NotFinite {
        /// The vector's index.
        index: usize,
    },
}

impl ErrorInfo for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Setting { .. } => Kind::Invalid,
            Self::Stopped(Stopped::Cancelled) => Kind::Cancelled,
            Self::Stopped(Stopped::TimedOut) | Self::Slow { .. } => Kind::TimedOut,
            Self::Refused { status: 429, .. } => Kind::RateLimited,
            Self::Unreachable { .. } | Self::Refused { .. } | Self::Reply { .. } => Kind::Unavailable,
            Self::Dimensions { .. } => Kind::Conflict,
            Self::Cache { source, .. } => match Kind::of_io(source) {
                Kind::NotFound => Kind::Io,
                kind => kind,
            },
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Unreachable { .. } | Self::Refused { status: 500.., .. } => Retry::Later,
            _ => self.kind().row().retry,
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Unreachable { .. } => "check that the endpoint is running and that its `url` is correct",
            Self::Slow { .. } => "allow a longer `timeout` or send smaller batches",
            Self::Refused { status: 401 | 403, .. } => "check that the endpoint's `key` is correct",
            Self::Refused { status: 300..=399 | 404, .. } | Self::Reply { .. } => {
                "`url` must be the base of an OpenAI-compatible API, often ending in /v1, that serves this `model`"
            }
            Self::Refused { status: 413, .. } => "send smaller batches",
            Self::Dimensions { .. } => {
                "the model behind this name was replaced: remove its cached vectors, then embed everything again"
            }
            Self::Cache { .. } if self.kind() == Kind::StorageFull => {
                "free some disk space, then repeat the call"
            }
            _ => return Vec::new(),
        };
        vec![hint.into()]
    }
}
