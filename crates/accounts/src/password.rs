//! Password hashing with Argon2id. Each hash records its own parameters.

use argon2::{
    Argon2,
    password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash},
};

use crate::{Error, Result};

/// Minimum length in characters.
const LEAST: usize = 10;
/// Maximum length in bytes, so that hashing cannot be used to keep the server busy.
const MOST: usize = 1_024;
/// The hash to verify against when there is no such account, so that the answer takes equally long.
const NOBODY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$c2hlbGZtYXJrLW5vYm9keQ$0Jx9DkqGqGmHdhC0J4+JQZlwv9mcV0zK3pN8UiQ8Tco";

/// A password of acceptable length, masked in `Debug` output.
pub struct Password(String);

impl std::fmt::Debug for Password {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Password(***)")
    }
}

impl Password {
    /// Creates a password after checking its length.
    pub fn new(text: impl Into<String>) -> Result<Self> {
        let text = text.into();
        if text.chars().count() < LEAST {
            return Err(Error::invalid("password", format!("must have at least {LEAST} characters")));
        }
        if text.len() > MOST {
            return Err(Error::invalid("password", format!("must not be longer than {MOST} bytes")));
        }
        Ok(Self(text))
    }

    /// Hashes the password with a random salt.
    pub fn hash(&self) -> Result<String> {
        let mut salt = [0; 16];
        getrandom::fill(&mut salt).map_err(Error::Random)?;
        let hash = Argon2::default().hash_password_with_salt(self.0.as_bytes(), &salt);
        Ok(hash.map_err(|_| Error::Hashing)?.to_string())
    }
}

/// Whether `text` is the password of `hash`. Without a hash, the same work is done but the result is false.
pub(crate) fn fits(text: &str, hash: Option<&str>) -> bool {
    if text.len() > MOST {
        return false;
    }
    let parsed = PasswordHash::new(hash.unwrap_or(NOBODY));
    let is_right =
        parsed.is_ok_and(|parsed| Argon2::default().verify_password(text.as_bytes(), &parsed).is_ok());
    is_right && hash.is_some()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn only_the_right_password_matches() {
        let password = Password::new("correct horse battery").unwrap();
        let hash = password.hash().unwrap();
        assert!(hash.starts_with("$argon2id$v=19$"), "{hash}");
        assert!(fits("correct horse battery", Some(&hash)));
        assert!(!fits("correct horse batterz", Some(&hash)));
        assert!(!fits("", Some(&hash)));
        assert_ne!(hash, password.hash().unwrap(), "each hash has its own salt");
        assert_eq!(format!("{password:?}"), "Password(***)");
    }

    #[test]
    fn unknown_accounts_take_as_long_as_known_ones() {
        assert!(PasswordHash::new(NOBODY).is_ok());
        let hash = Password::new("correct horse battery").unwrap().hash().unwrap();
        let time = |hash: Option<&str>| {
            let started = Instant::now();
            assert!(!fits("wrong horse battery", hash));
            started.elapsed()
        };
        // Not a benchmark: skipping the computation would be a thousand times faster, not just a few times.
        assert!(time(None) * 20 > time(Some(&hash)));
    }

    #[test]
    fn too_short_and_too_long_passwords_are_rejected() {
        assert!(Password::new("123456789").is_err());
        assert!(Password::new("ten chars!").is_ok());
        assert!(Password::new("äöüäöüäöüä").is_ok());
        assert!(Password::new("x".repeat(1_025)).is_err());
    }
}
