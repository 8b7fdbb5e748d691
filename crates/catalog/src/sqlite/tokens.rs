//! Tokens and the library's own secrets.

use rusqlite::{Connection, OptionalExtension, Row, params, types::ToSql};
use shelf_base::{Digest, Moment, ids::TokenId};

use super::{
    rows::{account_id, collect, collection_id, digest, moment, optional_moment},
    writer::Turn,
};
use crate::{Actor, Error, Holder, NewToken, Operation, Result, Scope, Token, TokenKind};

pub(super) fn add(turn: &Turn<'_>, actor: &Actor, token: &NewToken) -> Result<()> {
    let collection = match token.kind {
        TokenKind::Personal => None,
        TokenKind::Collection(id) => Some(id),
    };
    let lifetime = token.expires_at.map(|expiry| expiry.micros() - token.created_at.micros());
    let written = turn.connection.execute(
        "INSERT INTO tokens (uuid, account, collection, label, hash, scopes, created_at, expires_at, lifetime)
         SELECT ?1, a.id, (SELECT c.id FROM collections c WHERE c.uuid = ?3 AND c.deleted_at IS NULL), ?4, ?5, ?6, ?7,
                ?8, ?9
         FROM accounts a WHERE a.uuid = ?2 AND a.deleted_at IS NULL
              AND (?3 IS NULL OR EXISTS (SELECT 1 FROM collections c WHERE c.uuid = ?3 AND c.deleted_at IS NULL))",
        params![
            token.id.as_bytes(),
            token.account.as_bytes(),
            collection.as_ref().map(|id| id.as_bytes()),
            token.label,
            token.hash.as_bytes(),
            token.scopes,
            token.created_at.micros(),
            token.expires_at.map(Moment::micros),
            lifetime,
        ],
    )?;
    if written == 0 {
        return Err(Error::NoCollection);
    }
    let mut record = Turn::blank(actor, token.created_at, Operation::CreateToken);
    record.path = format!("{} {}", token.id, token.label);
    record.collection = collection;
    turn.record(record)?;
    Ok(())
}

const TOKEN: &str =
    "SELECT t.uuid, a.uuid, c.uuid, t.label, t.hash, t.scopes, t.created_at, t.expires_at, t.revoked_at,
        a.is_active, a.is_superuser, c.name, t.last_used_at
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
        collection_name: row.get(11)?,
        last_used_at: optional_moment(row, 12)?,
    })
}

pub(super) fn by_hash(connection: &Connection, hash: &Digest) -> Result<Option<Token>> {
    let mut query = connection.prepare_cached(&format!("{TOKEN} WHERE t.hash = ?1"))?;
    Ok(collect(query.query([hash.as_bytes()])?, token)?.into_iter().next())
}

/// The condition of a holder and its value.
fn held_by(holder: &Holder) -> (&'static str, Vec<u8>) {
    match holder {
        Holder::Personal(id) => ("t.collection IS NULL AND a.uuid = ?1", id.as_bytes().to_vec()),
        Holder::Collections(Scope::Account(id)) => (
            "c.account = (SELECT o.id FROM accounts o WHERE o.uuid = ?1) AND c.deleted_at IS NULL",
            id.as_bytes().to_vec(),
        ),
        Holder::Collections(Scope::Collection(id)) => {
            ("c.uuid = ?1 AND c.deleted_at IS NULL", id.as_bytes().to_vec())
        }
        Holder::Collections(Scope::Library) => {
            ("c.deleted_at IS NULL AND c.id IS NOT NULL AND ?1 = X''", Vec::new())
        }
    }
}

pub(super) fn of_holder(connection: &Connection, holder: &Holder) -> Result<Vec<Token>> {
    let (condition, value) = held_by(holder);
    let mut query = connection
        .prepare_cached(&format!("{TOKEN} WHERE {condition} ORDER BY t.created_at DESC, t.id DESC"))?;
    collect(query.query([value])?, token)
}

fn one(connection: &Connection, holder: &Holder, id: TokenId) -> Result<Option<Token>> {
    let (condition, value) = held_by(holder);
    let mut query = connection.prepare_cached(&format!("{TOKEN} WHERE {condition} AND t.uuid = ?2"))?;
    let parameters: [&dyn ToSql; 2] = [&value, id.as_bytes()];
    Ok(collect(query.query(&parameters[..])?, token)?.into_iter().next())
}

pub(super) fn revoke(
    turn: &Turn<'_>,
    actor: &Actor,
    holder: &Holder,
    id: TokenId,
    now: Moment,
) -> Result<bool> {
    let found = one(turn.connection, holder, id)?.filter(|found| found.revoked_at.is_none());
    let Some(found) = found else { return Ok(false) };
    turn.connection
        .execute("UPDATE tokens SET revoked_at = ?2 WHERE uuid = ?1", params![id.as_bytes(), now.micros()])?;
    note(turn, actor, Operation::RevokeToken, &found, now)?;
    Ok(true)
}

pub(super) fn rotate(
    turn: &Turn<'_>,
    actor: &Actor,
    holder: &Holder,
    id: TokenId,
    hash: &Digest,
    now: Moment,
) -> Result<Option<Token>> {
    let found = one(turn.connection, holder, id)?.filter(|found| found.revoked_at.is_none());
    let Some(found) = found else { return Ok(None) };
    turn.connection.execute(
        "UPDATE tokens SET hash = ?2, expires_at = ?3 + lifetime, last_used_at = NULL WHERE uuid = ?1",
        params![id.as_bytes(), hash.as_bytes(), now.micros()],
    )?;
    note(turn, actor, Operation::RotateToken, &found, now)?;
    one(turn.connection, holder, id)
}

fn note(turn: &Turn<'_>, actor: &Actor, operation: Operation, found: &Token, now: Moment) -> Result<()> {
    let mut record = Turn::blank(actor, now, operation);
    record.path = format!("{} {}", found.token.id, found.token.label);
    if let TokenKind::Collection(id) = found.token.kind {
        record.collection = Some(id);
    }
    turn.record(record).map(drop)
}

pub(super) fn used(turn: &Turn<'_>, id: TokenId, now: Moment) -> Result<()> {
    turn.connection.execute(
        "UPDATE tokens SET last_used_at = MAX(COALESCE(last_used_at, 0), ?2) WHERE uuid = ?1",
        params![id.as_bytes(), now.micros()],
    )?;
    Ok(())
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

pub(super) fn set_secret(turn: &Turn<'_>, name: &str, value: [u8; 32]) -> Result<()> {
    turn.connection.execute("INSERT OR REPLACE INTO secrets (name, value) VALUES (?1, ?2)", (name, value))?;
    Ok(())
}
