//! The pass: an identity whose proof has been checked.

use shelf_base::ids::AccountId;
use shelf_catalog::{Actor, Scope, scopes};

/// What kind of identity holds the pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bearer {
    /// The OS user who can open the data directory.
    Owner,
    /// A personal access token.
    Personal,
    /// A collection access token.
    Collection,
}

/// Proof that a caller was identified, and what it may touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    bearer: Bearer,
    actor: Actor,
    scope: Scope,
    scopes: u8,
}

impl Pass {
    /// The pass of whoever can open the data directory.
    pub const fn owner() -> Self {
        let actor = Actor::local();
        let scope = Scope::Account(actor.account);
        Self { bearer: Bearer::Owner, actor, scope, scopes: scopes::READ | scopes::WRITE | scopes::ADMIN }
    }

    pub(crate) const fn of_token(bearer: Bearer, actor: Actor, scope: Scope, scopes: u8) -> Self {
        Self { bearer, actor, scope, scopes }
    }

    /// The kind of identity.
    pub const fn bearer(&self) -> Bearer {
        self.bearer
    }

    /// The account that acts.
    pub const fn account(&self) -> AccountId {
        self.actor.account
    }

    /// Who the journal names.
    pub const fn actor(&self) -> &Actor {
        &self.actor
    }

    /// What queries cover.
    pub const fn scope(&self) -> &Scope {
        &self.scope
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
