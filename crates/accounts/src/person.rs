//! Validation of usernames, email addresses and token labels.

use shelf_base::{bounds, ids::LOCAL_ACCOUNT_NAME};

use crate::{Error, Result};

/// Maximum length of a username, in characters.
const USERNAME: usize = 64;
/// Maximum length of an email address, in bytes.
const EMAIL: usize = 254;

/// Checks a username: letters, digits, dots, hyphens and underscores, so that it never looks like an email address.
pub fn check_username(name: &str) -> Result<()> {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    let count = name.chars().count();
    if count == 0 || count > USERNAME || !name.chars().all(fits) {
        let expected = format!("must be 1 to {USERNAME} letters, digits, '.', '-' or '_'");
        return Err(Error::invalid("username", expected));
    }
    if name.eq_ignore_ascii_case(LOCAL_ACCOUNT_NAME) {
        return Err(Error::invalid(
            "username",
            format!("must not be '{LOCAL_ACCOUNT_NAME}', which is reserved"),
        ));
    }
    Ok(())
}

/// Checks an email address: one `@` with text on both sides and no whitespace. Whether it exists is not checked.
pub fn check_email(address: &str) -> Result<()> {
    let wrong = || Error::invalid("email", "must be an address such as alice@example.com");
    let (name, host) = address.split_once('@').ok_or_else(wrong)?;
    let is_odd =
        |c: char| c.is_whitespace() || c.is_control() || matches!(c, '@' | ',' | ';' | '<' | '>' | '"');
    let host_fits = host.contains('.') || host.eq_ignore_ascii_case("localhost");
    let labels_fit = host.split('.').all(|label| !label.is_empty());
    if name.is_empty() || address.len() > EMAIL || name.contains(is_odd) || host.contains(is_odd) {
        return Err(wrong());
    }
    if host_fits && labels_fit { Ok(()) } else { Err(wrong()) }
}

/// Checks the label of a token.
pub fn check_label(label: &str) -> Result<()> {
    if label.trim().is_empty() || label.len() > bounds::LABEL_BYTES || label.chars().any(char::is_control) {
        let expected = format!("must be 1 to {} bytes without control characters", bounds::LABEL_BYTES);
        return Err(Error::invalid("label", expected));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_addresses_and_labels() {
        for name in ["alice", "a", "Jürgen.K-1_x"] {
            assert!(check_username(name).is_ok(), "{name}");
        }
        for name in ["", "a b", "a@b", "local", "LOCAL", "a/b", "a\n", &"x".repeat(65)] {
            assert!(check_username(name).is_err(), "{name}");
        }
        for address in ["a@b.example", "first.last+tag@sub.example.org", "root@localhost"] {
            assert!(check_email(address).is_ok(), "{address}");
        }
        for address in ["", "a", "a@", "@b.c", "a@b", "a@b..c", "a b@c.d", "a@b@c.d", "a@b.c\n", "<a@b.c>"] {
            assert!(check_email(address).is_err(), "{address}");
        }
        assert!(
            check_label("Work Laptop").is_ok() && check_label(" ").is_err() && check_label("a\tb").is_err()
        );
    }
}
