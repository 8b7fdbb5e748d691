//! Sessions: a login starts one, each refresh replaces its refresh token, and reusing a replaced token ends it.
//!
//! A refresh token that is used twice has been stolen. The server cannot tell the thief from the user, so it ends the
//! session, and the user has to log in again.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use shelf_base::{
    Digest, Moment, Secret,
    ids::{AccountId, SessionId},
};
use shelf_catalog::{Account, Accounts, Rotation, Session};

use crate::{
    AuthError, Error, Pass, Result, password,
    web_token::{Claims, Use},
};

/// Lifetime of an access token, in seconds.
const ACCESS_SECONDS: u64 = 30 * 60;
/// Lifetime of a session without a refresh, in seconds.
pub(crate) const REFRESH_SECONDS: u64 = 7 * 24 * 60 * 60;

/// The tokens issued by a login or a refresh.
#[derive(Debug)]
pub struct Tokens {
    /// Authenticates requests.
    pub access: Secret,
    /// Refreshes the session, once.
    pub refresh: Secret,
    /// Lifetime of the access token, in seconds.
    pub expires_in: u64,
}

/// Starts a session for the account with this username or email address and this password.
pub fn log_in(catalog: &dyn Accounts, name: &str, password: &str, now: Moment) -> Result<Tokens> {
    let account = with_password(catalog, name, password)?;
    let session = SessionId::fresh();
    let (tokens, refresh) = sign(catalog, account.id, session, now)?;
    let expires_at = later(now, REFRESH_SECONDS);
    catalog.add_session(&Session {
        id: session,
        account: account.id,
        refresh,
        created_at: now,
        expires_at,
    })?;
    Ok(tokens)
}

/// The active account with this username or email address and this password.
pub(crate) fn with_password(catalog: &dyn Accounts, name: &str, password: &str) -> Result<Account> {
    let found = catalog.login(name)?;
    let hash = found.as_ref().and_then(|(_, hash)| hash.as_deref());
    let is_right = password::fits(password, hash);
    let account = found.filter(|(account, _)| is_right && account.is_active);
    account.map(|(account, _)| account).ok_or(Error::WrongPassword)
}

/// Extends a session and replaces its tokens.
pub fn refresh(catalog: &dyn Accounts, text: &str, now: Moment) -> Result<Tokens> {
    let claims = Claims::read(text, &key(catalog)?, Use::Refresh, now).ok_or(Error::WrongRefresh)?;
    let (tokens, next) = sign(catalog, claims.sub, claims.sid, now)?;
    let presented = Digest::of(claims.jti.as_bytes());
    let expires_at = later(now, REFRESH_SECONDS);
    match catalog.rotate_session(claims.sid, &presented, &next, expires_at, now)? {
        Rotation::Done(_) => Ok(tokens),
        Rotation::Reused | Rotation::Gone => Err(Error::WrongRefresh),
    }
}

/// Ends a session; its access tokens stop working at once.
pub fn log_out(catalog: &dyn Accounts, session: SessionId) -> Result<bool> {
    Ok(catalog.end_session(session)?)
}

/// Verifies an access token: its signature, its expiry, and that its session is active.
pub fn verify_web(catalog: &dyn Accounts, text: &str, now: Moment) -> Result<Pass, AuthError> {
    let key = key(catalog).map_err(|error| match error {
        Error::Catalog(error) => AuthError::Catalog(error),
        _ => AuthError::Unknown,
    })?;
    let claims = Claims::read(text, &key, Use::Access, now).ok_or(AuthError::Unknown)?;
    let account = catalog.session(claims.sid, now)?.filter(|account| account.id == claims.sub);
    Ok(Pass::of_session(&account.ok_or(AuthError::Unknown)?, claims.sid))
}

pub(crate) fn key(catalog: &dyn Accounts) -> Result<[u8; 32]> {
    let mut fresh = [0; 32];
    getrandom::fill(&mut fresh).map_err(Error::Random)?;
    Ok(catalog.secret("web_token", fresh)?)
}

pub(crate) fn later(now: Moment, seconds: u64) -> Moment {
    Moment::from_micros(now.micros() + seconds as i64 * 1_000_000)
}

/// Signs both tokens of a session. Also returns the hash that identifies the refresh token.
fn sign(
    catalog: &dyn Accounts,
    account: AccountId,
    session: SessionId,
    now: Moment,
) -> Result<(Tokens, Digest)> {
    let key = key(catalog)?;
    let make = |usage, id: &str, seconds| {
        let claims = Claims::new(account, session, usage, id.to_owned(), now, later(now, seconds));
        claims.sign(&key).map(Secret::new).ok_or(Error::Hashing)
    };
    let mut random = [0; 24];
    getrandom::fill(&mut random).map_err(Error::Random)?;
    let id = URL_SAFE_NO_PAD.encode(random);
    getrandom::fill(&mut random).map_err(Error::Random)?;
    let access = make(Use::Access, &URL_SAFE_NO_PAD.encode(random), ACCESS_SECONDS)?;
    let refresh = make(Use::Refresh, &id, REFRESH_SECONDS)?;
    Ok((Tokens { access, refresh, expires_in: ACCESS_SECONDS }, Digest::of(id.as_bytes())))
}

#[cfg(test)]
mod tests {
    use shelf_catalog::{AccountChange, Actor, NewAccount, Rank, sqlite::SqliteCatalog};

    use super::*;
    use crate::Password;

    fn at(minute: i64) -> Moment {
        Moment::from_micros(1_700_000_000_000_000 + minute * 60_000_000)
    }

    fn catalog_with_alice() -> (tempfile::TempDir, SqliteCatalog, AccountId) {
        let folder = tempfile::tempdir().unwrap();
        let catalog = SqliteCatalog::open(folder.path()).unwrap();
        let id = AccountId::fresh();
        let account = NewAccount {
            id,
            username: "alice".into(),
            email: "alice@example.com".into(),
            password: Password::new("correct horse battery").unwrap().hash().unwrap(),
            rank: Rank::Plain,
            created_at: at(0),
        };
        catalog.add_account(&Actor::local(), &account).unwrap();
        (folder, catalog, id)
    }

    #[test]
    fn a_session_starts_is_refreshed_and_ends() {
        let (_folder, catalog, id) = catalog_with_alice();
        for name in ["alice", "ALICE", "alice@example.com"] {
            assert!(log_in(&catalog, name, "correct horse battery", at(0)).is_ok(), "{name}");
        }
        for (name, password) in
            [("alice", "wrong horse battery"), ("bob", "correct horse battery"), ("local", "")]
        {
            let error = log_in(&catalog, name, password, at(0)).unwrap_err();
            assert_eq!(error.to_string(), "Invalid username or password");
        }
        let first = log_in(&catalog, "alice", "correct horse battery", at(0)).unwrap();
        let pass = verify_web(&catalog, first.access.reveal(), at(1)).unwrap();
        assert_eq!((pass.account(), pass.may_administer()), (id, false));
        assert!(verify_web(&catalog, first.access.reveal(), at(30)).is_err(), "after half an hour");
        assert!(verify_web(&catalog, first.refresh.reveal(), at(1)).is_err(), "not for requests");
        let second = refresh(&catalog, first.refresh.reveal(), at(31)).unwrap();
        assert!(verify_web(&catalog, second.access.reveal(), at(32)).is_ok());
        assert!(refresh(&catalog, second.access.reveal(), at(32)).is_err(), "not for refreshing");
        assert!(log_out(&catalog, pass.session().unwrap()).unwrap());
        assert!(verify_web(&catalog, second.access.reveal(), at(32)).is_err(), "logged out");
        assert!(refresh(&catalog, second.refresh.reveal(), at(32)).is_err(), "logged out");
    }

    #[test]
    fn reusing_a_refresh_token_ends_the_session() {
        let (_folder, catalog, _) = catalog_with_alice();
        let first = log_in(&catalog, "alice", "correct horse battery", at(0)).unwrap();
        let other = log_in(&catalog, "alice", "correct horse battery", at(0)).unwrap();
        let second = refresh(&catalog, first.refresh.reveal(), at(1)).unwrap();
        assert!(refresh(&catalog, first.refresh.reveal(), at(2)).is_err(), "the old one again");
        assert!(refresh(&catalog, second.refresh.reveal(), at(3)).is_err(), "and now the new one too");
        assert!(verify_web(&catalog, second.access.reveal(), at(3)).is_err());
        assert!(refresh(&catalog, other.refresh.reveal(), at(3)).is_ok(), "other sessions are unaffected");
    }

    #[test]
    fn sessions_end_when_they_expire_or_the_account_or_password_changes() {
        let (_folder, catalog, id) = catalog_with_alice();
        let log_in = || log_in(&catalog, "alice", "correct horse battery", at(0));
        let tokens = log_in().unwrap();
        assert!(refresh(&catalog, tokens.refresh.reveal(), at(7 * 24 * 60)).is_err(), "after a week");
        let tokens = log_in().unwrap();
        let closed = AccountChange { is_active: Some(false), ..AccountChange::default() };
        catalog.change_account(&Actor::local(), id, &closed, at(1)).unwrap();
        assert!(verify_web(&catalog, tokens.access.reveal(), at(1)).is_err());
        assert!(log_in().is_err());
        let open = AccountChange { is_active: Some(true), ..AccountChange::default() };
        catalog.change_account(&Actor::local(), id, &open, at(2)).unwrap();
        assert!(refresh(&catalog, tokens.refresh.reveal(), at(2)).is_err(), "the session stays ended");
        let tokens = log_in().unwrap();
        let hash = Password::new("another password").unwrap().hash().unwrap();
        let changed = AccountChange { password: Some(hash), ..AccountChange::default() };
        catalog.change_account(&Actor::local(), id, &changed, at(3)).unwrap();
        assert!(verify_web(&catalog, tokens.access.reveal(), at(3)).is_err());
        assert!(log_in().is_err());
    }
}
