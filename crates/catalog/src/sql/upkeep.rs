//! Upkeep: what a garbage collection keeps and forgets.

use shelf_base::{Digest, Fence, Moment, ids::CollectionId};

use super::{
    Connection, account_blocks, fences, params,
    rows::{CHUNK, chunk, collect, collection_id, digest},
    turn::Turn,
};
use crate::{Actor, BlocksOf, Chunk, Operation, Position, Purge, Result};

/// Rows that one statement removes at most.
const AT_ONCE: usize = 4_096;

pub(super) fn drop_loose(turn: &Turn<'_>, ids: &[[u8; 32]], fence: Option<&Fence>) -> Result<()> {
    fences::check(turn, fence)?;
    let mut delete = turn.connection.prepare_cached("DELETE FROM loose_blocks WHERE id = ?1")?;
    for id in ids {
        delete.execute(params![id])?;
    }
    Ok(())
}

pub(super) fn version_hashes(
    connection: Connection<'_>,
    position: &Position,
) -> Result<Chunk<(Digest, bool)>> {
    // A blob has one hash; SQLite knows this and reads on in the order of the index.
    let group = connection.pick("v.blob", "v.blob, b.hash");
    let sql = format!(
        "SELECT v.blob, b.hash, MAX(CASE WHEN d.deleted_at IS NULL THEN 1 ELSE 0 END) FROM versions v
         CROSS JOIN blobs b ON b.id = v.blob CROSS JOIN documents d ON d.id = v.document
         WHERE v.blob > ?1 GROUP BY {group} ORDER BY v.blob LIMIT ?2",
    );
    let mut query = connection.prepare_cached(&sql)?;
    let found = collect(query.query(params![position.number, CHUNK as i64])?, |row| {
        Ok((Position::at(row.get(0)?), (digest(row, 1)?, row.get(2)?)))
    })?;
    Ok(chunk(found, CHUNK))
}

pub(super) fn version_count(connection: Connection<'_>) -> Result<u64> {
    connection.query_row("SELECT COUNT(*) FROM versions", params![], |row| row.get(0))
}

pub(super) fn purge(turn: &Turn<'_>, actor: &Actor, purge: &Purge, now: Moment) -> Result<()> {
    let connection = turn.connection;
    fences::check(turn, purge.fence.as_ref())?;
    for at in &purge.snapshots {
        let collection = collection_of_snapshot(connection, *at)?;
        connection.prepare_cached("DELETE FROM snapshots WHERE at = ?1")?.execute(params![at.micros()])?;
        let mut record = Turn::blank(actor, now, Operation::DropSnapshot);
        (record.collection, record.path) = (collection, at.with_micros());
        turn.record(record)?;
    }
    connection.execute("DELETE FROM buried WHERE sequence <= ?1", params![purge.followed])?;
    forget_deleted(turn, purge)?;
    let doomed = doomed_blobs(connection, purge)?;
    let mut delete =
        connection.prepare_cached(&format!("DELETE FROM blobs WHERE {}", connection.among("id")))?;
    for some in doomed.chunks(AT_ONCE) {
        delete.execute(params![some])?;
    }
    if let Some(blocks_of) = purge.blocks_of {
        rebuild_account_blocks(connection, blocks_of)?;
    }
    let mut record = Turn::blank(actor, now, Operation::Collect);
    record.path = format!("{} blobs, {} snapshots", doomed.len(), purge.snapshots.len());
    turn.record(record)?;
    Ok(())
}

fn collection_of_snapshot(connection: Connection<'_>, at: Moment) -> Result<Option<CollectionId>> {
    let mut query = connection.prepare_cached(
        "SELECT c.uuid FROM snapshots s JOIN collections c ON c.id = s.collection WHERE s.at = ?1",
    )?;
    Ok(collect(query.query(params![at.micros()])?, |row| collection_id(row, 0))?.pop())
}

/// Forgets deleted documents none of whose versions is kept. Their numbers stay until every index has heard of them.
fn forget_deleted(turn: &Turn<'_>, purge: &Purge) -> Result<()> {
    let connection = turn.connection;
    let mut query = connection.prepare_cached(
        "SELECT v.document, v.number, b.hash FROM versions v JOIN blobs b ON b.id = v.blob
         JOIN documents d ON d.id = v.document WHERE d.deleted_at IS NOT NULL",
    )?;
    let versions: Vec<(i64, i64, Digest)> =
        collect(query.query(params![])?, |row| Ok((row.get(0)?, row.get(1)?, digest(row, 2)?)))?;
    for (document, number, _) in versions.iter().filter(|(_, _, hash)| !purge.keep.contains(hash)) {
        connection
            .prepare_cached("DELETE FROM versions WHERE document = ?1 AND number = ?2")?
            .execute(params![document, number])?;
    }
    connection.execute(
        "INSERT INTO buried (number, sequence) SELECT d.id, CAST(?1 AS BIGINT) FROM documents d
         WHERE d.deleted_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.document = d.id)
         ON CONFLICT (number) DO UPDATE SET sequence = excluded.sequence",
        params![turn.next_sequence()?],
    )?;
    connection.execute_batch(
        "DELETE FROM tags WHERE document IN (SELECT d.id FROM documents d WHERE d.deleted_at IS NOT NULL
             AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.document = d.id));
         DELETE FROM maps WHERE document IN (SELECT d.id FROM documents d WHERE d.deleted_at IS NOT NULL
             AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.document = d.id));
         DELETE FROM documents WHERE deleted_at IS NOT NULL
             AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.document = documents.id);
         UPDATE documents SET blob = (SELECT v.blob FROM versions v WHERE v.document = documents.id
                 ORDER BY v.number DESC LIMIT 1)
             WHERE deleted_at IS NOT NULL;",
    )?;
    Ok(())
}

fn doomed_blobs(connection: Connection<'_>, purge: &Purge) -> Result<Vec<i64>> {
    let mut query = connection.prepare_cached("SELECT id, hash FROM blobs")?;
    let blobs: Vec<(i64, Digest)> =
        collect(query.query(params![])?, |row| Ok((row.get(0)?, digest(row, 1)?)))?;
    Ok(blobs.into_iter().filter(|(_, hash)| !purge.keep.contains(hash)).map(|(id, _)| id).collect())
}

/// The accounts' own blocks are made anew from the versions that are left.
pub(crate) fn rebuild_account_blocks(connection: Connection<'_>, blocks_of: BlocksOf) -> Result<()> {
    connection.execute("DELETE FROM account_blocks", params![])?;
    let mut query = connection.prepare_cached(
        "SELECT DISTINCT c.account, b.id, b.manifest FROM versions v JOIN blobs b ON b.id = v.blob
         JOIN documents d ON d.id = v.document JOIN collections c ON c.id = d.collection",
    )?;
    let mut rows = query.query(params![])?;
    while let Some(row) = rows.next()? {
        let account: i64 = row.get(0)?;
        account_blocks::add_named(connection, account, &blocks_of(row.cell(2)?.blob()), |_, _| {})?;
    }
    Ok(())
}
