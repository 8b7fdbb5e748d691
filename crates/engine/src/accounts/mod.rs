//! Accounts as the transports see them: people, their sessions, their tokens, and what administrators do with other people.

mod console;
mod keys;
mod people;

use std::collections::HashMap;

use parking_lot::Mutex;
use shelf_accounts::{AuthError, Bearer, Pass};
use shelf_base::{Moment, ids::TokenId};

pub use keys::{KeyRequest, Permission, PersonalScope};
pub use people::{AccountUpdate, Registration, Usage};

use crate::{Caller, Error, Library, Result};

/// How old the noted use of a token may be before it is noted again: a note is a write.
const NOTE_EVERY_MICROS: i64 = 60_000_000;

/// What is remembered about the use of tokens and passwords.
#[derive(Default)]
pub(crate) struct TokenUse {
    /// When the use of a token was last noted.
    noted: Mutex<HashMap<TokenId, Moment>>,
    /// Hashing a password takes 19 MiB and a core: one at a time is enough.
    hashing: Mutex<()>,
}

/// Where a call arrives: not every transport accepts every credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// MCP takes personal and collection tokens.
    Protocol,
    /// REST takes the web tokens of people who have logged in too.
    Rest,
}

impl Library {
    /// Checks the credential of a caller.
    pub fn verify(&self, text: &str, door: Door) -> Result<Pass, AuthError> {
        let now = self.now();
        let pass = match shelf_accounts::verify(&*self.catalog, text, now) {
            Err(AuthError::WebToken) if door == Door::Rest => {
                return shelf_accounts::verify_web(&*self.catalog, text, now);
            }
            outcome => outcome?,
        };
        self.note_use(&pass, now);
        Ok(pass)
    }

    /// Checks the text of a token.
    pub fn verify_token(&self, text: &str) -> Result<Pass, AuthError> {
        self.verify(text, Door::Protocol)
    }

    /// Notes that a token was used, to about a minute. A note that fails fails nobody.
    fn note_use(&self, pass: &Pass, now: Moment) {
        let Some(id) = pass.token() else { return };
        let mut noted = self.token_use.noted.lock();
        let is_due = noted.get(&id).is_none_or(|at| now.micros() - at.micros() >= NOTE_EVERY_MICROS);
        if !is_due {
            return;
        }
        noted.insert(id, now);
        drop(noted);
        if let Err(error) = self.catalog.token_used(id, now) {
            tracing::debug!(%error, "the use of a token was not noted");
        }
    }
}

impl Caller {
    /// Only a person who has logged in, or the owner at the machine, manages personal tokens.
    fn must_be_a_person(&self) -> Result<()> {
        match self.pass.bearer() {
            Bearer::Owner | Bearer::Web => Ok(()),
            Bearer::Personal | Bearer::Collection => {
                Err(Error::Denied("Insufficient permissions: JWT required".into()))
            }
        }
    }

    fn must_not_be_a_collection(&self) -> Result<()> {
        if self.pass.bearer() == Bearer::Collection {
            return Err(Error::Denied("Insufficient permissions: PAT required".into()));
        }
        Ok(())
    }

    /// Every key of a collection reads, and some write: whoever may not do both would hand out more than it holds.
    fn may_hand_out_keys(&self) -> Result<()> {
        self.must_not_be_a_collection()?;
        self.must_read()?;
        self.must_write()
    }

    pub(crate) fn must_administer(&self) -> Result<()> {
        if self.pass.may_administer() {
            return Ok(());
        }
        Err(Error::Denied("Insufficient permissions: ADMIN scope required".into()))
    }
}
