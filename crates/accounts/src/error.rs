//! Why an account or token could not be made, and why a caller was turned away.

use shelf_base::{ErrorInfo, Kind};

/// Something about accounts or tokens failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The catalog failed.
    #[error(transparent)]
    Catalog(#[from] shelf_catalog::Error),
    /// The system gave no random bytes.
    #[error("the system gave no random bytes: {0}")]
    Random(getrandom::Error),
    /// An argument is wrong.
    #[error("{field} {expected}")]
    Invalid {
        /// The argument.
        field: &'static str,
        /// What it must be.
        expected: String,
    },
    /// Name and password do not fit: the same answer for an unknown name, a wrong password and a closed account.
    #[error("Invalid username or password")]
    WrongPassword,
    /// A refresh token that does not work, or not any more.
    #[error("Invalid refresh token")]
    WrongRefresh,
    /// A password could not be hashed.
    #[error("the password could not be hashed")]
    Hashing,
}

impl Error {
    pub(crate) fn invalid(field: &'static str, expected: impl Into<String>) -> Self {
        Self::Invalid { field, expected: expected.into() }
    }
}

impl ErrorInfo for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Catalog(error) => error.kind(),
            Self::Random(_) => Kind::Io,
            Self::Invalid { .. } => Kind::Invalid,
            Self::WrongPassword | Self::WrongRefresh => Kind::Unauthenticated,
            Self::Hashing => Kind::Internal,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Catalog(error) => error.hints(),
            Self::WrongRefresh => vec!["log in again".into()],
            _ => Vec::new(),
        }
    }
}

/// Why a caller was turned away; the sentences are the contract's.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// No or malformed header.
    #[error("Missing or invalid Authorization header")]
    NoHeader,
    /// An unknown, revoked or expired personal token.
    #[error("Invalid PAT token")]
    Personal,
    /// An unknown, revoked or expired collection token.
    #[error("Invalid CAT")]
    Collection,
    /// A JSON web token where none is taken.
    #[error("JWT tokens not accepted for MCP")]
    WebToken,
    /// Anything else.
    #[error("Not authenticated")]
    Unknown,
    /// Nobody had time to look.
    #[error("the server is busy; nothing was done")]
    Busy,
    /// The catalog could not be asked.
    #[error(transparent)]
    Catalog(#[from] shelf_catalog::Error),
}

impl ErrorInfo for AuthError {
    fn kind(&self) -> Kind {
        match self {
            Self::Catalog(error) => error.kind(),
            Self::Busy => Kind::Busy,
            _ => Kind::Unauthenticated,
        }
    }
}
