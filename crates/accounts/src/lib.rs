//! Authentication: users and their passwords, sessions, tokens, and the passes that prove a caller was authenticated.
//!
//! Only this crate can create a [`Pass`]: for the owner of the data directory, for a token that was verified against
//! the catalog, or for the web token of an active session. Code that takes a `Pass` need not authenticate the caller
//! again, but it must not keep the pass beyond the call: the token or session behind it may be revoked at any time.

mod console;
mod error;
mod pass;
mod password;
mod person;
mod session;
mod token;
mod web_token;

pub use console::{
    CONSOLE_SESSION_SECONDS, CONSOLE_TOKEN_SECONDS, console_link, console_log_in, console_with_token,
    redeem_link, verify_console,
};
pub use error::{AuthError, Error};
pub use pass::{Bearer, Pass};
pub use password::Password;
pub use person::{check_email, check_label, check_username};
pub use session::{Tokens, log_in, log_out, refresh, verify_web};
pub use token::{Minted, Wanted, mint, remint, verify};

/// Shorthand for this crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;
