//! Errors of account and token operations, and reasons to reject a caller.

use shelf_base::{ErrorInfo, Kind};

/// An account or token operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The catalog failed.
    #[error(transparent)]
    Catalog(#[from] shelf_catalog::Error),
    /// The operating system provided no random bytes.
    #[error("the operating system provided no random bytes: {0}")]
    Random(getrandom::Error),
    /// An argument is invalid.
    #[error("{field} {expected}")]
    Invalid {
        /// The argument.
        field: &'static str,
        /// What it must be.
        expected: String,
    },
    /// Wrong username or password. The message is the same for an unknown name, a wrong password and an inactive
    /// account.
    #[error("Invalid username or password")]
    WrongPassword,
    /// A refresh token that is invalid or no longer valid.
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
            Self::WrongPassword => {
                vec!["check the username or email address and the password; an administrator can set a new one".into()]
            }
            Self::WrongRefresh => vec!["log in again".into()],
            _ => Vec::new(),
        }
    }
}

/// Why a caller was rejected. The contract defines the messages.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// A missing or malformed header.
    #[error("Missing or invalid Authorization header")]
    NoHeader,
    /// An unknown, revoked or expired personal token.
    #[error("Invalid PAT token")]
    Personal,
    /// An unknown, revoked or expired collection token.
    #[error("Invalid CAT")]
    Collection,
    /// A JSON web token where none is accepted.
    #[error("JWT tokens not accepted for MCP")]
    WebToken,
    /// Anything else.
    #[error("Not authenticated")]
    Unknown,
    /// The server was too busy to check the credentials.
    #[error("the server is busy; nothing was done")]
    Busy,
    /// The catalog could not be queried.
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

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::NoHeader => {
                "send the header `Authorization: Bearer <token>`; on the library's machine, `shelf token create` makes one"
            }
            Self::Personal => {
                "it is mistyped, expired or revoked: `shelf token list` shows the tokens, `shelf token create` makes another"
            }
            Self::Collection => {
                "it is mistyped, expired or revoked: the owner of the collection makes another with `create_cat_tool`"
            }
            Self::WebToken => "use a personal token (pat_live_…) or a collection token (cat_live_…) for MCP",
            Self::Unknown => "use a personal token (pat_live_…), a collection token (cat_live_…), or log in",
            Self::Busy => "repeat the request a little later",
            Self::Catalog(error) => return error.hints(),
        };
        vec![hint.to_owned()]
    }
}
