//! What can go wrong with a book, in the contract's terms.

use shelf_base::{Digest, ErrorInfo, Kind};

use crate::Error;

/// Why a book tool failed.
#[derive(Debug)]
pub enum BookError {
    /// There is no such file.
    NotFound {
        /// Its full path.
        path: String,
    },
    /// The address opens nothing.
    Shut {
        /// The path that is meant.
        path: String,
        /// Why.
        message: String,
    },
    /// The file is not the one that the write expected.
    Conflict {
        /// Its full path.
        path: String,
        /// Why.
        message: String,
        /// The hash it has now; `None` when there is no such file.
        current: Option<Digest>,
    },
    /// The book takes no such write.
    Closed {
        /// The path that is meant.
        path: String,
        /// Why.
        message: String,
    },
    /// The address does not open what it is for.
    Refused {
        /// The path that is meant.
        path: String,
        /// Why.
        message: String,
    },
    /// The path is not one of a book.
    InvalidPath {
        /// The path as it was given.
        path: String,
        /// What is wrong with it.
        message: String,
    },
    /// An argument is wrong.
    Validation {
        /// The path that is meant.
        path: String,
        /// What is wrong.
        message: String,
    },
    /// The engine failed.
    Engine {
        /// The path that is meant.
        path: String,
        /// How.
        error: Error,
    },
}

impl BookError {
    /// The contract's name of the error.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NotFound { .. } | Self::Shut { .. } => "ContentNotFoundError",
            Self::Conflict { .. } | Self::Closed { .. } => "ConflictError",
            Self::InvalidPath { .. } => "InvalidPathError",
            Self::Refused { .. } | Self::Validation { .. } => "ValidationError",
            Self::Engine { error, .. } => name_of(error.kind()),
        }
    }

    /// The path that the error is about.
    pub fn path(&self) -> &str {
        match self {
            Self::NotFound { path }
            | Self::Shut { path, .. }
            | Self::Conflict { path, .. }
            | Self::Closed { path, .. }
            | Self::Refused { path, .. }
            | Self::InvalidPath { path, .. }
            | Self::Validation { path, .. }
            | Self::Engine { path, .. } => path,
        }
    }

    /// What happened.
    pub fn message(&self) -> String {
        match self {
            Self::NotFound { path } => format!("Content not found: {path}"),
            Self::Shut { message, .. }
            | Self::Conflict { message, .. }
            | Self::Closed { message, .. }
            | Self::Refused { message, .. }
            | Self::InvalidPath { message, .. }
            | Self::Validation { message, .. } => message.clone(),
            Self::Engine { error, .. } => error.to_string(),
        }
    }

    /// What sort of failure it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::NotFound { .. } | Self::Shut { .. } => Kind::NotFound,
            Self::Conflict { .. } | Self::Closed { .. } => Kind::Conflict,
            Self::Refused { .. } => Kind::Denied,
            Self::InvalidPath { .. } | Self::Validation { .. } => Kind::Invalid,
            Self::Engine { error, .. } => error.kind(),
        }
    }
}

/// The contract names four errors. What is neither missing nor changed meanwhile has the name of an input that cannot be
/// accepted; the status of the answer tells how it failed.
pub fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::NotFound => "ContentNotFoundError",
        Kind::Conflict => "ConflictError",
        Kind::Invalid
        | Kind::TooLarge
        | Kind::Denied
        | Kind::Unauthenticated
        | Kind::RateLimited
        | Kind::Busy
        | Kind::Cancelled
        | Kind::TimedOut
        | Kind::StorageFull
        | Kind::Corrupt
        | Kind::Unavailable
        | Kind::Io
        | Kind::Internal => "ValidationError",
    }
}
