//! Resource ids and the maps of documents.

use shelf_base::{Digest, Moment, ids::DocumentId};

use super::{
    Backend, Connection, Touches, documents, params, put,
    rows::{Conditions, FROM, collect, digest, moment},
    state,
    turn::Turn,
};
use crate::{Actor, Document, Error, GivenMap, Maps, NewMap, Operation, Result, Scope};

impl<B: Backend> Maps for B {
    fn resource_ids(&self, scope: &Scope, most: usize) -> Result<Vec<String>> {
        self.read(|connection| {
            let mut conditions = Conditions::live(connection, scope, None)?;
            conditions.add_many("d.resource_id IS NOT NULL".into(), Vec::<String>::new());
            let sql = format!(
                "SELECT d.resource_id FROM {FROM} WHERE {} ORDER BY d.resource_id LIMIT {most}",
                conditions.sql()
            );
            let mut query = connection.prepare_cached(&sql)?;
            collect(query.query(&conditions.parameters())?, |row| row.get(0))
        })
    }

    fn resource(&self, scope: &Scope, resource_id: &str) -> Result<Option<Document>> {
        self.read(|connection| documents::by_resource(connection, scope, resource_id))
    }

    fn name_resource(
        &self,
        actor: &Actor,
        scope: &Scope,
        id: DocumentId,
        resource_id: &str,
        now: Moment,
    ) -> Result<bool> {
        let (actor, scope, resource_id) = (actor.clone(), scope.clone(), resource_id.to_owned());
        self.write(Touches::Documents(vec![id]), move |turn| {
            name_resource(turn, &actor, &scope, id, &resource_id, now)
        })
    }

    fn map_number(&self, scope: &Scope, id: DocumentId) -> Result<Option<u32>> {
        self.read(|connection| {
            let found = newest(connection, scope, id, "m.number")?;
            Ok(found.map(|row| row.0))
        })
    }

    fn newest_map(&self, scope: &Scope, id: DocumentId) -> Result<Option<GivenMap>> {
        self.read(|connection| {
            let Some((number, document)) = newest(connection, scope, id, "m.number")? else {
                return Ok(None);
            };
            let mut query = connection.prepare_cached(
                "SELECT source, origin, map, created_at FROM maps WHERE document = ?1 AND number = ?2",
            )?;
            let found = collect(query.query(params![document, number])?, |row| {
                Ok(GivenMap {
                    number,
                    source: digest(row, 0)?,
                    origin: row.get(1)?,
                    map: row.get(2)?,
                    created_at: moment(row, 3)?,
                })
            })?;
            Ok(found.into_iter().next())
        })
    }

    fn set_map(
        &self,
        actor: &Actor,
        scope: &Scope,
        id: DocumentId,
        map: NewMap,
        now: Moment,
    ) -> Result<Option<u32>> {
        let (actor, scope) = (actor.clone(), scope.clone());
        self.write(Touches::Documents(vec![id]), move |turn| set_map(turn, &actor, &scope, id, &map, now))
    }
}

/// The newest number of a document's maps, and the document's row.
fn newest(
    connection: Connection<'_>,
    scope: &Scope,
    id: DocumentId,
    column: &str,
) -> Result<Option<(u32, i64)>> {
    let mut conditions = Conditions::live(connection, scope, None)?;
    conditions.add("d.uuid = ?", id.as_bytes().to_vec());
    let sql = format!(
        "SELECT {column}, d.id FROM {FROM} JOIN maps m ON m.document = d.id WHERE {} ORDER BY m.number DESC LIMIT 1",
        conditions.sql()
    );
    let mut query = connection.prepare_cached(&sql)?;
    let found = collect(query.query(&conditions.parameters())?, |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(found.into_iter().next())
}

fn row_of(connection: Connection<'_>, id: DocumentId) -> Result<Option<i64>> {
    let mut find = connection.prepare_cached("SELECT id FROM documents WHERE uuid = ?1")?;
    find.first(params![id.as_bytes()], |row| row.get(0))
}

fn name_resource(
    turn: &Turn<'_>,
    actor: &Actor,
    scope: &Scope,
    id: DocumentId,
    resource_id: &str,
    now: Moment,
) -> Result<bool> {
    let Some(document) = documents::by_id(turn.connection, scope, id)? else { return Ok(false) };
    let Some(row) = row_of(turn.connection, id)? else { return Ok(false) };
    if document.resource_id.as_deref() == Some(resource_id) {
        return Ok(true);
    }
    let place = put::place(turn, document.collection)?;
    put::claim_resource_id(turn, &place, resource_id, Some(row))?;
    turn.connection
        .execute("UPDATE documents SET resource_id = ?2 WHERE id = ?1", params![row, resource_id])?;
    let mut record = Turn::blank(actor, now, Operation::Update);
    record.collection = Some(document.collection);
    record.document = Some(id);
    record.path = document.path;
    record.previous = Some(document.version.hash);
    record.new = Some(document.version.hash);
    record.state = state::of_document(turn.connection, row)?;
    turn.record(record)?;
    Ok(true)
}

fn set_map(
    turn: &Turn<'_>,
    actor: &Actor,
    scope: &Scope,
    id: DocumentId,
    map: &NewMap,
    now: Moment,
) -> Result<Option<u32>> {
    let Some(document) = documents::by_id(turn.connection, scope, id)? else { return Ok(None) };
    let Some(row) = row_of(turn.connection, id)? else { return Ok(None) };
    let before: u32 = turn.connection.query_row(
        "SELECT COALESCE(MAX(number), 0) FROM maps WHERE document = ?1",
        params![row],
        |row| row.get(0),
    )?;
    let number = before.checked_add(1).ok_or(Error::Unreadable("the number of a map"))?;
    turn.connection.execute(
        "INSERT INTO maps (document, number, source, origin, map, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![row, number, map.source.as_bytes(), map.origin, map.map, now.micros()],
    )?;
    let mut record = Turn::blank(actor, now, Operation::SetMap);
    record.collection = Some(document.collection);
    record.document = Some(id);
    record.path = document.path;
    record.previous = Some(map.source);
    record.new = Some(Digest::of(&map.map));
    turn.record(record)?;
    Ok(Some(number))
}

/// Maps that are not what the journal says was given.
pub(super) fn audit(connection: Connection<'_>, found: &mut Vec<String>) -> Result<()> {
    let mut query = connection.prepare_cached(
        "SELECT j.path, j.new, j.sequence, m.map FROM
             (SELECT document, MAX(sequence) AS last FROM journal WHERE operation = 'set_map' GROUP BY document) l
         JOIN journal j ON j.sequence = l.last JOIN documents d ON d.uuid = j.document
         LEFT JOIN maps m ON m.document = d.id
             AND m.number = (SELECT MAX(number) FROM maps WHERE document = d.id)",
    )?;
    let mut rows = query.query(params![])?;
    while let Some(row) = rows.next()? {
        let map: Option<Vec<u8>> = row.get(3)?;
        if map.map(|map| Digest::of(&map)) != Some(digest(&row, 1)?) {
            let (path, sequence): (String, u64) = (row.get(0)?, row.get(2)?);
            found
                .push(format!("document {path}: its map is not as it was recorded (journal row {sequence})"));
        }
    }
    Ok(())
}
