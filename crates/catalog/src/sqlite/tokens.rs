//! Accounts, tokens and the library's own secrets.

use rusqlite::{Connection, OptionalExtension, Row};
use shelf_base::{Digest, Moment, ids::AccountId, ids::TokenId};

use super::{
    rows::{account_id, collect, collection_id, digest, moment, optional_moment},
    writer::Turn,
};
use crate::{Account, Actor, Error, NewToken, Operation, Result, Token, TokenKind};

pub(super) fn account(connection: &Connection, id: AccountId) -> Result<Option<Account>> {
    let mut query = connection.prepare_cached(
        "SELECT uuid, username, is_superuser, is_active, created_at FROM accounts WHERE uuid = ?1",
    )?;
    let found = collect(query.query([id.as_bytes()])?, |row| {
        Ok(Account {
            id: account_id(row, 0)?,
            username: row.get(1)?,
            is_superuser: row.get(2)?,
            is_active: row.get(3)?,
            created_at: moment(row, 4)?,
        })
    })?;
    Ok(found.into_iter().next())
}

pub(super) fn add(turn: &Turn<'_>, actor: &Actor, token: &NewToken) -> Result<()> {
    let collection = match token.kind {
        TokenKind::Personal => None,
        TokenKind::Collection(id) => Some(id),
    };
    turn.connection.execute(
        "INSERT INTO tokens (uuid, account, collection, label, hash, scopes, created_at, expires_at)
         VALUES (?1, (SELECT id FROM accounts WHERE uuid = ?2), (SELECT id FROM collections WHERE uuid = ?3), ?4, ?5, ?6,
                 ?7, ?8)",
        rusqlite::params![
            token.id.as_bytes(),
            token.account.as_bytes(),
            collection.as_ref().map(|id| id.as_bytes()),
            token.label,
            token.hash.as_bytes(),
            token.scopes,
            token.created_at.micros(),
            token.expires_at.map(Moment::micros),
        ],
    )?;
    let mut record = Turn::blank(actor, token.created_at, Operation::CreateToken);
    record.path = format!("{} {}", token.id, token.label);
    record.collection = collection;
    turn.record(record)?;
    Ok(())
}

const TOKEN: &str =
    "SELECT t.uuid, a.uuid, c.uuid, t.label, t.hash, t.scopes, t.created_at, t.expires_at, t.revoked_at,
        a.is_active, a.is_superuser
     FROM tokens t JOIN accounts a ON a.id = t.account LEFT JOIN collections c ON c.id = t.collection";

fn token(row: &Row<'_>) -> Result<Token> {
    let kind = match row.get::<_, Option<Vec<u8>>>(2)? {
        None => TokenKind::Personal,
        Some(_) => TokenKind::Collection(collection_id(row, 2)?),
    };
    let id = TokenId::from_slice(&row.get::<_, Vec<u8>>(0)?).ok_or(Error::Unreadable("a token id"))?;
    Ok(Token {
        token: NewToken {
            id,
            account: account_id(row, 1)?,
            kind,
            label: row.get(3)?,
            hash: digest(row, 4)?,
            scopes: row.get(5)?,
            created_at: moment(row, 6)?,
            expires_at: optional_moment(row, 7)?,
        },
        revoked_at: optional_moment(row, 8)?,
        account_active: row.get(9)?,
        account_superuser: row.get(10)?,
    })
}

pub(super) fn by_hash(connection: &Connection, hash: &Digest) -> Result<Option<Token>> {
    let mut query = connection.prepare_cached(&format!("{TOKEN} WHERE t.hash = ?1"))?;
    Ok(collect(query.query([hash.as_bytes()])?, token)?.into_iter().next())
}

pub(super) fn of_account(connection: &Connection, account: AccountId) -> Result<Vec<Token>> {
    let mut query = connection.prepare_cached(&format!("{TOKEN} WHERE a.uuid = ?1 ORDER BY t.id DESC"))?;
    collect(query.query([account.as_bytes()])?, token)
}

pub(super) fn revoke(turn: &Turn<'_>, actor: &Actor, id: TokenId, now: Moment) -> Result<bool> {
    let changed = turn.connection.execute(
        "UPDATE tokens SET revoked_at = ?1
         WHERE uuid = ?2 AND revoked_at IS NULL AND account = (SELECT id FROM accounts WHERE uuid = ?3)",
        rusqlite::params![now.micros(), id.as_bytes(), actor.account.as_bytes()],
    )?;
    if changed == 0 {
        return Ok(false);
    }
    let mut record = Turn::blank(actor, now, Operation::RevokeToken);
    record.path = id.to_string();
    turn.record(record)?;
    Ok(true)
}

pub(super) fn secret(connection: &Connection, name: &str) -> Result<Option<[u8; 32]>> {
    let value: Option<Vec<u8>> = connection
        .query_row("SELECT value FROM secrets WHERE name = ?1", [name], |row| row.get(0))
        .optional()?;
    value.map(|value| value.try_into().map_err(|_| Error::Unreadable("a secret"))).transpose()
}

pub(super) fn make_secret(turn: &Turn<'_>, name: &str, fresh: [u8; 32]) -> Result<[u8; 32]> {
    turn.connection.execute("INSERT OR IGNORE INTO secrets (name, value) VALUES (?1, ?2)", (name, fresh))?;
    secret(turn.connection, name)?.ok_or(Error::Unreadable("a secret"))
}
