//! People: registering, logging in, and what administrators do.

use shelf_accounts::{Password, Tokens};
use shelf_base::{
    CallContext, Moment,
    ids::{AccountId, LOCAL_ACCOUNT},
};
use shelf_catalog::{Account, AccountChange, AccountStart, Actor, Holder, NewAccount, Rank};

use crate::{Caller, Error, Library, Result, commit::DropAccountDraft};

/// A person who wants an account.
#[derive(Clone, Debug)]
pub struct Registration {
    /// Address.
    pub email: String,
    /// Name.
    pub username: String,
    /// Password, in the clear.
    pub password: String,
}

impl Registration {
    /// Checks everything that can be known without a library.
    pub fn check(&self) -> Result<()> {
        shelf_accounts::check_email(&self.email)?;
        shelf_accounts::check_username(&self.username)?;
        Password::new(self.password.clone())?;
        Ok(())
    }
}

/// What an administrator changes of an account; `None` stays.
#[derive(Clone, Debug, Default)]
pub struct AccountUpdate {
    /// New address.
    pub email: Option<String>,
    /// New name.
    pub username: Option<String>,
    /// New password, in the clear.
    pub password: Option<String>,
    /// Whether its tokens work.
    pub is_active: Option<bool>,
    /// Whether it may do everything.
    pub is_superuser: Option<bool>,
}

/// How much of the library an account uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Collections.
    pub collections: u64,
    /// Live documents.
    pub documents: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Snapshots.
    pub snapshots: u64,
    /// Personal tokens that work.
    pub personal_tokens: u64,
    /// Collection tokens that work.
    pub collection_tokens: u64,
}

impl Library {
    /// Registers a person. The first one becomes the superuser, and only from the machine itself.
    pub fn register(&self, request: Registration, from_this_machine: bool) -> Result<Account> {
        if self.options.registration_closed {
            return Err(Error::Denied("Registration is closed: ask an administrator for an account".into()));
        }
        let rank = if from_this_machine { Rank::FirstIsSuperuser } else { Rank::Ordinary };
        let account = self.new_account(request, rank)?;
        let actor = Actor { account: account.id, token: None };
        Ok(self.catalog.add_account(&actor, &account)?)
    }

    /// Makes an account for somebody, as the owner of the data directory.
    pub fn create_user(&self, caller: &Caller, request: Registration, is_superuser: bool) -> Result<Account> {
        caller.must_administer()?;
        let rank = if is_superuser { Rank::Superuser } else { Rank::Plain };
        let account = self.new_account(request, rank)?;
        Ok(self.catalog.add_account(caller.pass.actor(), &account)?)
    }

    fn new_account(&self, request: Registration, rank: Rank) -> Result<NewAccount> {
        shelf_accounts::check_email(&request.email)?;
        shelf_accounts::check_username(&request.username)?;
        Ok(NewAccount {
            id: AccountId::fresh(),
            username: request.username,
            email: request.email,
            password: self.hash_password(request.password)?,
            rank,
            created_at: self.now(),
        })
    }

    pub(super) fn hash_password(&self, text: String) -> Result<String> {
        let password = Password::new(text)?;
        let _one_at_a_time = self.token_use.hashing.lock();
        Ok(password.hash()?)
    }

    /// Begins a session for a name (or address) and its password.
    pub fn log_in(&self, name: &str, password: &str) -> Result<Tokens> {
        let _one_at_a_time = self.token_use.hashing.lock();
        Ok(shelf_accounts::log_in(&*self.catalog, name, password, self.now())?)
    }

    /// Goes on with a session.
    pub fn refresh(&self, token: &str) -> Result<Tokens> {
        Ok(shelf_accounts::refresh(&*self.catalog, token, self.now())?)
    }

    /// Ends the caller's session.
    pub fn log_out(&self, caller: &Caller) -> Result<()> {
        caller.must_be_a_person()?;
        if let Some(session) = caller.pass.session() {
            shelf_accounts::log_out(&*self.catalog, session)?;
        }
        Ok(())
    }

    /// The caller's own account.
    pub fn profile(&self, caller: &Caller) -> Result<Account> {
        caller.must_be_a_person()?;
        let found = self.catalog.account(caller.pass.account())?;
        found.ok_or_else(|| Error::missing("user", caller.pass.account().to_string()))
    }

    /// How much the caller uses.
    pub fn usage(&self, caller: &Caller) -> Result<Usage> {
        caller.must_not_be_a_collection()?;
        caller.must_read()?;
        let now = self.now();
        let active = |holder| -> Result<u64> {
            let tokens = self.catalog.tokens(&holder)?;
            Ok(tokens.iter().filter(|token| token.is_active(now)).count() as u64)
        };
        let scope = caller.pass.scope();
        let mut usage = Usage {
            personal_tokens: active(Holder::Personal(caller.pass.account()))?,
            collection_tokens: active(Holder::Collections(scope.clone()))?,
            ..Usage::default()
        };
        for summary in self.collections(caller)? {
            usage.collections += 1;
            usage.documents += summary.documents;
            usage.bytes += summary.bytes;
            usage.snapshots += summary.snapshots;
        }
        Ok(usage)
    }

    /// A page of all accounts, newest first, and how many fit.
    pub fn users(
        &self,
        caller: &Caller,
        matching: Option<&str>,
        limit: usize,
        offset: u64,
    ) -> Result<(Vec<Account>, u64)> {
        caller.must_administer()?;
        Ok(self.catalog.accounts(matching, AccountStart::Offset(offset), limit)?)
    }

    /// A page of accounts from an offset or a cursor, how many there are, and the cursor of the next page.
    pub fn users_page(
        &self,
        caller: &Caller,
        matching: Option<&str>,
        limit: usize,
        (offset, cursor): (u64, Option<&str>),
    ) -> Result<(Vec<Account>, u64, Option<String>)> {
        caller.must_administer()?;
        let question = format!("users {matching:?}");
        let start = match cursor {
            Some(cursor) => self.account_after(caller, &question, cursor)?,
            None => AccountStart::Offset(offset),
        };
        // One more tells whether another page follows.
        let (mut found, total) = self.catalog.accounts(matching, start, limit.saturating_add(1))?;
        let goes_on = found.len() > limit;
        found.truncate(limit);
        let next = match found.last() {
            Some(last) if goes_on => {
                let place = (last.created_at.micros(), last.id);
                Some(self.seal_cursor(caller, &question, &place)?)
            }
            _ => None,
        };
        Ok((found, total, next))
    }

    /// The place after the account that a cursor names.
    fn account_after(&self, caller: &Caller, question: &str, cursor: &str) -> Result<AccountStart> {
        let (at, id) = self.open_cursor::<(i64, AccountId)>(caller, question, cursor)?;
        Ok(AccountStart::After(Moment::from_micros(at), id))
    }

    /// An account by id.
    pub fn user(&self, caller: &Caller, id: &str) -> Result<Account> {
        caller.must_administer()?;
        let found = self.catalog.account(user_id(id)?)?;
        found.ok_or_else(|| Error::missing("user", id))
    }

    /// An account by name or address.
    pub fn user_named(&self, caller: &Caller, name: &str) -> Result<Account> {
        caller.must_administer()?;
        let found = self.catalog.login(name)?.map(|(account, _)| account);
        found.filter(|account| account.id != LOCAL_ACCOUNT).ok_or_else(|| Error::missing("user", name))
    }

    /// Changes an account.
    pub fn update_user(&self, caller: &Caller, id: &str, update: AccountUpdate) -> Result<Account> {
        caller.must_administer()?;
        caller.must_write()?;
        let account = user_id(id)?;
        update.email.as_deref().map_or(Ok(()), shelf_accounts::check_email)?;
        update.username.as_deref().map_or(Ok(()), shelf_accounts::check_username)?;
        let change = AccountChange {
            email: update.email,
            username: update.username,
            password: update.password.map(|text| self.hash_password(text)).transpose()?,
            is_active: update.is_active,
            is_superuser: update.is_superuser,
        };
        if change == AccountChange::default() {
            return self.user(caller, id);
        }
        let changed = self.catalog.change_account(caller.pass.actor(), account, &change, self.now())?;
        changed.ok_or_else(|| Error::missing("user", id))
    }

    /// Deletes an account and all that is its own.
    pub fn delete_user(&self, caller: &Caller, id: &str, call: &CallContext) -> Result<()> {
        caller.must_administer()?;
        caller.must_write()?;
        let account = user_id(id)?;
        if account == caller.pass.account() {
            return Err(Error::Denied("You cannot delete your own account".into()));
        }
        let gone = self.commit(DropAccountDraft { actor: caller.pass.actor(), id: account }, call)?;
        if gone { Ok(()) } else { Err(Error::missing("user", id)) }
    }
}

/// The account `local` is nobody that the user tools know.
fn user_id(text: &str) -> Result<AccountId> {
    let id = text.parse::<AccountId>().ok().filter(|id| *id != LOCAL_ACCOUNT);
    id.ok_or_else(|| Error::missing("user", text))
}
