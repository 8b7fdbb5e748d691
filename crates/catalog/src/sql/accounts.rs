//! Accounts and sessions.

use std::cmp::Reverse;

use shelf_base::{
    Digest, Moment,
    ids::{AccountId, LOCAL_ACCOUNT, SessionId},
};

use super::{
    Connection, Row, params, put, read,
    rows::{account_id, collect, digest, moment},
    shelves,
    turn::Turn,
};
use crate::{
    Account, AccountChange, AccountStart, Actor, Error, NewAccount, Operation, Rank, Result, Rotation, Scope,
    Session,
};

const ACCOUNT: &str = "a.uuid, a.username, a.email, a.is_superuser, a.is_active, a.created_at";

fn account(row: &Row<'_>) -> Result<Account> {
    Ok(Account {
        id: account_id(row, 0)?,
        username: row.get(1)?,
        email: row.get(2)?,
        is_superuser: row.get(3)?,
        is_active: row.get(4)?,
        created_at: moment(row, 5)?,
    })
}

pub(super) fn by_id(connection: Connection<'_>, id: AccountId) -> Result<Option<Account>> {
    let sql = format!("SELECT {ACCOUNT} FROM accounts a WHERE a.uuid = ?1 AND a.deleted_at IS NULL");
    let mut query = connection.prepare_cached(&sql)?;
    Ok(collect(query.query(params![id.as_bytes()])?, account)?.into_iter().next())
}

pub(super) fn page(
    connection: Connection<'_>,
    start: AccountStart,
    limit: usize,
) -> Result<(Vec<Account>, u64)> {
    const LISTED: &str = "a.deleted_at IS NULL AND a.uuid <> ?1";
    let local = LOCAL_ACCOUNT.as_bytes();
    let mut count = connection.prepare_cached(&format!("SELECT COUNT(*) FROM accounts a WHERE {LISTED}"))?;
    let total = count.query_row(params![local], |row| row.get(0))?;
    let (skip, after) = match start {
        AccountStart::Offset(offset) => (i64::try_from(offset).unwrap_or(i64::MAX), None),
        AccountStart::After(at, id) => (0, Some((at.micros(), id))),
    };
    let (at, id) = after.map_or((None, None), |(at, id)| (Some(at), Some(id)));
    let mut query = connection.prepare_cached(&format!(
        "SELECT {ACCOUNT} FROM accounts a WHERE {LISTED}
             AND (CAST(?2 AS BIGINT) IS NULL OR a.created_at < ?2 OR (a.created_at = ?2 AND a.uuid > ?3))
         ORDER BY a.created_at DESC, a.uuid LIMIT ?4 OFFSET ?5"
    ))?;
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let id = id.as_ref().map(AccountId::as_bytes);
    Ok((collect(query.query(params![local, at, id, most, skip])?, account)?, total))
}

/// A page of the accounts whose name or address holds a text. All accounts are looked at: neither database knows the case
/// of letters beyond ASCII.
pub(super) fn matching(
    connection: Connection<'_>,
    text: &str,
    start: AccountStart,
    limit: usize,
) -> Result<(Vec<Account>, u64)> {
    let text = folded(text);
    let holds = |value: &str| folded(value).contains(&text);
    let (mut found, _) = page(connection, AccountStart::Offset(0), usize::MAX)?;
    found.retain(|account| holds(&account.username) || account.email.as_deref().is_some_and(holds));
    let total = found.len() as u64;
    let skipped = match start {
        AccountStart::Offset(offset) => usize::try_from(offset).unwrap_or(usize::MAX),
        AccountStart::After(at, id) => {
            found.partition_point(|account| (Reverse(account.created_at), account.id) <= (Reverse(at), id))
        }
    };
    Ok((found.into_iter().skip(skipped).take(limit).collect(), total))
}

/// A text without the case of its letters.
fn folded(text: &str) -> String {
    // At the end of a word, Greek has another small sigma.
    text.chars().flat_map(char::to_lowercase).map(|letter| if letter == 'ς' { 'σ' } else { letter }).collect()
}

pub(super) fn login(connection: Connection<'_>, name: &str) -> Result<Option<(Account, Option<String>)>> {
    // A name cannot look like an address, so at most one account fits, unless they were made when the case of letters
    // beyond ASCII still counted: then the one that is spelled so.
    let by_name = same_but_for_case(connection, "username", name)?;
    let by_email = same_but_for_case(connection, "email", name)?;
    let named: Vec<Named> = by_name.into_iter().chain(by_email).collect();
    let Some(found) = named.iter().find(|found| found.text == name).or(named.first()) else {
        return Ok(None);
    };
    let sql =
        format!("SELECT {ACCOUNT}, a.password FROM accounts a WHERE a.uuid = ?1 AND a.deleted_at IS NULL");
    let mut query = connection.prepare_cached(&sql)?;
    let found = query.query(params![found.id.as_bytes()])?;
    Ok(collect(found, |row| Ok((account(row)?, row.get(6)?)))?.into_iter().next())
}

/// An account by a name or an address that it has.
struct Named {
    id: AccountId,
    text: String,
}

/// The accounts whose name or address is a text, whatever the case of its letters. The databases compare letters of ASCII,
/// by an index; among other letters, all accounts are looked at.
fn same_but_for_case(connection: Connection<'_>, column: &str, text: &str) -> Result<Vec<Named>> {
    let select = format!("SELECT a.uuid, a.{column} FROM accounts a");
    let named = |row: &Row<'_>| Ok(Named { id: account_id(row, 0)?, text: row.get(1)? });
    if text.is_ascii() {
        let is_same = match connection {
            Connection::Sqlite(_) => format!("a.{column} = ?1 COLLATE NOCASE"),
            Connection::Postgres(_) => {
                format!("LOWER(a.{column}) = LOWER(CAST(?1 AS TEXT) COLLATE \"C\")")
            }
        };
        let mut query = connection.prepare_cached(&format!("{select} WHERE {is_same}"))?;
        return collect(query.query(params![text])?, named);
    }
    let mut query = connection
        .prepare_cached(&format!("{select} WHERE a.{column} IS NOT NULL AND a.deleted_at IS NULL"))?;
    let mut all = collect(query.query(params![])?, named)?;
    let text = folded(text);
    all.retain(|found| folded(&found.text) == text);
    Ok(all)
}

/// Refuses a name or an address that another account has.
fn check_free(
    connection: Connection<'_>,
    own: AccountId,
    username: Option<&str>,
    email: Option<&str>,
) -> Result<()> {
    let taken = |column: &str, value: &str| -> Result<bool> {
        Ok(same_but_for_case(connection, column, value)?.iter().any(|found| found.id != own))
    };
    if let Some(email) = email
        && taken("email", email)?
    {
        return Err(Error::EmailTaken);
    }
    match username {
        Some(username) if taken("username", username)? => Err(Error::UsernameTaken),
        _ => Ok(()),
    }
}

fn others_exist(connection: Connection<'_>) -> Result<bool> {
    let mut query = connection.prepare_cached("SELECT 1 FROM accounts WHERE uuid <> ?1 LIMIT 1")?;
    query.exists(params![LOCAL_ACCOUNT.as_bytes()])
}

pub(super) fn add(turn: &Turn<'_>, actor: &Actor, new: &NewAccount) -> Result<Account> {
    check_free(turn.connection, new.id, Some(&new.username), Some(&new.email))?;
    let is_first = !others_exist(turn.connection)?;
    let is_superuser = match new.rank {
        Rank::Superuser => true,
        Rank::FirstIsSuperuser => is_first,
        Rank::Ordinary if is_first => return Err(Error::NoAdministrator),
        Rank::Ordinary | Rank::Plain => false,
    };
    turn.connection.execute(
        "INSERT INTO accounts (uuid, username, email, password, is_superuser, is_active, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, TRUE, ?6)",
        params![
            new.id.as_bytes(),
            new.username,
            new.email,
            new.password,
            is_superuser,
            new.created_at.micros()
        ],
    )?;
    note(turn, actor, Operation::CreateAccount, new.id, &new.username, new.created_at)?;
    let own = Actor { account: new.id, token: None };
    put::make_collection(turn, &own, "default", new.created_at)?;
    by_id(turn.connection, new.id)?.ok_or(Error::Unreadable("an account"))
}

fn note(
    turn: &Turn<'_>,
    actor: &Actor,
    operation: Operation,
    id: AccountId,
    what: &str,
    now: Moment,
) -> Result<()> {
    let mut record = Turn::blank(actor, now, operation);
    record.path = format!("{id} {what}");
    turn.record(record)
}

/// Refuses what would leave the library without a superuser that works.
fn check_last(connection: Connection<'_>, account: &Account) -> Result<()> {
    if !account.is_superuser || !account.is_active {
        return Ok(());
    }
    let mut query = connection.prepare_cached(
        "SELECT 1 FROM accounts WHERE is_superuser AND is_active AND deleted_at IS NULL AND uuid <> ?1 AND uuid <> ?2
         LIMIT 1",
    )?;
    let others = query.exists(params![account.id.as_bytes(), LOCAL_ACCOUNT.as_bytes()])?;
    if others { Ok(()) } else { Err(Error::LastSuperuser) }
}

pub(super) fn change(
    turn: &Turn<'_>,
    actor: &Actor,
    id: AccountId,
    change: &AccountChange,
    now: Moment,
) -> Result<Option<Account>> {
    let AccountChange { email, username, password, is_active, is_superuser } = change;
    let connection = turn.connection;
    let Some(present) = by_id(connection, id)?.filter(|found| found.id != LOCAL_ACCOUNT) else {
        return Ok(None);
    };
    check_free(connection, id, username.as_deref(), email.as_deref())?;
    if *is_active == Some(false) || *is_superuser == Some(false) {
        check_last(connection, &present)?;
    }
    connection.execute(
        "UPDATE accounts SET email = COALESCE(?2, email), username = COALESCE(?3, username),
             password = COALESCE(?4, password), is_active = COALESCE(?5, is_active),
             is_superuser = COALESCE(?6, is_superuser)
         WHERE uuid = ?1",
        params![id.as_bytes(), email, username, password, is_active, is_superuser],
    )?;
    if password.is_some() || *is_active == Some(false) {
        connection.execute(
            "DELETE FROM sessions WHERE account = (SELECT id FROM accounts WHERE uuid = ?1)",
            params![id.as_bytes()],
        )?;
    }
    // Which fields, never their values: the journal keeps no password and no former address.
    let fields = [
        ("email", email.is_some()),
        ("username", username.is_some()),
        ("password", password.is_some()),
        ("is_active", is_active.is_some()),
        ("is_superuser", is_superuser.is_some()),
    ];
    let named: Vec<&str> = fields.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
    note(turn, actor, Operation::UpdateAccount, id, &named.join(","), now)?;
    by_id(connection, id)
}

pub(super) fn delete(turn: &Turn<'_>, actor: &Actor, id: AccountId, now: Moment) -> Result<bool> {
    let connection = turn.connection;
    let Some(present) = by_id(connection, id)?.filter(|found| found.id != LOCAL_ACCOUNT) else {
        return Ok(false);
    };
    check_last(connection, &present)?;
    for summary in read::collections(connection, &Scope::Account(id))? {
        shelves::remove(turn, actor, &summary.collection, now)?;
    }
    for sql in [
        "DELETE FROM tokens WHERE account = (SELECT id FROM accounts WHERE uuid = ?1)",
        "DELETE FROM sessions WHERE account = (SELECT id FROM accounts WHERE uuid = ?1)",
        "DELETE FROM account_blocks WHERE account = (SELECT id FROM accounts WHERE uuid = ?1)",
    ] {
        connection.execute(sql, params![id.as_bytes()])?;
    }
    // A stone without a name: what was deleted still points at it.
    connection.execute(
        "UPDATE accounts SET username = ?2, email = NULL, password = NULL, is_active = FALSE, is_superuser = FALSE,
             deleted_at = ?3
         WHERE uuid = ?1",
        params![id.as_bytes(), format!("\u{1}{id}"), now.micros()],
    )?;
    note(turn, actor, Operation::DeleteAccount, id, &present.username, now)?;
    Ok(true)
}

pub(super) fn add_session(turn: &Turn<'_>, session: &Session) -> Result<()> {
    // Sessions that have run out are of no use to anybody.
    turn.connection
        .execute("DELETE FROM sessions WHERE expires_at <= ?1", params![session.created_at.micros()])?;
    turn.connection.execute(
        "INSERT INTO sessions (uuid, account, refresh, created_at, expires_at)
         VALUES (?1, (SELECT id FROM accounts WHERE uuid = ?2), ?3, ?4, ?5)",
        params![
            session.id.as_bytes(),
            session.account.as_bytes(),
            session.refresh.as_bytes(),
            session.created_at.micros(),
            session.expires_at.micros()
        ],
    )?;
    Ok(())
}

/// The account of a session that goes on, and the hash of the token that refreshes it.
fn live_session(connection: Connection<'_>, id: SessionId, now: Moment) -> Result<Option<(Account, Digest)>> {
    let sql = format!(
        "SELECT {ACCOUNT}, s.refresh FROM sessions s JOIN accounts a ON a.id = s.account
         WHERE s.uuid = ?1 AND s.expires_at > ?2 AND a.is_active AND a.deleted_at IS NULL"
    );
    let mut query = connection.prepare_cached(&sql)?;
    let found = query.query(params![id.as_bytes(), now.micros()])?;
    Ok(collect(found, |row| Ok((account(row)?, digest(row, 6)?)))?.into_iter().next())
}

pub(super) fn session(connection: Connection<'_>, id: SessionId, now: Moment) -> Result<Option<Account>> {
    Ok(live_session(connection, id, now)?.map(|(account, _)| account))
}

pub(super) fn rotate_session(
    turn: &Turn<'_>,
    id: SessionId,
    presented: &Digest,
    next: &Digest,
    expires_at: Moment,
    now: Moment,
) -> Result<Rotation> {
    let Some((account, current)) = live_session(turn.connection, id, now)? else { return Ok(Rotation::Gone) };
    if current != *presented {
        end_session(turn, id)?;
        let actor = Actor { account: account.id, token: None };
        note(turn, &actor, Operation::RevokeSession, account.id, "a refresh token was used twice", now)?;
        return Ok(Rotation::Reused);
    }
    turn.connection.execute(
        "UPDATE sessions SET refresh = ?2, expires_at = ?3 WHERE uuid = ?1",
        params![id.as_bytes(), next.as_bytes(), expires_at.micros()],
    )?;
    Ok(Rotation::Done(account))
}

pub(super) fn end_session(turn: &Turn<'_>, id: SessionId) -> Result<bool> {
    Ok(turn.connection.execute("DELETE FROM sessions WHERE uuid = ?1", params![id.as_bytes()])? > 0)
}
