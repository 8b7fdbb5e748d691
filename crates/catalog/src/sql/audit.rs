//! Comparing rows with the journal: what was changed, removed or added without a record; and taking it for the truth when
//! the owner says so.

use std::collections::{HashMap, HashSet};

use shelf_base::{
    Digest, Moment,
    ids::{CollectionId, DocumentId},
};

use super::{
    Cell, Connection, params,
    rows::{collect, collection_id, digest, optional_digest},
    state,
    turn::Turn,
};
use crate::{Actor, Operation, Record, Result};

/// The last record of each document.
const LAST_RECORDS: &str = "SELECT j.sequence, j.operation, j.path, j.new, j.state, j.document
     FROM (SELECT MAX(sequence) AS last FROM journal
           WHERE document IS NOT NULL AND operation IN ('add', 'replace', 'update', 'retitle', 'delete')
           GROUP BY document) m
     JOIN journal j ON j.sequence = m.last ORDER BY j.sequence";

/// Everything that does not agree with the journal, in words.
pub(super) fn audit(connection: Connection<'_>) -> Result<Vec<String>> {
    let mut found = Vec::new();
    documents(connection, &mut found)?;
    strangers(connection, &mut found)?;
    snapshots(connection, &mut found)?;
    tables(connection, &mut found)?;
    super::maps::audit(connection, &mut found)?;
    Ok(found)
}

struct Last {
    sequence: u64,
    operation: String,
    path: String,
    hash: Option<Digest>,
    state: Option<Digest>,
}

fn documents(connection: Connection<'_>, found: &mut Vec<String>) -> Result<()> {
    let mut query = connection.prepare_cached(LAST_RECORDS)?;
    let mut rows = query.query(params![])?;
    while let Some(row) = rows.next()? {
        let last = Last {
            sequence: row.get(0)?,
            operation: row.get(1)?,
            path: row.get(2)?,
            hash: optional_digest(&row, 3)?,
            state: optional_digest(&row, 4)?,
        };
        let uuid: Vec<u8> = row.get(5)?;
        if let Some(what) = document(connection, &last, &uuid)? {
            found.push(format!("document {}: {what} (journal row {})", last.path, last.sequence));
        }
    }
    Ok(())
}

fn document(connection: Connection<'_>, last: &Last, uuid: &[u8]) -> Result<Option<String>> {
    let mut find = connection.prepare_cached(
        "SELECT d.id, d.deleted_at IS NULL, d.path, b.hash FROM documents d LEFT JOIN blobs b ON b.id = d.blob
         WHERE d.uuid = ?1",
    )?;
    let present: Option<(i64, bool, String, Option<Vec<u8>>)> =
        find.first(params![uuid], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    let was_deleted = last.operation == Operation::Delete.word();
    Ok(match present {
        None if was_deleted => None,
        None => Some("it is missing from the catalog".into()),
        Some((_, true, ..)) if was_deleted => Some("it is there although it was deleted".into()),
        Some((_, false, ..)) if !was_deleted => Some("it is marked as deleted although it was not".into()),
        Some(_) if was_deleted => None,
        Some((_, _, path, _)) if path != last.path => Some(format!("its path has become {path}")),
        Some((_, _, _, hash)) if hash.as_deref() != last.hash.as_ref().map(|hash| &hash.as_bytes()[..]) => {
            Some("it points at other content".into())
        }
        Some((row, ..)) => {
            let is_same = last.state.is_none() || state::of_document(connection, row)? == last.state;
            (!is_same)
                .then(|| "its title, type, tags, metadata or times are not those that were recorded".into())
        }
    })
}

/// A condition: no record speaks of the document, in the form that the database answers in one pass.
const fn without_record(connection: Connection<'_>) -> &'static str {
    connection.pick(
        "uuid NOT IN (SELECT document FROM journal WHERE document IS NOT NULL)",
        "NOT EXISTS (SELECT 1 FROM journal j WHERE j.document = documents.uuid)",
    )
}

/// Documents that no record speaks of.
fn strangers(connection: Connection<'_>, found: &mut Vec<String>) -> Result<()> {
    let sql = format!("SELECT path FROM documents WHERE {}", without_record(connection));
    let mut query = connection.prepare_cached(&sql)?;
    let paths: Vec<String> = collect(query.query(params![])?, |row| row.get(0))?;
    found.extend(paths.into_iter().map(|path| format!("document {path}: the journal has no record of it")));
    Ok(())
}

struct Made {
    collection: Option<CollectionId>,
    listing: Option<Digest>,
    state: Option<Digest>,
}

fn snapshots(connection: Connection<'_>, found: &mut Vec<String>) -> Result<()> {
    let (expected, forgiven) = expected_snapshots(connection)?;
    let mut query = connection.prepare_cached(
        "SELECT s.at, s.listing, s.entries IS NOT NULL OR EXISTS (SELECT 1 FROM blobs b WHERE b.hash = s.listing)
         FROM snapshots s",
    )?;
    let mut rows = query.query(params![])?;
    let mut seen = HashSet::new();
    while let Some(row) = rows.next()? {
        let at: i64 = row.get(0)?;
        let name = Moment::from_micros(at).with_micros();
        let Some(made) = expected.get(&name) else {
            found.push(format!("snapshot {name}: the journal has no record of it"));
            continue;
        };
        let is_same = made.state.is_none() || state::of_snapshot(connection, at)? == made.state;
        if made.listing != Some(digest(&row, 1)?) || !is_same {
            found.push(format!("snapshot {name}: it is not as it was recorded"));
        } else if !row.get::<bool>(2)? {
            found.push(format!("snapshot {name}: what lists its files is missing"));
        }
        seen.insert(name);
    }
    let mut missing: Vec<&String> =
        expected.keys().filter(|name| !seen.contains(*name) && !forgiven.contains(*name)).collect();
    missing.sort();
    found.extend(missing.into_iter().map(|name| format!("snapshot {name}: it is missing from the catalog")));
    Ok(())
}

/// The snapshots that should be there, and those among them of which an old program may have dropped some without a
/// record for each.
fn expected_snapshots(connection: Connection<'_>) -> Result<(HashMap<String, Made>, HashSet<String>)> {
    let mut query = connection.prepare_cached(
        "SELECT operation, path, collection, new, state FROM journal
         WHERE operation IN ('snapshot', 'drop_snapshot', 'delete_collection', 'collect') ORDER BY sequence",
    )?;
    let (mut expected, mut forgiven) = (HashMap::<String, Made>::new(), HashSet::new());
    let mut named = 0_u64;
    let mut rows = query.query(params![])?;
    while let Some(row) = rows.next()? {
        let (operation, path): (String, String) = (row.get(0)?, row.get(1)?);
        let has_collection = row.cell(2)? != Cell::Null;
        let collection = if has_collection { Some(collection_id(&row, 2)?) } else { None };
        match Operation::from_word(&operation) {
            Some(Operation::Snapshot) => {
                let made =
                    Made { collection, listing: optional_digest(&row, 3)?, state: optional_digest(&row, 4)? };
                expected.insert(path, made);
            }
            Some(Operation::DropSnapshot) => {
                expected.remove(&path);
                named += 1;
            }
            Some(Operation::DeleteCollection) => expected.retain(|_, made| made.collection != collection),
            Some(Operation::Collect) => {
                if dropped(&path) > named {
                    forgiven.extend(expected.keys().cloned());
                }
                named = 0;
            }
            _ => {}
        }
    }
    Ok((expected, forgiven))
}

/// How many snapshots a garbage collection says it dropped: "3 blobs, 2 snapshots".
fn dropped(summary: &str) -> u64 {
    let words: Vec<&str> = summary.split(' ').collect();
    words.iter().rev().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Tables that repeat what others say.
fn tables(connection: Connection<'_>, found: &mut Vec<String>) -> Result<()> {
    // PostgreSQL takes no JSON that cannot be read; what it is not told is whether it is a list.
    let (are_read, tags_are_read) = connection.pick(
        ("json_valid(d.tags) AND json_valid(d.metadata)", "json_valid(d.tags)"),
        (
            "json_typeof(d.tags) = 'array' AND json_typeof(d.metadata) = 'object'",
            "json_typeof(d.tags) = 'array'",
        ),
    );
    let (tags, length) = connection.pick(
        ("json_each(d.tags) e", "json_array_length(d.tags)"),
        (
            "json_array_elements_text(CASE json_typeof(d.tags) WHEN 'array' THEN d.tags ELSE '[]' END) AS e (value)",
            "json_array_length(CASE json_typeof(d.tags) WHEN 'array' THEN d.tags ELSE '[]' END)",
        ),
    );
    for (condition, what) in [
        (
            "NOT EXISTS
                 (SELECT 1 FROM versions v WHERE v.document = d.id AND v.number = d.version AND v.blob = d.blob)"
                .to_owned(),
            "its newest version is missing or points at other content",
        ),
        (format!("NOT ({are_read})"), "its tags or metadata cannot be read"),
        (
            format!(
                "{tags_are_read} AND (SELECT COUNT(*) FROM tags t WHERE t.document = d.id)
                     <> (SELECT COUNT(*) FROM {tags} JOIN tags t ON t.tag = e.value AND t.document = d.id)"
            ),
            "it is filed under other tags than it has",
        ),
        (
            format!("{tags_are_read} AND {length} <> (SELECT COUNT(*) FROM tags t WHERE t.document = d.id)"),
            "it is not filed under all of its tags",
        ),
    ] {
        let sql = format!("SELECT d.path FROM documents d WHERE d.deleted_at IS NULL AND {condition}");
        let mut query = connection.prepare_cached(&sql)?;
        let paths: Vec<String> = collect(query.query(params![])?, |row| row.get(0))?;
        found.extend(paths.into_iter().map(|path| format!("document {path}: {what}")));
    }
    Ok(())
}

/// Takes the rows as they are for the truth: tables that repeat others are made anew, and the journal gets a record for
/// everything that differs from what it had recorded. Gives how many records that took.
pub(super) fn accept(turn: &Turn<'_>, actor: &Actor, now: Moment) -> Result<u64> {
    mend_tables(turn.connection)?;
    let before = turn.next_sequence()?;
    accept_documents(turn, actor, now)?;
    accept_strangers(turn, actor, now)?;
    accept_snapshots(turn, actor, now)?;
    Ok(turn.next_sequence()? - before)
}

fn mend_tables(connection: Connection<'_>) -> Result<()> {
    connection.execute_batch(connection.pick(
        "UPDATE documents SET tags = '[]' WHERE NOT json_valid(tags);
         UPDATE documents SET metadata = '{}' WHERE NOT json_valid(metadata);",
        "UPDATE documents SET tags = '[]' WHERE json_typeof(tags) <> 'array';
         UPDATE documents SET metadata = '{}' WHERE json_typeof(metadata) <> 'object';",
    ))?;
    connection.execute_batch(
        "INSERT INTO versions (document, number, blob, modified_at, indexed_at, mode)
             SELECT d.id, d.version, d.blob, d.modified_at, d.indexed_at, d.mode FROM documents d
             WHERE d.deleted_at IS NULL AND NOT EXISTS
                 (SELECT 1 FROM versions v WHERE v.document = d.id AND v.number = d.version AND v.blob = d.blob)
             ON CONFLICT (document, number) DO UPDATE SET blob = excluded.blob, modified_at = excluded.modified_at,
                 indexed_at = excluded.indexed_at, mode = excluded.mode;
         DELETE FROM tags;",
    )?;
    connection.execute_batch(connection.pick(
        "INSERT OR IGNORE INTO tags (tag, document)
             SELECT e.value, d.id FROM documents d, json_each(d.tags) e;",
        "INSERT INTO tags (tag, document)
             SELECT e.value, d.id FROM documents d, json_array_elements_text(d.tags) AS e (value) ON CONFLICT DO NOTHING;",
    ))
}

/// A document as it is, for a record that says so.
fn describe(turn: &Turn<'_>, uuid: &[u8], record: &mut Record) -> Result<()> {
    let mut find = turn.connection.prepare_cached(
        "SELECT d.id, d.path, b.hash, c.uuid FROM documents d JOIN blobs b ON b.id = d.blob
         JOIN collections c ON c.id = d.collection WHERE d.uuid = ?1",
    )?;
    let mut rows = find.query(params![uuid])?;
    let Some(row) = rows.next()? else { return Ok(()) };
    record.path = row.get(1)?;
    record.new = Some(digest(&row, 2)?);
    record.collection = Some(collection_id(&row, 3)?);
    record.state = state::of_document(turn.connection, row.get(0)?)?;
    Ok(())
}

fn accept_documents(turn: &Turn<'_>, actor: &Actor, now: Moment) -> Result<()> {
    let mut query = turn.connection.prepare_cached(LAST_RECORDS)?;
    let lasts = collect(query.query(params![])?, |row| {
        let last = Last {
            sequence: row.get(0)?,
            operation: row.get(1)?,
            path: row.get(2)?,
            hash: optional_digest(row, 3)?,
            state: optional_digest(row, 4)?,
        };
        Ok((last, row.get::<Vec<u8>>(5)?))
    })?;
    for (last, uuid) in lasts {
        if document(turn.connection, &last, &uuid)?.is_none() {
            continue;
        }
        let mut live = turn
            .connection
            .prepare_cached("SELECT 1 FROM documents WHERE uuid = ?1 AND deleted_at IS NULL")?;
        let is_live = live.exists(params![&uuid])?;
        let was_deleted = last.operation == Operation::Delete.word();
        let mut record =
            Turn::blank(actor, now, if is_live { Operation::Retitle } else { Operation::Delete });
        (record.path, record.previous) = (last.path, last.hash);
        if is_live {
            describe(turn, &uuid, &mut record)?;
            if was_deleted {
                record.operation = Operation::Add;
            } else if record.new != record.previous {
                record.operation = Operation::Replace;
            }
        }
        record.document = DocumentId::from_slice(&uuid);
        turn.record(record)?;
    }
    Ok(())
}

fn accept_strangers(turn: &Turn<'_>, actor: &Actor, now: Moment) -> Result<()> {
    let sql =
        format!("SELECT uuid, deleted_at IS NULL FROM documents WHERE {}", without_record(turn.connection));
    let mut query = turn.connection.prepare_cached(&sql)?;
    let found: Vec<(Vec<u8>, bool)> = collect(query.query(params![])?, |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (uuid, is_live) in found {
        let mut record = Turn::blank(actor, now, if is_live { Operation::Add } else { Operation::Delete });
        describe(turn, &uuid, &mut record)?;
        if !is_live {
            (record.previous, record.new, record.state) = (record.new, None, None);
        }
        record.document = DocumentId::from_slice(&uuid);
        turn.record(record)?;
    }
    Ok(())
}

fn accept_snapshots(turn: &Turn<'_>, actor: &Actor, now: Moment) -> Result<()> {
    let (expected, _) = expected_snapshots(turn.connection)?;
    let mut query = turn.connection.prepare_cached(
        "SELECT s.at, s.listing, c.uuid FROM snapshots s JOIN collections c ON c.id = s.collection ORDER BY s.at",
    )?;
    let present = collect(query.query(params![])?, |row| {
        Ok((row.get::<i64>(0)?, digest(row, 1)?, collection_id(row, 2)?))
    })?;
    let mut seen = HashSet::new();
    for (at, listing, collection) in present {
        let name = Moment::from_micros(at).with_micros();
        let state = state::of_snapshot(turn.connection, at)?;
        let is_known = expected.get(&name).is_some_and(|made| {
            made.listing == Some(listing) && (made.state.is_none() || made.state == state)
        });
        if !is_known {
            let mut record = Turn::blank(actor, now, Operation::Snapshot);
            (record.path, record.new, record.state) = (name.clone(), Some(listing), state);
            record.collection = Some(collection);
            turn.record(record)?;
        }
        seen.insert(name);
    }
    let mut missing: Vec<&String> = expected.keys().filter(|name| !seen.contains(*name)).collect();
    missing.sort();
    for name in missing {
        let mut record = Turn::blank(actor, now, Operation::DropSnapshot);
        record.path.clone_from(name);
        turn.record(record)?;
    }
    Ok(())
}
