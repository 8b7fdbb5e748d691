//! The pass: an authenticated identity.

use shelf_base::ids::{AccountId, CollectionId, SessionId, TokenId};
use shelf_catalog::{Account, Actor, Scope, scopes};

/// What kind of identity holds the pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bearer {
    /// The OS user who can open the data directory.
    Owner,
    /// A personal access token.
    Personal,
    /// A collection access token.
    Collection,
    /// A logged-in user; accepted only by the REST API.
    Web,
}

/// Proof that a caller was authenticated, and what it may access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    bearer: Bearer,
    actor: Actor,
    scope: Scope,
    scopes: u8,
    token: Option<TokenId>,
    session: Option<SessionId>,
}

impl Pass {
    /// The pass of the OS user who can open the data directory.
    pub const fn owner() -> Self {
        let actor = Actor::local();
        let scope = Scope::Account(actor.account);
        let scopes = scopes::READ | scopes::WRITE | scopes::ADMIN;
        Self { bearer: Bearer::Owner, actor, scope, scopes, token: None, session: None }
    }

    pub(crate) const fn of_token(
        bearer: Bearer,
        actor: Actor,
        scope: Scope,
        scopes: u8,
        token: TokenId,
    ) -> Self {
        Self { bearer, actor, scope, scopes, token: Some(token), session: None }
    }

    pub(crate) const fn of_session(account: &Account, session: SessionId) -> Self {
        let admin = if account.is_superuser { scopes::ADMIN } else { 0 };
        Self {
            bearer: Bearer::Web,
            actor: Actor { account: account.id, token: None },
            scope: Scope::Account(account.id),
            scopes: scopes::READ | scopes::WRITE | admin,
            token: None,
            session: Some(session),
        }
    }

    /// The kind of identity.
    pub const fn bearer(&self) -> Bearer {
        self.bearer
    }

    /// The acting account.
    pub const fn account(&self) -> AccountId {
        self.actor.account
    }

    /// The actor recorded in the journal.
    pub const fn actor(&self) -> &Actor {
        &self.actor
    }

    /// The scope of queries.
    pub const fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The scope in which objects are looked up by id. It lets an administrator reach the objects of other users.
    pub fn reach(&self) -> Scope {
        if self.may_administer() { Scope::Library } else { self.scope.clone() }
    }

    /// The same identity, restricted to one collection. The caller must check that it has access to that collection.
    #[must_use]
    pub fn within(&self, collection: CollectionId) -> Self {
        Self { scope: Scope::Collection(collection), ..self.clone() }
    }

    /// The token that was presented, if any.
    pub const fn token(&self) -> Option<TokenId> {
        self.token
    }

    /// The active session, if any.
    pub const fn session(&self) -> Option<SessionId> {
        self.session
    }

    /// Whether it may read.
    pub const fn may_read(&self) -> bool {
        self.scopes & scopes::READ != 0
    }

    /// Whether it may write.
    pub const fn may_write(&self) -> bool {
        self.scopes & scopes::WRITE != 0
    }

    /// Whether it may administer.
    pub const fn may_administer(&self) -> bool {
        self.scopes & scopes::ADMIN != 0
    }
}
