//! Deleting documents.

use shelf_base::{Moment, ids::DocumentId};

use super::{
    books, params,
    rows::{self, Conditions, collect, digest},
    turn::Turn,
};
use crate::{Actor, Operation, Result, Scope};

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
