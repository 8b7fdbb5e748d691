//! Signed addresses: what a URL opens is proved by a signature in the URL itself, so that whoever was given the URL needs
//! no token.
//!
//! The keys are secrets of the library. Keys are rotated in two steps: after the first rotation, addresses signed with
//! the former key still work; after the second they do not.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Serialize, de::DeserializeOwned};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::{Library, Result};

/// Bytes of a signature: 128 bits cannot be guessed.
const TAG: usize = 16;
/// Longest signed text that is looked at.
const MOST: usize = 4_096;
pub(crate) const CURRENT: &str = "url_key";
pub(crate) const FORMER: &str = "url_key_former";

/// What an address is for. An address for one purpose proves nothing for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Reading an asset.
    Asset,
    /// Uploading one.
    Upload,
    /// Downloading the archive of a book.
    Archive,
    /// Downloading evidence.
    Evidence,
    /// Sending a form of the web console.
    Form,
}

impl Purpose {
    const fn word(self) -> &'static str {
        match self {
            Self::Asset => "asset",
            Self::Upload => "upload",
            Self::Archive => "archive",
            Self::Evidence => "evidence",
            Self::Form => "form",
        }
    }
}

/// The keys that sign addresses.
pub(crate) struct UrlKeys {
    current: [u8; 32],
    former: [u8; 32],
}

impl UrlKeys {
    /// A text that proves the right to `what`.
    pub(crate) fn capability(&self, purpose: Purpose, what: &str) -> String {
        URL_SAFE_NO_PAD.encode(tag(&self.current, purpose, what.as_bytes()))
    }

    /// Whether a text proves the right to `what`.
    pub(crate) fn opens(&self, purpose: Purpose, what: &str, capability: &str) -> bool {
        URL_SAFE_NO_PAD.decode(capability).is_ok_and(|given| self.signed(purpose, what.as_bytes(), &given))
    }

    /// Claims and their signature as one text for a URL.
    pub(crate) fn sign(&self, purpose: Purpose, claims: &impl Serialize) -> Option<String> {
        let claims = serde_json::to_vec(claims).ok()?;
        let tag = URL_SAFE_NO_PAD.encode(tag(&self.current, purpose, &claims));
        Some(format!("{}.{tag}", URL_SAFE_NO_PAD.encode(claims)))
    }

    /// Claims that were signed for this purpose.
    pub(crate) fn read<T: DeserializeOwned>(&self, purpose: Purpose, text: &str) -> Option<T> {
        if text.len() > MOST {
            return None;
        }
        let (claims, tag) = text.split_once('.')?;
        let (claims, tag) = (URL_SAFE_NO_PAD.decode(claims).ok()?, URL_SAFE_NO_PAD.decode(tag).ok()?);
        if !self.signed(purpose, &claims, &tag) {
            return None;
        }
        serde_json::from_slice(&claims).ok()
    }

    fn signed(&self, purpose: Purpose, what: &[u8], given: &[u8]) -> bool {
        let fits = |key| bool::from(tag(key, purpose, what)[..].ct_eq(given));
        // Both are always looked at, so that the time says nothing.
        fits(&self.current) | fits(&self.former)
    }
}

fn tag(key: &[u8; 32], purpose: Purpose, what: &[u8]) -> [u8; TAG] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(purpose.word().as_bytes());
    mac.update(b"\0");
    mac.update(what);
    let mut tag = [0; TAG];
    tag.copy_from_slice(&mac.finalize().into_bytes()[..TAG]);
    tag
}

impl Library {
    pub(crate) fn url_keys(&self) -> Result<UrlKeys> {
        Ok(UrlKeys { current: self.secret(CURRENT)?, former: self.secret(FORMER)? })
    }

    /// Signs addresses with another key from now on. Those signed before work until the next rotation, or not at all
    /// when it is `at_once`.
    pub fn rotate_url_keys(&self, at_once: bool) -> Result<()> {
        let former = if at_once { crate::library::random()? } else { self.secret(CURRENT)? };
        self.catalog.set_secret(FORMER, former)?;
        Ok(self.catalog.set_secret(CURRENT, crate::library::random()?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    #[test]
    fn a_signature_opens_what_it_was_made_for_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let library = Library::open(folder.path(), Options::default()).unwrap();
        let keys = library.url_keys().unwrap();
        let capability = keys.capability(Purpose::Asset, "a");
        assert!(keys.opens(Purpose::Asset, "a", &capability));
        assert!(!keys.opens(Purpose::Asset, "b", &capability));
        assert!(!keys.opens(Purpose::Archive, "a", &capability));
        for wrong in ["", "AAAA", &capability[1..], "=", &format!("{capability}A")] {
            assert!(!keys.opens(Purpose::Asset, "a", wrong), "{wrong}");
        }
        let signed = keys.sign(Purpose::Upload, &("x", 7)).unwrap();
        assert_eq!(keys.read::<(String, u8)>(Purpose::Upload, &signed).unwrap(), ("x".into(), 7));
        assert!(keys.read::<(String, u8)>(Purpose::Archive, &signed).is_none());
        let (claims, tag) = signed.split_once('.').unwrap();
        let other = URL_SAFE_NO_PAD.encode(br#"["x",8]"#);
        assert_ne!(claims, other);
        assert!(keys.read::<(String, u8)>(Purpose::Upload, &format!("{other}.{tag}")).is_none());
    }

    #[test]
    fn a_rotation_ends_what_was_signed_two_keys_ago() {
        let folder = tempfile::tempdir().unwrap();
        let library = Library::open(folder.path(), Options::default()).unwrap();
        let old = library.url_keys().unwrap().capability(Purpose::Asset, "a");
        let opens = || library.url_keys().unwrap().opens(Purpose::Asset, "a", &old);
        library.rotate_url_keys(false).unwrap();
        assert!(opens());
        library.rotate_url_keys(false).unwrap();
        assert!(!opens());
        let new = library.url_keys().unwrap().capability(Purpose::Asset, "a");
        library.rotate_url_keys(true).unwrap();
        assert!(!library.url_keys().unwrap().opens(Purpose::Asset, "a", &new));
    }
}
