//! Contents and loose blocks as writes bring them along.
//!
//! Where the database is far away, all of a write's go there in one statement.

use std::collections::{BTreeMap, HashMap};

use shelf_base::Digest;

use super::{
    Connection, params,
    rows::{collect, digest},
    turn::Turn,
};
use crate::{Error, LooseBlock, PutDocument, Result};

/// A content that a document or a snapshot refers to.
#[derive(Clone, Copy)]
pub(super) struct Blob<'b> {
    pub hash: &'b Digest,
    pub size: u64,
    pub manifest: &'b [u8],
}

impl<'b> Blob<'b> {
    pub(super) fn of(document: &'b PutDocument) -> Self {
        Self { hash: &document.hash, size: document.size, manifest: &document.manifest }
    }
}

/// The rows of contents, made where they are not there.
pub(super) fn ensure(turn: &Turn<'_>, blobs: &[Blob<'_>]) -> Result<Vec<i64>> {
    match turn.connection {
        Connection::Sqlite(_) => blobs.iter().map(|blob| ensure_one(turn, blob)).collect(),
        Connection::Postgres(_) => ensure_many(turn, blobs),
    }
}

fn ensure_one(turn: &Turn<'_>, blob: &Blob<'_>) -> Result<i64> {
    let mut find = turn.connection.prepare_cached("SELECT id, manifest = ?2 FROM blobs WHERE hash = ?1")?;
    let found: Option<(i64, bool)> =
        find.first(params![blob.hash.as_bytes(), blob.manifest], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let Some((id, is_same)) = found else {
        return turn.connection.insert(
            "INSERT INTO blobs (hash, size, manifest) VALUES (?1, ?2, ?3)",
            params![blob.hash.as_bytes(), blob.size, blob.manifest],
        );
    };
    if !is_same {
        replace_manifest(turn, id, blob)?;
    }
    Ok(id)
}

/// The writer knows that the blocks of its own manifest are there; of another one it knows nothing.
fn replace_manifest(turn: &Turn<'_>, id: i64, blob: &Blob<'_>) -> Result<()> {
    turn.connection
        .prepare_cached("UPDATE blobs SET manifest = ?2, size = ?3 WHERE id = ?1")?
        .execute(params![id, blob.manifest, blob.size])
        .map(drop)
}

fn ensure_many(turn: &Turn<'_>, blobs: &[Blob<'_>]) -> Result<Vec<i64>> {
    // In the order of their hashes, so that two transactions with the same contents do not wait for each other.
    let distinct: BTreeMap<&[u8; 32], &Blob<'_>> =
        blobs.iter().map(|blob| (blob.hash.as_bytes(), blob)).collect();
    let hashes: Vec<[u8; 32]> = distinct.keys().map(|hash| **hash).collect();
    let sizes: Vec<i64> =
        distinct.values().map(|blob| i64::try_from(blob.size).unwrap_or(i64::MAX)).collect();
    let manifests: Vec<&[u8]> = distinct.values().map(|blob| blob.manifest).collect();
    let mut insert = turn.connection.prepare_cached(
        "INSERT INTO blobs (hash, size, manifest)
         SELECT n.hash, n.size, n.manifest
         FROM unnest(CAST(?1 AS BYTEA[]), CAST(?2 AS BIGINT[]), CAST(?3 AS BYTEA[])) AS n (hash, size, manifest)
         ON CONFLICT (hash) DO NOTHING RETURNING id, hash",
    )?;
    let made = collect(insert.query(params![hashes[..], sizes[..], manifests[..]])?, |row| {
        Ok((*digest(row, 1)?.as_bytes(), row.get::<i64>(0)?))
    })?;
    let mut known: HashMap<[u8; 32], i64> = made.into_iter().collect();
    let missing: Vec<[u8; 32]> = hashes.into_iter().filter(|hash| !known.contains_key(hash)).collect();
    if !missing.is_empty() {
        let find =
            format!("SELECT b.id, b.hash, b.manifest FROM {}", turn.connection.keyed("blobs", "b", "hash"));
        let mut query = turn.connection.prepare_cached(&find)?;
        let mut found = collect(query.query(params![missing[..]])?, |row| {
            Ok((row.get::<i64>(0)?, *digest(row, 1)?.as_bytes(), row.get::<Vec<u8>>(2)?))
        })?;
        // In their order again: rows are locked.
        found.sort_unstable_by_key(|(_, hash, _)| *hash);
        for (id, hash, manifest) in found {
            if let Some(blob) = distinct.get(&hash).filter(|blob| blob.manifest != manifest) {
                replace_manifest(turn, id, blob)?;
            }
            known.insert(hash, id);
        }
    }
    let row = |blob: &Blob<'_>| known.get(blob.hash.as_bytes()).copied();
    // Garbage collection may have taken one in between; who comes again finds it gone and makes it.
    blobs.iter().map(|blob| row(blob).ok_or(Error::Busy)).collect()
}

/// Keeps blocks that are not in a pack yet. A row that holds something else is damaged: what was just sent heals it.
pub(super) fn keep_loose(turn: &Turn<'_>, loose: &[LooseBlock]) -> Result<()> {
    if loose.is_empty() {
        return Ok(());
    }
    let new = turn.connection.pick(
        "VALUES (?1, ?2)",
        "SELECT n.id, n.bytes FROM unnest(CAST(?1 AS BYTEA[]), CAST(?2 AS BYTEA[])) AS n (id, bytes)",
    );
    let mut insert = turn.connection.prepare_cached(&format!(
        "INSERT INTO loose_blocks (id, bytes) {new}
         ON CONFLICT (id) DO UPDATE SET bytes = excluded.bytes WHERE loose_blocks.bytes <> excluded.bytes"
    ))?;
    if let Connection::Postgres(_) = turn.connection {
        let distinct: BTreeMap<[u8; 32], &[u8]> =
            loose.iter().map(|block| (block.id, &block.bytes[..])).collect();
        let ids: Vec<[u8; 32]> = distinct.keys().copied().collect();
        let bytes: Vec<&[u8]> = distinct.into_values().collect();
        return insert.execute(params![ids[..], bytes[..]]).map(drop);
    }
    for block in loose {
        insert.execute(params![block.id, block.bytes])?;
    }
    Ok(())
}
