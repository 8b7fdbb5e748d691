//! Comparing rows with the journal: what was changed, removed or added without a record.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension};
use shelf_base::{Digest, ids::CollectionId};

use super::{
    rows::{collect, collection_id, digest, optional_digest},
    state,
};
use crate::{Operation, Result};

/// The last record of each document.
const LAST_RECORDS: &str = "SELECT j.sequence, j.operation, j.path, j.new, j.state, j.document
     FROM (SELECT MAX(sequence) AS last FROM journal
           WHERE document IS NOT NULL AND operation IN ('add', 'replace', 'update', 'retitle', 'delete')
           GROUP BY document) m
     JOIN journal j ON j.sequence = m.last ORDER BY j.sequence";

/// Everything that does not agree with the journal, in words.
pub(super) fn audit(connection: &Connection) -> Result<Vec<String>> {
    let mut found = Vec::new();
    documents(connection, &mut found)?;
    strangers(connection, &mut found)?;
    snapshots(connection, &mut found)?;
    tables(connection, &mut found)?;
    Ok(found)
}

struct Last {
    sequence: u64,
    operation: String,
    path: String,
    hash: Option<Digest>,
    state: Option<Digest>,
}

fn documents(connection: &Connection, found: &mut Vec<String>) -> Result<()> {
    let mut query = connection.prepare(LAST_RECORDS)?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let last = Last {
            sequence: row.get(0)?,
            operation: row.get(1)?,
            path: row.get(2)?,
            hash: optional_digest(row, 3)?,
            state: optional_digest(row, 4)?,
        };
        let uuid: Vec<u8> = row.get(5)?;
        if let Some(what) = document(connection, &last, &uuid)? {
            found.push(format!("document {}: {what} (journal row {})", last.path, last.sequence));
        }
    }
    Ok(())
}

fn document(connection: &Connection, last: &Last, uuid: &[u8]) -> Result<Option<String>> {
    let mut find = connection.prepare_cached(
        "SELECT d.id, d.deleted_at IS NULL, d.path, b.hash FROM documents d LEFT JOIN blobs b ON b.id = d.blob
         WHERE d.uuid = ?1",
    )?;
    let present: Option<(i64, bool, String, Option<Vec<u8>>)> =
        find.query_row([uuid], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))).optional()?;
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

/// Documents that no record speaks of.
fn strangers(connection: &Connection, found: &mut Vec<String>) -> Result<()> {
    let mut query = connection.prepare(
        "SELECT path FROM documents WHERE uuid NOT IN (SELECT document FROM journal WHERE document IS NOT NULL)",
    )?;
    let paths: Vec<String> = collect(query.query([])?, |row| Ok(row.get(0)?))?;
    found.extend(paths.into_iter().map(|path| format!("document {path}: the journal has no record of it")));
    Ok(())
}

struct Made {
    collection: Option<CollectionId>,
    listing: Option<Digest>,
    state: Option<Digest>,
}

fn snapshots(connection: &Connection, found: &mut Vec<String>) -> Result<()> {
    let (expected, forgiven) = expected_snapshots(connection)?;
    let mut query = connection.prepare("SELECT at, listing FROM snapshots")?;
    let mut rows = query.query([])?;
    let mut seen = HashSet::new();
    while let Some(row) = rows.next()? {
        let at: i64 = row.get(0)?;
        let name = shelf_base::Moment::from_micros(at).with_micros();
        let Some(made) = expected.get(&name) else {
            found.push(format!("snapshot {name}: the journal has no record of it"));
            continue;
        };
        let is_same = made.state.is_none() || state::of_snapshot(connection, at)? == made.state;
        if made.listing != Some(digest(row, 1)?) || !is_same {
            found.push(format!("snapshot {name}: it is not as it was recorded"));
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
fn expected_snapshots(connection: &Connection) -> Result<(HashMap<String, Made>, HashSet<String>)> {
    let mut query = connection.prepare(
        "SELECT operation, path, collection, new, state FROM journal
         WHERE operation IN ('snapshot', 'drop_snapshot', 'delete_collection', 'collect') ORDER BY sequence",
    )?;
    let (mut expected, mut forgiven) = (HashMap::<String, Made>::new(), HashSet::new());
    let mut named = 0_u64;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let (operation, path): (String, String) = (row.get(0)?, row.get(1)?);
        let has_collection = row.get_ref(2)? != rusqlite::types::ValueRef::Null;
        let collection = if has_collection { Some(collection_id(row, 2)?) } else { None };
        match Operation::from_word(&operation) {
            Some(Operation::Snapshot) => {
                let made =
                    Made { collection, listing: optional_digest(row, 3)?, state: optional_digest(row, 4)? };
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
fn tables(connection: &Connection, found: &mut Vec<String>) -> Result<()> {
    for (sql, what) in [
        (
            "SELECT d.path FROM documents d WHERE NOT EXISTS
                 (SELECT 1 FROM versions v WHERE v.document = d.id AND v.number = d.version AND v.blob = d.blob)
                 AND d.deleted_at IS NULL",
            "its newest version is missing or points at other content",
        ),
        (
            "SELECT d.path FROM documents d WHERE d.deleted_at IS NULL AND NOT (json_valid(d.tags) AND json_valid(d.metadata))",
            "its tags or metadata cannot be read",
        ),
        (
            "SELECT d.path FROM documents d WHERE d.deleted_at IS NULL AND json_valid(d.tags)
                 AND (SELECT COUNT(*) FROM tags t WHERE t.document = d.id)
                     <> (SELECT COUNT(*) FROM json_each(d.tags) e JOIN tags t ON t.tag = e.value AND t.document = d.id)",
            "it is filed under other tags than it has",
        ),
        (
            "SELECT d.path FROM documents d WHERE d.deleted_at IS NULL AND json_valid(d.tags)
                 AND json_array_length(d.tags) <> (SELECT COUNT(*) FROM tags t WHERE t.document = d.id)",
            "it is not filed under all of its tags",
        ),
    ] {
        let mut query = connection.prepare(sql)?;
        let paths: Vec<String> = collect(query.query([])?, |row| Ok(row.get(0)?))?;
        found.extend(paths.into_iter().map(|path| format!("document {path}: {what}")));
    }
    Ok(())
}
