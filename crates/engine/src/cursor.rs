//! Cursors: opaque to callers, signed, bound to the question and to who asked it.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Serialize, de::DeserializeOwned};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::{Caller, Error, Library, Result};

const TAG: usize = 16;

impl Library {
    /// Signs `position` for this caller and question.
    pub(crate) fn seal_cursor(
        &self,
        caller: &Caller,
        question: &str,
        position: &impl Serialize,
    ) -> Result<String> {
        let mut bytes = serde_json::to_vec(position).map_err(|_| unusable())?;
        let tag = self.cursor_tag(caller, question, &bytes)?;
        bytes.extend_from_slice(&tag);
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Reads a cursor that was made for the same caller and question.
    pub(crate) fn open_cursor<T: DeserializeOwned>(
        &self,
        caller: &Caller,
        question: &str,
        cursor: &str,
    ) -> Result<T> {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| unusable())?;
        let (position, tag) = bytes.split_at_checked(bytes.len().saturating_sub(TAG)).ok_or_else(unusable)?;
        let expected = self.cursor_tag(caller, question, position)?;
        if !bool::from(expected[..].ct_eq(tag)) {
            return Err(unusable());
        }
        serde_json::from_slice(position).map_err(|_| unusable())
    }

    fn cursor_tag(&self, caller: &Caller, question: &str, position: &[u8]) -> Result<[u8; TAG]> {
        let key = match self.cursor_key.get() {
            Some(key) => key,
            None => {
                let key = self.secret("cursor")?;
                self.cursor_key.get_or_init(|| key)
            }
        };
        let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|_| unusable())?;
        for part in [format!("{:?}", caller.pass.scope()).as_bytes(), question.as_bytes(), position] {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        let mut tag = [0; TAG];
        tag.copy_from_slice(&mac.finalize().into_bytes()[..TAG]);
        Ok(tag)
    }
}

fn unusable() -> Error {
    Error::invalid("cursor", "is not one that this list gave for the same arguments; start again without it")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Options;

    #[test]
    fn a_cursor_opens_for_its_question_and_caller_only() {
        let folder = tempfile::tempdir().unwrap();
        let library = Library::open(folder.path(), Options::default()).unwrap();
        let owner = Caller::owner();
        let cursor = library.seal_cursor(&owner, "list a", &(7, "x")).unwrap();
        assert_eq!(library.open_cursor::<(i32, String)>(&owner, "list a", &cursor).unwrap(), (7, "x".into()));
        assert!(library.open_cursor::<(i32, String)>(&owner, "list b", &cursor).is_err());
        let other =
            Caller { pass: owner.pass.within(shelf_base::ids::CollectionId::fresh()), ..owner.clone() };
        assert!(library.open_cursor::<(i32, String)>(&other, "list a", &cursor).is_err());
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(256));
        runner
            .run(&("\\PC{0,80}", 0..cursor.len(), 0_u8..64), |(text, place, letter)| {
                prop_assert!(library.open_cursor::<(i32, String)>(&owner, "list a", &text).is_err());
                let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
                let mut changed = cursor.clone().into_bytes();
                changed[place] = alphabet[letter as usize];
                let changed = String::from_utf8(changed).unwrap_or_default();
                let opened = library.open_cursor::<(i32, String)>(&owner, "list a", &changed);
                prop_assert_eq!(opened.is_ok(), changed == cursor);
                Ok(())
            })
            .unwrap();
    }
}
