//! Who is asking: people and their passwords, sessions, tokens, and the passes that prove a check was made.
//!
//! A [`Pass`] can only be made here: from the owner of the data directory, from a token that was verified against the
//! catalog, or from the web token of a session that goes on. Whatever takes a `Pass` need not ask again who the caller
//! is, but it must not keep one beyond a call: what stands behind it may be revoked the next moment.

mod error;
mod pass;
mod password;
mod person;
mod session;
mod token;
mod web_token;

pub use error::{AuthError, Error};
pub use pass::{Bearer, Pass};
pub use password::Password;
pub use person::{check_email, check_label, check_username};
pub use session::{Tokens, log_in, log_out, refresh, verify_web};
pub use token::{Minted, Wanted, mint, remint, verify};

/// Shorthand for this crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;
