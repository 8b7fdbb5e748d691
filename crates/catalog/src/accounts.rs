//! Accounts, sessions and tokens: who there is and by what they prove it.
//!
//! A part of [`Catalog`](crate::Catalog) with a name of its own, because `shelf-accounts` needs nothing else. What is
//! kept of a secret is its hash; whether a password fits is not decided here.

use shelf_base::{
    Digest, Moment,
    ids::{AccountId, CollectionId, SessionId, TokenId},
};

use crate::{Actor, Result, Scope};

/// An account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its id.
    pub id: AccountId,
    /// Its name.
    pub username: String,
    /// Its address; `local` has none.
    pub email: Option<String>,
    /// Whether it may do everything.
    pub is_superuser: bool,
    /// Whether its tokens work.
    pub is_active: bool,
    /// When it was made.
    pub created_at: Moment,
}

/// Where a page of accounts begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountStart {
    /// After so many accounts.
    Offset(u64),
    /// After the account that was made then and has this id, whether or not it still exists.
    After(Moment, AccountId),
}

/// How much a new account may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// An ordinary user; refused while there is no account at all, since nobody could administer the library.
    Ordinary,
    /// A superuser when there is no account yet, otherwise an ordinary user.
    FirstIsSuperuser,
    /// A superuser.
    Superuser,
    /// An ordinary user, whoever else there is.
    Plain,
}

/// An account to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAccount {
    /// Its id.
    pub id: AccountId,
    /// Its name.
    pub username: String,
    /// Its address.
    pub email: String,
    /// The hash of its password, in the form that names its own parameters.
    pub password: String,
    /// How much it may do.
    pub rank: Rank,
    /// When it is made.
    pub created_at: Moment,
}

/// What to change of an account; `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountChange {
    /// New address.
    pub email: Option<String>,
    /// New name.
    pub username: Option<String>,
    /// New hash of a password.
    pub password: Option<String>,
    /// Whether its tokens work.
    pub is_active: Option<bool>,
    /// Whether it may do everything.
    pub is_superuser: Option<bool>,
}

/// A session: what a login began and a refresh carries on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Whose it is.
    pub account: AccountId,
    /// Hash of the one refresh token that works.
    pub refresh: Digest,
    /// When it began.
    pub created_at: Moment,
    /// When it ends unless it is refreshed.
    pub expires_at: Moment,
}

/// What became of a refresh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// The session goes on.
    Done(Account),
    /// The token had been used before: the session is over, for whoever has it.
    Reused,
    /// There is no such session, it has ended, or its account does not work.
    Gone,
}

/// Bits of what a token may do.
pub mod scopes {
    /// Read.
    pub const READ: u8 = 1;
    /// Write.
    pub const WRITE: u8 = 2;
    /// Administer.
    pub const ADMIN: u8 = 4;
}

/// The two kinds of token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Personal: acts as its account.
    Personal,
    /// Collection: acts on one collection.
    Collection(CollectionId),
}

/// A token to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// Its id.
    pub id: TokenId,
    /// Whose it is; of a collection token, the owner of the collection.
    pub account: AccountId,
    /// Its kind.
    pub kind: TokenKind,
    /// What its owner calls it.
    pub label: String,
    /// SHA-256 of its text.
    pub hash: Digest,
    /// Bits of [`scopes`].
    pub scopes: u8,
    /// When it was made.
    pub created_at: Moment,
    /// When it stops working.
    pub expires_at: Option<Moment>,
}

/// A stored token with its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// What was stored.
    pub token: NewToken,
    /// Name of its collection, when it has one.
    pub collection_name: Option<String>,
    /// When it was revoked.
    pub revoked_at: Option<Moment>,
    /// When it was last used, to about a minute.
    pub last_used_at: Option<Moment>,
    /// Whether its account is active.
    pub account_active: bool,
    /// Whether its account is a superuser.
    pub account_superuser: bool,
}

impl Token {
    /// Whether it works.
    pub fn is_active(&self, now: Moment) -> bool {
        self.revoked_at.is_none()
            && self.account_active
            && self.token.expires_at.is_none_or(|expiry| now < expiry)
    }
}

/// Among which tokens one is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The personal tokens of an account.
    Personal(AccountId),
    /// The collection tokens of the collections in scope.
    Collections(Scope),
}

/// What the rest of the program asks of a catalog about who there is.
pub trait Accounts: Send + Sync {
    /// An account by id.
    fn account(&self, id: AccountId) -> Result<Option<Account>>;
    /// The accounts beside `local` whose name or address holds `matching`, whatever the case of its letters, newest
    /// first, and how many there are in all.
    fn accounts(
        &self,
        matching: Option<&str>,
        start: AccountStart,
        limit: usize,
    ) -> Result<(Vec<Account>, u64)>;
    /// The account with this name or address, whatever the case of its letters, and the hash of its password.
    fn login(&self, name: &str) -> Result<Option<(Account, Option<String>)>>;
    /// Makes an account and its collection `default`.
    fn add_account(&self, actor: &Actor, account: &NewAccount) -> Result<Account>;
    /// Changes an account; `None` when there is none. Sessions end when it is deactivated or its password changes.
    fn change_account(
        &self,
        actor: &Actor,
        id: AccountId,
        change: &AccountChange,
        now: Moment,
    ) -> Result<Option<Account>>;
    /// Deletes an account with its collections, documents, snapshots, tokens and sessions; `false` when there is none.
    fn delete_account(&self, actor: &Actor, id: AccountId, now: Moment) -> Result<bool>;

    /// Begins a session.
    fn add_session(&self, session: &Session) -> Result<()>;
    /// The account of a session that goes on; `None` when it does not, or the account does not work.
    fn session(&self, id: SessionId, now: Moment) -> Result<Option<Account>>;
    /// Puts the token `next` in place of `presented`; a token that was replaced before ends the session.
    fn rotate_session(
        &self,
        id: SessionId,
        presented: &Digest,
        next: &Digest,
        expires_at: Moment,
        now: Moment,
    ) -> Result<Rotation>;
    /// Ends a session; `false` when there was none.
    fn end_session(&self, id: SessionId) -> Result<bool>;

    /// Stores a token; only its hash is kept.
    fn add_token(&self, actor: &Actor, token: &NewToken) -> Result<()>;
    /// A token by the hash of its text, revoked and expired ones included.
    fn token(&self, hash: &Digest) -> Result<Option<Token>>;
    /// All tokens of a holder, newest first.
    fn tokens(&self, holder: &Holder) -> Result<Vec<Token>>;
    /// Revokes a token; `false` when the holder has no such token that was not revoked.
    fn revoke_token(&self, actor: &Actor, holder: &Holder, id: TokenId, now: Moment) -> Result<bool>;
    /// Puts another text in place of a token's, with as long a life as it had; `None` when the holder has no such token
    /// that was not revoked.
    fn rotate_token(
        &self,
        actor: &Actor,
        holder: &Holder,
        id: TokenId,
        hash: &Digest,
        now: Moment,
    ) -> Result<Option<Token>>;
    /// Notes that a token was used. The note is written soon, and a failure to write it is nobody's failure.
    fn token_used(&self, id: TokenId, now: Moment) -> Result<()>;

    /// A random secret of this library, made from `fresh` when it is first asked for.
    fn secret(&self, name: &str, fresh: [u8; 32]) -> Result<[u8; 32]>;
    /// Puts another value in place of a secret, or makes it.
    fn set_secret(&self, name: &str, value: [u8; 32]) -> Result<()>;
}
