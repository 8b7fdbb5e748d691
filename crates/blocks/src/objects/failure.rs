//! What can go wrong with storage that is reached over a network, as far as a caller can act on it.
//!
//! [`Objects`](super::Objects) speaks of failures as `io::Error`, like the local file system. A failure of a remote store
//! carries one of these inside, so that nobody takes a network that is down for damaged data.

use std::{error, fmt, io};

/// The class of a failure of a remote store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// There is no such object.
    Gone,
    /// The keys are wrong, or do not allow it.
    Denied,
    /// The store asks for fewer requests.
    Throttled,
    /// The store does not answer, or answers with an error of its own.
    Away,
}

impl Failure {
    /// The class of an error, if it came from a remote store.
    pub fn of(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref::<RemoteError>().map(|error| error.failure)
    }

    /// Whether the same request may succeed later, with nothing changed.
    pub const fn is_passing(self) -> bool {
        matches!(self, Self::Throttled | Self::Away)
    }

    /// An error of this class.
    pub fn error(self, what: impl Into<String>) -> io::Error {
        let kind = match self {
            Self::Gone => io::ErrorKind::NotFound,
            Self::Denied => io::ErrorKind::PermissionDenied,
            Self::Throttled => io::ErrorKind::ResourceBusy,
            Self::Away => io::ErrorKind::NotConnected,
        };
        io::Error::new(kind, RemoteError { failure: self, what: what.into() })
    }
}

#[derive(Debug)]
struct RemoteError {
    failure: Failure,
    what: String,
}

impl fmt::Display for RemoteError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let about = match self.failure {
            Failure::Gone => "there is no such object",
            Failure::Denied => "the object store refuses it",
            Failure::Throttled => "the object store asks for fewer requests",
            Failure::Away => "the object store does not answer",
        };
        if self.what.is_empty() {
            formatter.write_str(about)
        } else {
            write!(formatter, "{about} ({})", self.what)
        }
    }
}

impl error::Error for RemoteError {}
