//! The catalog's answers about who there is.

use shelf_base::{
    Digest, Moment,
    ids::{AccountId, SessionId, TokenId},
};

use super::{Backend, Touches, accounts, tokens};
use crate::{
    Account, AccountChange, AccountStart, Accounts, Actor, Holder, NewAccount, NewToken, Result, Rotation,
    Session, Token,
};

impl<B: Backend> Accounts for B {
    fn account(&self, id: AccountId) -> Result<Option<Account>> {
        self.read(|connection| accounts::by_id(connection, id))
    }

    fn accounts(
        &self,
        matching: Option<&str>,
        start: AccountStart,
        limit: usize,
    ) -> Result<(Vec<Account>, u64)> {
        self.view(|connection| match matching {
            Some(text) => accounts::matching(connection, text, start, limit),
            None => accounts::page(connection, start, limit),
        })
    }

    fn login(&self, name: &str) -> Result<Option<(Account, Option<String>)>> {
        self.read(|connection| accounts::login(connection, name))
    }

    fn add_account(&self, actor: &Actor, account: &NewAccount) -> Result<Account> {
        let (actor, account) = (actor.clone(), account.clone());
        self.write(Touches::Library, move |turn| accounts::add(turn, &actor, &account))
    }

    fn change_account(
        &self,
        actor: &Actor,
        id: AccountId,
        change: &AccountChange,
        now: Moment,
    ) -> Result<Option<Account>> {
        let (actor, change) = (actor.clone(), change.clone());
        self.write(Touches::Library, move |turn| accounts::change(turn, &actor, id, &change, now))
    }

    fn delete_account(&self, actor: &Actor, id: AccountId, now: Moment) -> Result<bool> {
        let actor = actor.clone();
        self.write(Touches::Library, move |turn| accounts::delete(turn, &actor, id, now))
    }

    fn add_session(&self, session: &Session) -> Result<()> {
        let session = session.clone();
        self.write(Touches::Account(session.account), move |turn| accounts::add_session(turn, &session))
    }

    fn session(&self, id: SessionId, now: Moment) -> Result<Option<Account>> {
        self.read(|connection| accounts::session(connection, id, now))
    }

    fn rotate_session(
        &self,
        id: SessionId,
        presented: &Digest,
        next: &Digest,
        expires_at: Moment,
        now: Moment,
    ) -> Result<Rotation> {
        let (presented, next) = (*presented, *next);
        self.write(Touches::Library, move |turn| {
            accounts::rotate_session(turn, id, &presented, &next, expires_at, now)
        })
    }

    fn end_session(&self, id: SessionId) -> Result<bool> {
        self.write(Touches::Library, move |turn| accounts::end_session(turn, id))
    }

    fn add_token(&self, actor: &Actor, token: &NewToken) -> Result<()> {
        let (actor, token) = (actor.clone(), token.clone());
        self.write(Touches::Library, move |turn| tokens::add(turn, &actor, &token))
    }

    fn token(&self, hash: &Digest) -> Result<Option<Token>> {
        self.read(|connection| tokens::by_hash(connection, hash))
    }

    fn tokens(&self, holder: &Holder) -> Result<Vec<Token>> {
        self.read(|connection| tokens::of_holder(connection, holder))
    }

    fn revoke_token(&self, actor: &Actor, holder: &Holder, id: TokenId, now: Moment) -> Result<bool> {
        let (actor, holder) = (actor.clone(), holder.clone());
        self.write(Touches::Library, move |turn| tokens::revoke(turn, &actor, &holder, id, now))
    }

    fn rotate_token(
        &self,
        actor: &Actor,
        holder: &Holder,
        id: TokenId,
        hash: &Digest,
        now: Moment,
    ) -> Result<Option<Token>> {
        let (actor, holder, hash) = (actor.clone(), holder.clone(), *hash);
        self.write(Touches::Library, move |turn| tokens::rotate(turn, &actor, &holder, id, &hash, now))
    }

    fn token_used(&self, id: TokenId, now: Moment) -> Result<()> {
        self.post(move |turn| tokens::used(turn, id, now))
    }

    fn secret(&self, name: &str, fresh: [u8; 32]) -> Result<[u8; 32]> {
        if let Some(found) = self.read(|connection| tokens::secret(connection, name))? {
            return Ok(found);
        }
        let name = name.to_owned();
        self.write(Touches::Library, move |turn| tokens::make_secret(turn, &name, fresh))
    }

    fn set_secret(&self, name: &str, value: [u8; 32]) -> Result<()> {
        let name = name.to_owned();
        self.write(Touches::Library, move |turn| tokens::set_secret(turn, &name, value))
    }
}
