//! Signing in to the web console, and the proof that a form came from one of its pages.

use shelf_accounts::{AuthError, Pass};
use shelf_base::{
    Secret,
    ids::{LOCAL_ACCOUNT, SessionId},
};
use shelf_catalog::{AccountChange, SessionRow};

use crate::{Caller, Error, Library, Result, signing::Purpose};

impl Library {
    /// Signs a person in with a name and a password; the text is for a cookie.
    pub fn console_log_in(&self, name: &str, password: &str) -> Result<Secret> {
        let _one_at_a_time = self.token_use.hashing.lock();
        Ok(shelf_accounts::console_log_in(&*self.catalog, name, password, self.now())?)
    }

    /// Signs in with a token; the text is for a cookie.
    pub fn console_with_token(&self, token: &str) -> Result<Secret, AuthError> {
        shelf_accounts::console_with_token(&*self.catalog, token, self.now())
    }

    /// Makes the text of a link that signs the owner in, once and soon.
    pub fn console_link(&self) -> Result<Secret> {
        Ok(shelf_accounts::console_link(&*self.catalog, self.now())?)
    }

    /// Exchanges the text of a link for that of a cookie.
    pub fn redeem_console_link(&self, text: &str) -> Result<Secret> {
        Ok(shelf_accounts::redeem_link(&*self.catalog, text, self.now())?)
    }

    /// Checks the text of a cookie.
    pub fn verify_console(&self, text: &str) -> Result<Pass, AuthError> {
        let now = self.now();
        let pass = shelf_accounts::verify_console(&*self.catalog, text, now)?;
        self.note_use(&pass, now);
        Ok(pass)
    }

    /// What to call somebody: the label of the token, else the name of the account.
    pub fn name_of(&self, pass: &Pass) -> Result<String> {
        if let Some(label) = &pass.actor().token {
            return Ok(label.clone());
        }
        let account = self.catalog.account(pass.account())?;
        Ok(account.map_or_else(|| pass.account().to_string(), |account| account.username))
    }

    /// The caller's sessions that go on, newest first.
    pub fn sessions(&self, caller: &Caller) -> Result<Vec<SessionRow>> {
        caller.must_be_a_person()?;
        Ok(self.catalog.sessions(caller.pass.account(), self.now())?)
    }

    /// Ends one of the caller's sessions.
    pub fn end_session(&self, caller: &Caller, id: &str) -> Result<()> {
        let missing = || Error::missing("session", id);
        let parsed: SessionId = id.parse().map_err(|_| missing())?;
        if !self.sessions(caller)?.iter().any(|session| session.id == parsed) {
            return Err(missing());
        }
        if shelf_accounts::log_out(&*self.catalog, parsed)? { Ok(()) } else { Err(missing()) }
    }

    /// Changes the caller's own password. All sessions end.
    pub fn change_password(&self, caller: &Caller, current: &str, new: &str) -> Result<()> {
        caller.must_be_a_person()?;
        let id = caller.pass.account();
        let account = self.catalog.account(id)?.filter(|account| account.id != LOCAL_ACCOUNT);
        let account =
            account.ok_or_else(|| Error::Denied("the owner of the data directory has no password".into()))?;
        // Starting a session is how a password is checked; it ends with all others below.
        self.console_log_in(&account.username, current)?;
        let password = Some(self.hash_password(new.to_owned())?);
        let change = AccountChange { password, ..AccountChange::default() };
        self.catalog.change_account(caller.pass.actor(), id, &change, self.now())?;
        Ok(())
    }

    /// What a form carries to prove that it came from a page of this caller.
    pub fn form_proof(&self, pass: &Pass) -> Result<String> {
        Ok(self.url_keys()?.capability(Purpose::Form, &form_of(pass)))
    }

    /// Whether a form carries that proof.
    pub fn is_form_proved(&self, pass: &Pass, proof: &str) -> Result<bool> {
        Ok(self.url_keys()?.opens(Purpose::Form, &form_of(pass), proof))
    }
}

/// Whom the proof is bound to: the session or token, or the owner of a server without authentication.
fn form_of(pass: &Pass) -> String {
    match (pass.session(), pass.token()) {
        (Some(session), _) => format!("session {session}"),
        (None, Some(token)) => format!("token {token}"),
        (None, None) => "owner".to_owned(),
    }
}
