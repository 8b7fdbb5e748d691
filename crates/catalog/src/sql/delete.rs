//! Deleting documents, and bringing them back.

use shelf_base::{Moment, ids::DocumentId};

use super::{
    books, documents, fences, params,
    put::{self, check_bounds, claim_resource_id, insert_tags, to_json},
    rows::{self, Conditions, collect, digest},
    state,
    turn::Turn,
};
use crate::{Actor, Document, Error, Operation, Result, Revival, Scope};

/// Deletes the documents that are there and in scope; those that were.
pub(super) fn delete(
    turn: &Turn<'_>,
    actor: &Actor,
    scope: &Scope,
    ids: &[DocumentId],
    now: Moment,
) -> Result<Vec<DocumentId>> {
    let mut deleted = Vec::new();
    for id in ids {
        let mut conditions = Conditions::live(turn.connection, scope, None)?;
        conditions.add("d.uuid = ?", id.as_bytes().to_vec());
        let find =
            format!("SELECT d.id, d.path, b.hash, c.uuid FROM {} WHERE {}", rows::FROM, conditions.sql());
        let mut query = turn.connection.prepare_cached(&find)?;
        let found = collect(query.query(&conditions.parameters())?, |row| {
            Ok((row.get::<i64>(0)?, row.get::<String>(1)?, digest(row, 2)?, rows::collection_id(row, 3)?))
        })?;
        let Some((row, path, hash, collection)) = found.into_iter().next() else { continue };
        books::must_be_open(turn, "SELECT collection FROM documents WHERE id = ?1", row)?;
        let mut mark =
            turn.connection.prepare_cached("UPDATE documents SET deleted_at = ?2 WHERE id = ?1")?;
        mark.execute(params![row, now.micros()])?;
        let mut record = Turn::blank(actor, now, Operation::Delete);
        record.collection = Some(collection);
        record.document = Some(*id);
        record.path = path;
        record.previous = Some(hash);
        turn.record(record)?;
        deleted.push(*id);
    }
    Ok(deleted)
}

/// Brings back a document whose last version is still there; what was deleted keeps its row until garbage collection.
pub(super) fn revive(
    turn: &Turn<'_>,
    actor: &Actor,
    scope: &Scope,
    id: DocumentId,
    revival: &Revival,
    now: Moment,
) -> Result<Option<Document>> {
    fences::check(turn, revival.fence.as_ref())?;
    let mut conditions = Conditions::of_collections(turn.connection, "d.collection", scope, None)?;
    conditions.add("d.uuid = ?", id.as_bytes().to_vec());
    let find = format!(
        "SELECT d.id, d.path, b.hash, c.uuid, d.resource_id FROM {} WHERE {} AND d.deleted_at IS NOT NULL
         AND EXISTS (SELECT 1 FROM versions v WHERE v.document = d.id AND v.number = d.version AND v.blob = d.blob)",
        rows::FROM,
        conditions.sql()
    );
    let mut query = turn.connection.prepare_cached(&find)?;
    let found = collect(query.query(&conditions.parameters())?, |row| {
        let resource_id: Option<String> = row.get(4)?;
        Ok((
            row.get::<i64>(0)?,
            row.get::<String>(1)?,
            digest(row, 2)?,
            rows::collection_id(row, 3)?,
            resource_id,
        ))
    })?;
    let Some((row, path, hash, collection, resource_id)) = found.into_iter().next() else { return Ok(None) };
    books::must_be_open(turn, "SELECT collection FROM documents WHERE id = ?1", row)?;
    let place = put::place(turn, collection)?;
    let mut other = turn.connection.prepare_cached(
        "SELECT 1 FROM documents WHERE collection = ?1 AND path = ?2 AND deleted_at IS NULL",
    )?;
    if other.exists(params![place.row, path])? {
        return Err(Error::ContentChanged { current: None });
    }
    books::must_have_room(turn, &place, &[&path])?;
    // An id that another document has by now stays with that one.
    let resource_id = match &resource_id {
        Some(own) => match claim_resource_id(turn, &place, own, Some(row)) {
            Err(Error::ResourceIdTaken(_)) => None,
            outcome => outcome.map(|()| resource_id)?,
        },
        None => None,
    };
    turn.connection
        .prepare_cached("UPDATE documents SET deleted_at = NULL, resource_id = ?2 WHERE id = ?1")?
        .execute(params![row, resource_id])?;
    describe_anew(turn, row, revival)?;
    let mut record = Turn::blank(actor, now, Operation::Add);
    record.collection = Some(collection);
    record.document = Some(id);
    record.path = path;
    record.new = Some(hash);
    record.state = state::of_document(turn.connection, row)?;
    turn.record(record)?;
    documents::by_id(turn.connection, scope, id)
}

/// Gives a document the tags and metadata with which it is to come back.
fn describe_anew(turn: &Turn<'_>, row: i64, revival: &Revival) -> Result<()> {
    if let Some(tags) = &revival.tags {
        check_bounds(tags, &crate::Metadata::new())?;
        turn.connection.prepare_cached("DELETE FROM tags WHERE document = ?1")?.execute(params![row])?;
        insert_tags(turn, row, tags)?;
        turn.connection
            .prepare_cached("UPDATE documents SET tags = ?2 WHERE id = ?1")?
            .execute(params![row, to_json(tags)?])?;
    }
    if let Some(metadata) = &revival.metadata {
        turn.connection
            .prepare_cached("UPDATE documents SET metadata = ?2 WHERE id = ?1")?
            .execute(params![row, to_json(metadata)?])?;
    }
    Ok(())
}
