//! Sessions of the web console. A browser keeps one signed text in a cookie, and the text names a session or a token: both
//! are looked up for every request, so signing out, revoking and deactivating work at once.
//!
//! A session is one of the rows that logins have. A pasted token gets no session, because a session may do whatever its
//! account may, and a token often may not; the cookie names the token's hash instead.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use shelf_base::{
    Digest, Moment, Secret,
    ids::{AccountId, LOCAL_ACCOUNT, SessionId},
};
use shelf_catalog::{Accounts, Rotation, Session};

use crate::{
    AuthError, Error, Pass, Result,
    session::{REFRESH_SECONDS, key, later, with_password},
    token,
    web_token::{Claims, Use},
};

/// How long a link to the console works, in seconds.
const LINK_SECONDS: u64 = 30;
/// How long a browser keeps acting with a pasted token, in seconds.
pub const CONSOLE_TOKEN_SECONDS: u64 = 12 * 60 * 60;
/// How long a session of the console lasts, in seconds.
pub const CONSOLE_SESSION_SECONDS: u64 = REFRESH_SECONDS;

/// Starts a console session with a password and returns the text of the cookie.
pub fn console_log_in(catalog: &dyn Accounts, name: &str, password: &str, now: Moment) -> Result<Secret> {
    let account = with_password(catalog, name, password)?;
    let (session, expires_at) = (SessionId::fresh(), later(now, REFRESH_SECONDS));
    // Nobody knows the text behind this hash: a console session is not refreshed.
    add(catalog, account.id, session, &random_text()?, (now, expires_at))?;
    signed(catalog, account.id, session, Use::Console, random_text()?, (now, expires_at))
}

/// Lets a browser act with a token and returns the text of the cookie.
pub fn console_with_token(catalog: &dyn Accounts, text: &str, now: Moment) -> Result<Secret, AuthError> {
    let pass = token::verify(catalog, text, now)?;
    let id = Digest::of(text.as_bytes()).to_string();
    let until = later(now, CONSOLE_TOKEN_SECONDS);
    signed(catalog, pass.account(), SessionId::fresh(), Use::Token, id, (now, until)).map_err(refused)
}

/// Makes the text of a link that signs the owner of the data directory in, once and within half a minute.
pub fn console_link(catalog: &dyn Accounts, now: Moment) -> Result<Secret> {
    let (session, expires_at) = (SessionId::fresh(), later(now, LINK_SECONDS));
    let id = random_text()?;
    add(catalog, LOCAL_ACCOUNT, session, &id, (now, expires_at))?;
    signed(catalog, LOCAL_ACCOUNT, session, Use::Link, id, (now, expires_at))
}

/// Exchanges the text of a link for the text of a cookie. A link that is used twice ends the session that it started.
pub fn redeem_link(catalog: &dyn Accounts, text: &str, now: Moment) -> Result<Secret> {
    let claims = Claims::read(text, &key(catalog)?, Use::Link, now).ok_or(Error::WrongRefresh)?;
    let (presented, next) = (Digest::of(claims.jti.as_bytes()), Digest::of(random_text()?.as_bytes()));
    let expires_at = later(now, REFRESH_SECONDS);
    match catalog.rotate_session(claims.sid, &presented, &next, expires_at, now)? {
        Rotation::Done(_) => {
            signed(catalog, claims.sub, claims.sid, Use::Console, random_text()?, (now, expires_at))
        }
        Rotation::Reused | Rotation::Gone => Err(Error::WrongRefresh),
    }
}

/// Verifies the text of a cookie: its signature, its expiry, and that its session or token is active.
pub fn verify_console(catalog: &dyn Accounts, text: &str, now: Moment) -> Result<Pass, AuthError> {
    let key = key(catalog).map_err(refused)?;
    if let Some(claims) = Claims::read(text, &key, Use::Console, now) {
        let account = catalog.session(claims.sid, now)?.filter(|account| account.id == claims.sub);
        return Ok(Pass::of_session(&account.ok_or(AuthError::Unknown)?, claims.sid));
    }
    let claims = Claims::read(text, &key, Use::Token, now).ok_or(AuthError::Unknown)?;
    let hash: Digest = claims.jti.parse().map_err(|_| AuthError::Unknown)?;
    let found = catalog.token(&hash)?.filter(|found| found.is_active(now));
    found.map(token::pass).ok_or(AuthError::Unknown)
}

fn add(
    catalog: &dyn Accounts,
    account: AccountId,
    id: SessionId,
    secret: &str,
    (created_at, expires_at): (Moment, Moment),
) -> Result<()> {
    let refresh = Digest::of(secret.as_bytes());
    Ok(catalog.add_session(&Session { id, account, refresh, created_at, expires_at })?)
}

fn signed(
    catalog: &dyn Accounts,
    account: AccountId,
    session: SessionId,
    usage: Use,
    id: String,
    (from, until): (Moment, Moment),
) -> Result<Secret> {
    let claims = Claims::new(account, session, usage, id, from, until);
    claims.sign(&key(catalog)?).map(Secret::new).ok_or(Error::Hashing)
}

fn random_text() -> Result<String> {
    let mut random = [0; 24];
    getrandom::fill(&mut random).map_err(Error::Random)?;
    Ok(URL_SAFE_NO_PAD.encode(random))
}

fn refused(error: Error) -> AuthError {
    match error {
        Error::Catalog(error) => AuthError::Catalog(error),
        _ => AuthError::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use shelf_catalog::{Actor, Holder, NewAccount, Rank, TokenKind, scopes, sqlite::SqliteCatalog};

    use super::*;
    use crate::{Bearer, Password, Wanted, log_in, log_out, mint, verify_web};

    fn at(second: i64) -> Moment {
        Moment::from_micros(1_700_000_000_000_000 + second * 1_000_000)
    }

    fn catalog() -> (tempfile::TempDir, SqliteCatalog) {
        let folder = tempfile::tempdir().unwrap();
        let catalog = SqliteCatalog::open(folder.path()).unwrap();
        let account = NewAccount {
            id: AccountId::fresh(),
            username: "alice".into(),
            email: "alice@example.com".into(),
            password: Password::new("correct horse battery").unwrap().hash().unwrap(),
            rank: Rank::Plain,
            created_at: at(0),
        };
        catalog.add_account(&Actor::local(), &account).unwrap();
        (folder, catalog)
    }

    #[test]
    fn a_password_starts_a_session_that_ends_with_signing_out() {
        let (_folder, catalog) = catalog();
        let cookie = console_log_in(&catalog, "alice", "correct horse battery", at(0)).unwrap();
        let pass = verify_console(&catalog, cookie.reveal(), at(60 * 60 * 24)).unwrap();
        assert_eq!((pass.bearer(), pass.may_administer()), (Bearer::Web, false));
        assert!(verify_console(&catalog, cookie.reveal(), at(60 * 60 * 24 * 7)).is_err(), "after a week");
        assert!(verify_web(&catalog, cookie.reveal(), at(1)).is_err(), "a cookie is not an access token");
        let tokens = log_in(&catalog, "alice", "correct horse battery", at(0)).unwrap();
        assert!(verify_console(&catalog, tokens.access.reveal(), at(1)).is_err(), "and the other way round");
        assert!(log_out(&catalog, pass.session().unwrap()).unwrap());
        assert!(verify_console(&catalog, cookie.reveal(), at(1)).is_err());
        let says = |name, password| {
            console_log_in(&catalog, name, password, at(0)).map(|_| ()).unwrap_err().to_string()
        };
        assert_eq!(says("alice", "wrong horse battery"), says("nobody", "correct horse battery"));
    }

    #[test]
    fn a_pasted_token_gives_exactly_what_the_token_may_do() {
        let (_folder, catalog) = catalog();
        let wanted = Wanted {
            account: LOCAL_ACCOUNT,
            kind: TokenKind::Personal,
            label: "reader".into(),
            scopes: scopes::READ,
            days: None,
        };
        let minted = mint(&catalog, &Actor::local(), wanted, at(0)).unwrap();
        let cookie = console_with_token(&catalog, minted.text.reveal(), at(0)).unwrap();
        assert!(!cookie.reveal().contains(minted.text.reveal()));
        let pass = verify_console(&catalog, cookie.reveal(), at(1)).unwrap();
        assert_eq!((pass.may_read(), pass.may_write(), pass.bearer()), (true, false, Bearer::Personal));
        assert!(verify_console(&catalog, cookie.reveal(), at(60 * 60 * 12)).is_err(), "after half a day");
        let holder = Holder::Personal(LOCAL_ACCOUNT);
        catalog.revoke_token(&Actor::local(), &holder, minted.token.id, at(1)).unwrap();
        assert!(verify_console(&catalog, cookie.reveal(), at(1)).is_err(), "revoked");
        assert!(console_with_token(&catalog, "pat_live_nothing", at(0)).is_err());
    }

    #[test]
    fn a_link_works_once_and_for_half_a_minute() {
        let (_folder, catalog) = catalog();
        let late = console_link(&catalog, at(0)).unwrap();
        assert!(redeem_link(&catalog, late.reveal(), at(30)).is_err());
        let link = console_link(&catalog, at(100)).unwrap();
        assert!(verify_console(&catalog, link.reveal(), at(101)).is_err(), "a link is not a cookie");
        let cookie = redeem_link(&catalog, link.reveal(), at(101)).unwrap();
        let pass = verify_console(&catalog, cookie.reveal(), at(200)).unwrap();
        assert_eq!((pass.account(), pass.may_administer()), (LOCAL_ACCOUNT, true));
        assert!(redeem_link(&catalog, link.reveal(), at(102)).is_err(), "used twice");
        assert!(verify_console(&catalog, cookie.reveal(), at(200)).is_err(), "one of the two was a thief");
    }
}
