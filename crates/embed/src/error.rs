//! What can go wrong on the way to a vector.

use std::{io, path::PathBuf, time::Duration};

use shelf_base::{ErrorInfo, Kind, Retry, Stopped};

/// A failure to embed. No variant ever carries an endpoint's key.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting of an endpoint cannot be used.
    #[error("the embedding setting `{setting}` is {found:?}, not {expected}")]
    Setting {
        /// Which setting.
        setting: &'static str,
        /// What it has to be.
        expected: &'static str,
        /// What it is.
        found: String,
    },
    /// The call was cancelled or its time was up.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// No answer came from the endpoint.
    #[error("the embedding endpoint {host} cannot be reached: {source}")]
    Unreachable {
        /// The endpoint's host.
        host: String,
        /// What the connection said.
        source: io::Error,
    },
    /// The answer took too long.
    #[error("the embedding endpoint {host} did not answer within {timeout:?}")]
    Slow {
        /// The endpoint's host.
        host: String,
        /// How long it was given.
        timeout: Duration,
    },
    /// The endpoint answered with something other than success.
    #[error("the embedding endpoint {host} answered with status {status}: {said:?}")]
    Refused {
        /// The endpoint's host.
        host: String,
        /// The HTTP status.
        status: u16,
        /// The beginning of its own words, empty where they might be about the key.
        said: String,
    },
    /// The endpoint answered with success, but not with vectors for the texts.
    #[error("the embedding endpoint {host} sent a reply that cannot be used: {problem}")]
    Reply {
        /// The endpoint's host.
        host: String,
        /// What is wrong with it.
        problem: ReplyError,
    },
    /// A model gave vectors of another size than before, so it is not the model it was.
    #[error("the model {model} gives vectors of {found} numbers, and gave {expected} before")]
    Dimensions {
        /// The model's id.
        model: String,
        /// The size of earlier vectors.
        expected: usize,
        /// The size of the new ones.
        found: usize,
    },
    /// The file of kept vectors failed.
    #[error("cannot {action} {}: {source}", file.display())]
    Cache {
        /// What was being done.
        action: &'static str,
        /// The file.
        file: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}

/// What is wrong with a reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// It is longer than any honest reply.
    #[error("it is longer than {limit} bytes")]
    TooLong {
        /// The most bytes that are read.
        limit: u64,
    },
    /// It is not the JSON of an embeddings reply.
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
    /// A vector belongs to no text, or to a text that has one already.
    #[error("its index {index} is no text's or comes twice")]
    Index {
        /// The index given.
        index: usize,
    },
    /// The vectors are empty or of different sizes.
    #[error("vector {index} has {found} numbers where the first has {expected}")]
    Size {
        /// Whose vector.
        index: usize,
        /// The first vector's size.
        expected: usize,
        /// This vector's size.
        found: usize,
    },
    /// A vector holds infinities.
    #[error("vector {index} holds a number that is too large")]
    NotFinite {
        /// Whose vector.
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
            Self::Unreachable { .. } => "see that the endpoint runs and that its `url` is right",
            Self::Slow { .. } => "allow a longer `timeout` or send smaller batches",
            Self::Refused { status: 401 | 403, .. } => "see that the endpoint's `key` is right",
            Self::Refused { status: 300..=399 | 404, .. } | Self::Reply { .. } => {
                "`url` must be the base of an OpenAI-compatible interface, often ending in /v1, with this `model`"
            }
            Self::Refused { status: 413, .. } => "send smaller batches",
            Self::Dimensions { .. } => {
                "the model behind this name was replaced: remove its kept vectors, then embed everything again"
            }
            Self::Cache { .. } if self.kind() == Kind::StorageFull => {
                "free some disk space, then repeat the call"
            }
            _ => return Vec::new(),
        };
        vec![hint.into()]
    }
}
