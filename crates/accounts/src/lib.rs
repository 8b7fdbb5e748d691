//! Who is asking: tokens, and the passes that prove a check was made.
//!
//! A [`Pass`] can only be made here, from the owner of the data directory or from a token that was verified against
//! the catalog. Whatever takes a `Pass` need not ask again who the caller is.

mod pass;
mod token;

pub use pass::{Bearer, Pass};
pub use token::{MintError, Minted, Refusal, mint_personal, verify};
