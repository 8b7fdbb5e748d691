//! Collections as such: made, renamed, deleted with everything in them.

use shelf_base::{Moment, ids::CollectionId};

use super::{
    Connection, books, params, put, read,
    rows::{collect, digest, document_id},
    turn::Turn,
};
use crate::{Actor, Collection, CollectionKind, Error, Operation, Result, Scope};

pub(super) fn active_tokens(connection: Connection<'_>, id: CollectionId, now: Moment) -> Result<u64> {
    let mut query = connection.prepare_cached(
        "SELECT COUNT(*) FROM tokens t JOIN collections c ON c.id = t.collection
         WHERE c.uuid = ?1 AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > ?2)",
    )?;
    query.query_row(params![id.as_bytes(), now.micros()], |row| row.get(0))
}

pub(super) fn create(turn: &Turn<'_>, actor: &Actor, name: &str, now: Moment) -> Result<Collection> {
    if read::collection(turn.connection, &Scope::Account(actor.account), name)?.is_some() {
        return Err(Error::CollectionTaken(name.to_owned()));
    }
    put::make_collection(turn, actor, name, now)
}

pub(super) fn rename(
    turn: &Turn<'_>,
    actor: &Actor,
    scope: &Scope,
    id: CollectionId,
    name: &str,
    now: Moment,
) -> Result<Option<Collection>> {
    let Some(found) = read::collection_by_id(turn.connection, scope, id)? else { return Ok(None) };
    let mut collection = found.collection;
    if collection.name == name {
        return Ok(Some(collection));
    }
    if read::collection(turn.connection, &Scope::Account(collection.owner), name)?.is_some() {
        let is_own = collection.owner == actor.account;
        let taken = if is_own { Error::CollectionTaken } else { Error::OwnersCollectionTaken };
        return Err(taken(name.to_owned()));
    }
    if collection.kind == CollectionKind::Book {
        books::must_be_free(turn, name)?;
    }
    turn.connection
        .execute("UPDATE collections SET name = ?2 WHERE uuid = ?1", params![id.as_bytes(), name])?;
    let mut record = Turn::blank(actor, now, Operation::RenameCollection);
    record.collection = Some(id);
    record.path = name.to_owned();
    turn.record(record)?;
    name.clone_into(&mut collection.name);
    Ok(Some(collection))
}

pub(super) fn delete(
    turn: &Turn<'_>,
    actor: &Actor,
    scope: &Scope,
    id: CollectionId,
    now: Moment,
) -> Result<bool> {
    let Some(found) = read::collection_by_id(turn.connection, scope, id)? else { return Ok(false) };
    if active_tokens(turn.connection, id, now)? > 0 {
        return Err(Error::ActiveTokens);
    }
    books::must_be_open(turn, "SELECT CAST(?1 AS BIGINT)", put::place(turn, id)?.row)?;
    remove(turn, actor, &found.collection, now)?;
    Ok(true)
}

/// Takes a collection and all that is in it away. Its row stays as a stone that deleted documents point at, under a
/// name that nobody can give, so that its own name is free again.
pub(super) fn remove(turn: &Turn<'_>, actor: &Actor, collection: &Collection, now: Moment) -> Result<()> {
    let place = put::place(turn, collection.id)?;
    let mut query = turn.connection.prepare_cached(
        "SELECT d.uuid, d.path, b.hash FROM documents d JOIN blobs b ON b.id = d.blob
         WHERE d.collection = ?1 AND d.deleted_at IS NULL ORDER BY d.id",
    )?;
    let documents = collect(query.query(params![place.row])?, |row| {
        Ok((document_id(row, 0)?, row.get::<String>(1)?, digest(row, 2)?))
    })?;
    turn.connection.execute(
        "UPDATE documents SET deleted_at = ?2 WHERE collection = ?1 AND deleted_at IS NULL",
        params![place.row, now.micros()],
    )?;
    for (id, path, hash) in documents {
        let mut record = Turn::blank(actor, now, Operation::Delete);
        record.collection = Some(collection.id);
        record.document = Some(id);
        record.path = path;
        record.previous = Some(hash);
        turn.record(record)?;
    }
    turn.connection.execute("DELETE FROM snapshots WHERE collection = ?1", params![place.row])?;
    turn.connection.execute("DELETE FROM tokens WHERE collection = ?1", params![place.row])?;
    turn.connection.execute(
        "UPDATE collections SET deleted_at = ?2, name = ?3 WHERE id = ?1",
        params![place.row, now.micros(), format!("\u{1}{}", collection.id)],
    )?;
    let mut record = Turn::blank(actor, now, Operation::DeleteCollection);
    record.collection = Some(collection.id);
    record.path.clone_from(&collection.name);
    turn.record(record)?;
    Ok(())
}

pub(super) fn set_model(
    turn: &Turn<'_>,
    actor: &Actor,
    id: CollectionId,
    model: Option<&str>,
    now: Moment,
) -> Result<()> {
    let changed = turn
        .connection
        .execute("UPDATE collections SET model = ?2 WHERE uuid = ?1", params![id.as_bytes(), model])?;
    if changed == 0 {
        return Err(Error::NoCollection);
    }
    let mut record = Turn::blank(actor, now, Operation::SetModel);
    record.collection = Some(id);
    record.path = model.unwrap_or_default().to_owned();
    turn.record(record)
}
