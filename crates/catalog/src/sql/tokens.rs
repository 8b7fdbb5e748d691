//! Tokens and the library's own secrets.

use shelf_base::{Digest, Moment, ids::TokenId};

use super::{
    Connection, Row, params,
    rows::{Conditions, account_id, collect, collection_id, digest, moment, optional_moment},
    turn::Turn,
};
use crate::{Actor, Error, Holder, NewToken, Operation, Result, Token, TokenKind};

pub(super) fn add(turn: &Turn<'_>, actor: &Actor, token: &NewToken) -> Result<()> {
    let collection = match token.kind {
        TokenKind::Personal => None,
        TokenKind::Collection(id) => Some(id),
    };
    let lifetime = token.expires_at.map(|expiry| expiry.micros() - token.created_at.micros());
    let find = |sql: &str, id: &[u8]| -> Result<i64> {
        turn.connection.prepare_cached(sql)?.first(params![id], |row| row.get(0))?.ok_or(Error::NoCollection)
    };
    let account =
        find("SELECT id FROM accounts WHERE uuid = ?1 AND deleted_at IS NULL", token.account.as_bytes())?;
    let row = collection
        .as_ref()
        .map(|id| find("SELECT id FROM collections WHERE uuid = ?1 AND deleted_at IS NULL", id.as_bytes()));
    turn.connection.execute(
        "INSERT INTO tokens (uuid, account, collection, label, hash, scopes, created_at, expires_at, lifetime)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            token.id.as_bytes(),
            account,
            row.transpose()?,
            token.label,
            token.hash.as_bytes(),
            token.scopes,
            token.created_at.micros(),
            token.expires_at.map(Moment::micros),
            lifetime,
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
        a.is_active, a.is_superuser, c.name, t.last_used_at
     FROM tokens t JOIN accounts a ON a.id = t.account LEFT JOIN collections c ON c.id = t.collection";

fn token(row: &Row<'_>) -> Result<Token> {
    let kind = match row.get::<Option<Vec<u8>>>(2)? {
        None => TokenKind::Personal,
        Some(_) => TokenKind::Collection(collection_id(row, 2)?),
    };
    let id = TokenId::from_slice(&row.get::<Vec<u8>>(0)?).ok_or(Error::Unreadable("a token id"))?;
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

pub(super) fn by_hash(connection: Connection<'_>, hash: &Digest) -> Result<Option<Token>> {
    let mut query = connection.prepare_cached(&format!("{TOKEN} WHERE t.hash = ?1"))?;
    Ok(collect(query.query(params![hash.as_bytes()])?, token)?.into_iter().next())
}

/// The tokens of a holder.
fn held_by(holder: &Holder) -> Conditions {
    match holder {
        Holder::Personal(id) => {
            let mut conditions = Conditions::default();
            conditions.add("t.collection IS NULL AND a.uuid = ?", id.as_bytes().to_vec());
            conditions
        }
        Holder::Collections(scope) => {
            let mut conditions = Conditions::in_scope(scope);
            conditions.add_many("c.id IS NOT NULL".into(), Vec::<String>::new());
            conditions
        }
    }
}

pub(super) fn of_holder(connection: Connection<'_>, holder: &Holder) -> Result<Vec<Token>> {
    let conditions = held_by(holder);
    let sql = format!("{TOKEN} WHERE {} ORDER BY t.created_at DESC, t.id DESC", conditions.sql());
    let mut query = connection.prepare_cached(&sql)?;
    collect(query.query(&conditions.parameters())?, token)
}

fn one(connection: Connection<'_>, holder: &Holder, id: TokenId) -> Result<Option<Token>> {
    let mut conditions = held_by(holder);
    conditions.add("t.uuid = ?", id.as_bytes().to_vec());
    let mut query = connection.prepare_cached(&format!("{TOKEN} WHERE {}", conditions.sql()))?;
    query.first(&conditions.parameters(), token)
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
    turn.record(record)
}

pub(super) fn used(turn: &Turn<'_>, id: TokenId, now: Moment) -> Result<()> {
    turn.connection.execute(
        "UPDATE tokens SET last_used_at = ?2 WHERE uuid = ?1 AND COALESCE(last_used_at, 0) < ?2",
        params![id.as_bytes(), now.micros()],
    )?;
    Ok(())
}

pub(super) fn secret(connection: Connection<'_>, name: &str) -> Result<Option<[u8; 32]>> {
    let mut find = connection.prepare_cached("SELECT value FROM secrets WHERE name = ?1")?;
    let value: Option<Vec<u8>> = find.first(params![name], |row| row.get(0))?;
    value.map(|value| value.try_into().map_err(|_| Error::Unreadable("a secret"))).transpose()
}

pub(super) fn make_secret(turn: &Turn<'_>, name: &str, fresh: [u8; 32]) -> Result<[u8; 32]> {
    turn.connection.execute(
        "INSERT INTO secrets (name, value) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        params![name, fresh],
    )?;
    secret(turn.connection, name)?.ok_or(Error::Unreadable("a secret"))
}

pub(super) fn set_secret(turn: &Turn<'_>, name: &str, value: [u8; 32]) -> Result<()> {
    turn.connection.execute(
        "INSERT INTO secrets (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        params![name, value],
    )?;
    Ok(())
}
