//! Text that must not reach a log.

use std::fmt;

/// A secret string: `Debug` prints a mask, and only [`Secret::reveal`] gives the text.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// The text itself; the one place to look for when reviewing who sees secrets.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(***)")
    }
}
