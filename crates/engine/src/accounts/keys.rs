//! Tokens: personal ones, which act as their account, and those of one collection.

use shelf_accounts::{Minted, Wanted};
use shelf_base::{
    Secret,
    ids::{LOCAL_ACCOUNT, TokenId},
};
use shelf_catalog::{Actor, Holder, Token, TokenKind, scopes};

use crate::{Caller, Error, Library, Result};

/// What a personal token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PersonalScope {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Administer, for superusers.
    Admin,
}

impl PersonalScope {
    /// Every scope with its word.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Read, "READ"), (Self::Write, "WRITE"), (Self::Admin, "ADMIN")];

    /// Reads the word, in any case.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| known.eq_ignore_ascii_case(word)).map(|(scope, _)| scope)
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Read => scopes::READ,
            Self::Write => scopes::WRITE,
            Self::Admin => scopes::ADMIN,
        }
    }

    /// The words of a token's bits.
    pub fn words(bits: u8) -> Vec<&'static str> {
        Self::ALL.iter().filter(|(scope, _)| bits & scope.bit() != 0).map(|(_, word)| *word).collect()
    }
}

/// What a collection token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Read.
    Read,
    /// Read and write.
    ReadWrite,
}

impl Permission {
    /// Reads the contract's word.
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "read" => Some(Self::Read),
            "read_write" => Some(Self::ReadWrite),
            _ => None,
        }
    }

    const fn bits(self) -> u8 {
        match self {
            Self::Read => scopes::READ,
            Self::ReadWrite => scopes::READ | scopes::WRITE,
        }
    }

    /// The contract's word for a token's bits.
    pub const fn word(bits: u8) -> &'static str {
        if bits & scopes::WRITE != 0 { "read_write" } else { "read" }
    }
}

/// A token that is asked for.
#[derive(Clone, Debug)]
pub struct KeyRequest {
    /// What its owner calls it.
    pub label: String,
    /// After how many days it stops working.
    pub days: Option<u64>,
}

impl Library {
    /// Makes a personal token of the caller's account; READ and WRITE when no scopes are named.
    pub fn create_personal(
        &self,
        caller: &Caller,
        request: KeyRequest,
        asked: Option<&[PersonalScope]>,
    ) -> Result<Minted> {
        caller.must_be_a_person()?;
        let asked = asked.unwrap_or(&[PersonalScope::Read, PersonalScope::Write]);
        if asked.is_empty() {
            return Err(Error::invalid("scopes", "must name at least one of READ, WRITE, ADMIN"));
        }
        if asked.contains(&PersonalScope::Admin) {
            caller.must_administer()?;
        }
        let wanted = Wanted {
            account: caller.pass.account(),
            kind: TokenKind::Personal,
            label: request.label,
            scopes: asked.iter().fold(0, |bits, scope| bits | scope.bit()),
            days: request.days,
        };
        Ok(shelf_accounts::mint(&*self.catalog, caller.pass.actor(), wanted, self.now())?)
    }

    /// The caller's personal tokens, newest first.
    pub fn personal_tokens(&self, caller: &Caller) -> Result<Vec<Token>> {
        caller.must_be_a_person()?;
        Ok(self.catalog.tokens(&Holder::Personal(caller.pass.account()))?)
    }

    /// Revokes one of the caller's personal tokens.
    pub fn revoke_personal(&self, caller: &Caller, id: &str) -> Result<()> {
        caller.must_be_a_person()?;
        self.revoke(caller.pass.actor(), &Holder::Personal(caller.pass.account()), "PAT", id)
    }

    /// Replaces the text of one of the caller's personal tokens.
    pub fn rotate_personal(&self, caller: &Caller, id: &str) -> Result<(Token, Secret)> {
        caller.must_be_a_person()?;
        self.rotate(caller.pass.actor(), &Holder::Personal(caller.pass.account()), "PAT", id)
    }

    /// Makes a token of a collection that the caller owns, or that an administrator names.
    pub fn create_collection_token(
        &self,
        caller: &Caller,
        request: KeyRequest,
        collection: &str,
        permission: Permission,
    ) -> Result<Minted> {
        caller.may_hand_out_keys()?;
        let found = self.reachable_collection(caller, collection)?;
        let wanted = Wanted {
            account: found.owner,
            kind: TokenKind::Collection(found.id),
            label: request.label,
            scopes: permission.bits(),
            days: request.days,
        };
        Ok(shelf_accounts::mint(&*self.catalog, caller.pass.actor(), wanted, self.now())?)
    }

    /// The tokens of the caller's collections; all of them for an administrator.
    pub fn collection_tokens(&self, caller: &Caller) -> Result<Vec<Token>> {
        caller.must_not_be_a_collection()?;
        caller.must_read()?;
        Ok(self.catalog.tokens(&Holder::Collections(caller.pass.reach()))?)
    }

    /// Revokes the token of a collection.
    pub fn revoke_collection_token(&self, caller: &Caller, id: &str) -> Result<()> {
        caller.must_not_be_a_collection()?;
        caller.must_write()?;
        self.revoke(caller.pass.actor(), &Holder::Collections(caller.pass.reach()), "CAT", id)
    }

    /// Replaces the text of a collection's token.
    pub fn rotate_collection_token(&self, caller: &Caller, id: &str) -> Result<(Token, Secret)> {
        caller.may_hand_out_keys()?;
        self.rotate(caller.pass.actor(), &Holder::Collections(caller.pass.reach()), "CAT", id)
    }

    fn revoke(&self, actor: &Actor, holder: &Holder, what: &'static str, id: &str) -> Result<()> {
        let missing = || Error::missing(what, id);
        let token: TokenId = id.parse().map_err(|_| missing())?;
        let done = self.catalog.revoke_token(actor, holder, token, self.now())?;
        if done { Ok(()) } else { Err(missing()) }
    }

    fn rotate(
        &self,
        actor: &Actor,
        holder: &Holder,
        what: &'static str,
        id: &str,
    ) -> Result<(Token, Secret)> {
        let missing = || Error::missing(what, id);
        let token: TokenId = id.parse().map_err(|_| missing())?;
        shelf_accounts::remint(&*self.catalog, actor, holder, token, self.now())?.ok_or_else(missing)
    }

    /// Makes a personal token for the account `local`.
    pub fn mint_local_token(&self, label: &str, days: Option<u64>) -> Result<Minted> {
        let wanted = Wanted {
            account: LOCAL_ACCOUNT,
            kind: TokenKind::Personal,
            label: label.to_owned(),
            scopes: scopes::READ | scopes::WRITE | scopes::ADMIN,
            days,
        };
        Ok(shelf_accounts::mint(&*self.catalog, &Actor::local(), wanted, self.now())?)
    }

    /// The personal tokens of the account `local`, newest first.
    pub fn local_tokens(&self) -> Result<Vec<Token>> {
        Ok(self.catalog.tokens(&Holder::Personal(LOCAL_ACCOUNT))?)
    }

    /// Revokes a personal token of the account `local`; `false` when there is no such active one.
    pub fn revoke_local_token(&self, id: TokenId) -> Result<bool> {
        let holder = Holder::Personal(LOCAL_ACCOUNT);
        Ok(self.catalog.revoke_token(&Actor::local(), &holder, id, self.now())?)
    }
}
