//! Reads that are not about single documents: collections, snapshots, blobs, the journal.

use shelf_base::Digest;

use super::{
    Cell, Connection, Row,
    documents::position_values,
    params,
    rows::{
        CHUNK, Conditions, account_id, chunk, collect, collection_id, digest, document_id, moment,
        optional_digest, optional_moment,
    },
};
use crate::{
    BlobRow, BookStatus, Chunk, Collection, CollectionKind, CollectionSummary, Error, LooseBlock, Operation,
    Position, Record, Result, Scope, Snapshot, SnapshotDraft, SnapshotFilter, StoredListing, TypeFigures,
};

/// Keys that one query takes at most.
const AT_ONCE: usize = 256;

pub(super) const COLLECTION: &str =
    "c.uuid, a.uuid, c.name, c.kind, c.created_at, c.model, c.title, c.status, c.is_public";

pub(super) fn read_collection(row: &Row<'_>) -> Result<Collection> {
    let kind = match row.get::<String>(3)?.as_str() {
        "plain" => CollectionKind::Plain,
        "book" => CollectionKind::Book,
        _ => return Err(Error::Unreadable("a collection's kind")),
    };
    Ok(Collection {
        id: collection_id(row, 0)?,
        owner: account_id(row, 1)?,
        name: row.get(2)?,
        kind,
        created_at: moment(row, 4)?,
        model: row.get(5)?,
        title: row.get(6)?,
        status: BookStatus::from_word(&row.get::<String>(7)?).ok_or(Error::Unreadable("a book's status"))?,
        is_public: row.get(8)?,
    })
}

pub(super) fn collections(connection: Connection<'_>, scope: &Scope) -> Result<Vec<CollectionSummary>> {
    summaries(connection, &Conditions::in_scope(scope))
}

pub(super) fn known_collection(
    connection: Connection<'_>,
    scope: &Scope,
    id: shelf_base::ids::CollectionId,
) -> Result<Option<Collection>> {
    let mut conditions = Conditions::in_scope(scope);
    conditions.add("c.uuid = ?", id.as_bytes().to_vec());
    one_collection(connection, &conditions)
}

pub(super) fn collection_by_id(
    connection: Connection<'_>,
    scope: &Scope,
    id: shelf_base::ids::CollectionId,
) -> Result<Option<CollectionSummary>> {
    let mut conditions = Conditions::in_scope(scope);
    conditions.add("c.uuid = ?", id.as_bytes().to_vec());
    Ok(summaries(connection, &conditions)?.into_iter().next())
}

fn summaries(connection: Connection<'_>, conditions: &Conditions) -> Result<Vec<CollectionSummary>> {
    let chosen = conditions.sql();
    let sql = format!(
        "WITH figures AS (
             SELECT d.collection, COUNT(*) AS documents, CAST(SUM(d.size) AS BIGINT) AS bytes,
                 MAX(d.indexed_at) AS updated_at
             FROM documents d
             WHERE d.deleted_at IS NULL AND d.collection IN (SELECT c.id FROM collections c WHERE {chosen})
             GROUP BY d.collection)
         SELECT {COLLECTION}, COALESCE(f.documents, 0), COALESCE(f.bytes, 0),
             (SELECT COUNT(*) FROM snapshots s WHERE s.collection = c.id), f.updated_at
         FROM collections c JOIN accounts a ON a.id = c.account LEFT JOIN figures f ON f.collection = c.id
         WHERE {chosen} ORDER BY c.name, c.id"
    );
    // The conditions stand there twice.
    let values = [conditions.parameters(), conditions.parameters()].concat();
    let mut query = connection.prepare_cached(&sql)?;
    collect(query.query(&values)?, |row| {
        Ok(CollectionSummary {
            collection: read_collection(row)?,
            documents: row.get(9)?,
            bytes: row.get(10)?,
            snapshots: row.get(11)?,
            updated_at: optional_moment(row, 12)?,
        })
    })
}

pub(super) fn collection(
    connection: Connection<'_>,
    scope: &Scope,
    name: &str,
) -> Result<Option<Collection>> {
    let mut conditions = Conditions::in_scope(scope);
    conditions.add("c.name = ?", name.to_owned());
    one_collection(connection, &conditions)
}

fn one_collection(connection: Connection<'_>, conditions: &Conditions) -> Result<Option<Collection>> {
    let sql = format!(
        "SELECT {COLLECTION} FROM collections c JOIN accounts a ON a.id = c.account WHERE {} ORDER BY c.id LIMIT 1",
        conditions.sql()
    );
    let mut query = connection.prepare_cached(&sql)?;
    Ok(collect(query.query(&conditions.parameters())?, read_collection)?.into_iter().next())
}

pub(super) fn collection_ids(
    connection: Connection<'_>,
    scope: &Scope,
    name: Option<&str>,
) -> Result<Vec<shelf_base::ids::CollectionId>> {
    let mut conditions = Conditions::in_scope(scope);
    if let Some(name) = name {
        conditions.add("c.name = ?", name.to_owned());
    }
    let sql = format!("SELECT c.uuid FROM collections c WHERE {}", conditions.sql());
    let mut query = connection.prepare_cached(&sql)?;
    collect(query.query(&conditions.parameters())?, |row| collection_id(row, 0))
}

pub(super) fn models(
    connection: Connection<'_>,
    scope: &Scope,
) -> Result<Vec<(shelf_base::ids::CollectionId, Option<String>)>> {
    let conditions = Conditions::in_scope(scope);
    let sql = format!("SELECT c.uuid, c.model FROM collections c WHERE {}", conditions.sql());
    let mut query = connection.prepare_cached(&sql)?;
    collect(query.query(&conditions.parameters())?, |row| Ok((collection_id(row, 0)?, row.get(1)?)))
}

pub(super) fn type_figures(connection: Connection<'_>, scope: &Scope) -> Result<Vec<TypeFigures>> {
    let conditions = Conditions::live(connection, scope, None)?;
    let sql = format!(
        "SELECT d.extension, d.mime, d.is_text, COUNT(*), CAST(SUM(d.size) AS BIGINT)
         FROM documents d WHERE {}
         GROUP BY d.extension, d.mime, d.is_text ORDER BY COUNT(*) DESC, d.extension, d.mime",
        conditions.sql()
    );
    let mut query = connection.prepare_cached(&sql)?;
    collect(query.query(&conditions.parameters())?, |row| {
        Ok(TypeFigures {
            extension: row.get(0)?,
            mime: row.get(1)?,
            is_text: row.get(2)?,
            count: row.get(3)?,
            bytes: row.get(4)?,
        })
    })
}

pub(super) fn live_manifests(
    connection: Connection<'_>,
    scope: &Scope,
    position: &Position,
) -> Result<Chunk<BlobRow>> {
    let mut conditions = Conditions::live(connection, scope, None)?;
    conditions.add_many("(d.collection, d.path) > (?, ?)".into(), position_values(position));
    let sql = format!(
        "SELECT d.collection, d.path, d.size, b.manifest FROM documents d JOIN blobs b ON b.id = d.blob
         WHERE {} ORDER BY d.collection, d.path LIMIT {CHUNK}",
        conditions.sql()
    );
    let mut query = connection.prepare_cached(&sql)?;
    let found = collect(query.query(&conditions.parameters())?, |row| {
        let position = Position { number: row.get(0)?, text: row.get(1)? };
        Ok((position, BlobRow { size: row.get(2)?, manifest: row.get(3)? }))
    })?;
    Ok(chunk(found, CHUNK))
}

pub(super) fn blob(connection: Connection<'_>, hash: &Digest) -> Result<Option<BlobRow>> {
    let mut query = connection.prepare_cached("SELECT size, manifest FROM blobs WHERE hash = ?1")?;
    query.first(params![hash.as_bytes()], |row| Ok(BlobRow { size: row.get(0)?, manifest: row.get(1)? }))
}

pub(super) fn blobs_of(connection: Connection<'_>, hashes: &[Digest]) -> Result<Vec<(Digest, BlobRow)>> {
    let sql = format!("SELECT b.hash, b.size, b.manifest FROM {}", connection.keyed("blobs", "b", "hash"));
    let mut query = connection.prepare_cached(&sql)?;
    let mut found = Vec::with_capacity(hashes.len());
    for hashes in hashes.chunks(AT_ONCE) {
        let keys: Vec<[u8; 32]> = hashes.iter().map(|hash| *hash.as_bytes()).collect();
        found.extend(collect(query.query(params![keys[..]])?, |row| {
            Ok((digest(row, 0)?, BlobRow { size: row.get(1)?, manifest: row.get(2)? }))
        })?);
    }
    Ok(found)
}

pub(super) fn blobs(connection: Connection<'_>, position: &Position) -> Result<Chunk<(Digest, BlobRow)>> {
    let mut query = connection
        .prepare_cached("SELECT id, hash, size, manifest FROM blobs WHERE id > ?1 ORDER BY id LIMIT ?2")?;
    let found = collect(query.query(params![position.number, CHUNK as i64])?, |row| {
        let blob = (digest(row, 1)?, BlobRow { size: row.get(2)?, manifest: row.get(3)? });
        Ok((Position::at(row.get(0)?), blob))
    })?;
    Ok(chunk(found, CHUNK))
}

fn read_loose(row: &Row<'_>) -> Result<LooseBlock> {
    let id: Vec<u8> = row.get(0)?;
    Ok(LooseBlock { id: id.try_into().map_err(|_| Error::Unreadable("a loose block"))?, bytes: row.get(1)? })
}

pub(super) fn loose(connection: Connection<'_>, ids: &[[u8; 32]]) -> Result<Vec<LooseBlock>> {
    if let [id] = ids {
        let mut query = connection.prepare_cached("SELECT id, bytes FROM loose_blocks WHERE id = ?1")?;
        return collect(query.query(params![id])?, read_loose);
    }
    let sql = format!("SELECT l.id, l.bytes FROM {}", connection.keyed("loose_blocks", "l", "id"));
    let mut query = connection.prepare_cached(&sql)?;
    let mut found = Vec::new();
    for ids in ids.chunks(AT_ONCE) {
        found.extend(collect(query.query(params![ids])?, read_loose)?);
    }
    Ok(found)
}

pub(super) fn loose_figures(connection: Connection<'_>) -> Result<(u64, u64)> {
    connection.query_row(
        "SELECT COUNT(*), COALESCE(SUM(LENGTH(bytes)), 0) FROM loose_blocks",
        params![],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

pub(super) fn loose_after(
    connection: Connection<'_>,
    after: Option<[u8; 32]>,
    most: usize,
) -> Result<Vec<LooseBlock>> {
    let mut query =
        connection.prepare_cached("SELECT id, bytes FROM loose_blocks WHERE id > ?1 ORDER BY id LIMIT ?2")?;
    let after = after.as_ref().map_or(&[][..], |after| &after[..]);
    collect(query.query(params![after, most as i64])?, read_loose)
}

/// The conditions over snapshots `s`, by the collections that are in scope.
fn snapshots_in(
    connection: Connection<'_>,
    scope: &Scope,
    filter: &SnapshotFilter<'_>,
) -> Result<Conditions> {
    let mut conditions = Conditions::of_collections(connection, "s.collection", scope, filter.collection)?;
    if let Some(at) = filter.at {
        conditions.add("s.at = ?", at.micros());
    }
    if let Some(label) = filter.label {
        conditions.add("s.label = ?", label.to_owned());
    }
    if let Some(before) = filter.before {
        conditions.add("s.at < ?", before.micros());
    }
    Ok(conditions)
}

pub(super) fn snapshot_count(
    connection: Connection<'_>,
    scope: &Scope,
    filter: &SnapshotFilter<'_>,
) -> Result<u64> {
    let conditions = snapshots_in(connection, scope, filter)?;
    let sql = format!("SELECT COUNT(*) FROM snapshots s WHERE {}", conditions.sql());
    connection.prepare_cached(&sql)?.query_row(&conditions.parameters(), |row| row.get(0))
}

pub(super) fn newest_listing(
    connection: Connection<'_>,
    collection: shelf_base::ids::CollectionId,
    root: &str,
) -> Result<Option<Digest>> {
    let mut query = connection.prepare_cached(
        "SELECT s.listing FROM snapshots s
         WHERE s.collection = (SELECT id FROM collections WHERE uuid = ?1) AND s.root = ?2 AND s.entries IS NULL
         ORDER BY s.at DESC LIMIT 1",
    )?;
    query.first(params![collection.as_bytes(), root], |row| digest(row, 0))
}

pub(super) fn snapshots(
    connection: Connection<'_>,
    scope: &Scope,
    filter: &SnapshotFilter<'_>,
    most: usize,
) -> Result<Vec<Snapshot>> {
    let conditions = snapshots_in(connection, scope, filter)?;
    let sql = format!(
        "SELECT s.at, c.uuid, c.name, s.label, s.root, s.listing, b.manifest, b.size, s.merkle, s.files, s.bytes,
             s.git_commit, s.git_branch, s.entries
         FROM snapshots s CROSS JOIN collections c ON c.id = s.collection
             LEFT JOIN blobs b ON b.hash = s.listing AND s.entries IS NULL
         WHERE (s.entries IS NOT NULL OR b.id IS NOT NULL) AND {} ORDER BY s.at DESC LIMIT {}",
        conditions.sql(),
        most.min(i64::MAX as usize)
    );
    let mut query = connection.prepare_cached(&sql)?;
    collect(query.query(&conditions.parameters())?, |row| {
        Ok(Snapshot {
            at: moment(row, 0)?,
            collection: collection_id(row, 1)?,
            collection_name: row.get(2)?,
            draft: SnapshotDraft {
                label: row.get(3)?,
                root: row.get(4)?,
                listing: digest(row, 5)?,
                stored: match row.get(13)? {
                    Some(entries) => StoredListing::Inline(entries),
                    None => StoredListing::Blob { manifest: row.get(6)?, size: row.get(7)? },
                },
                merkle: digest(row, 8)?,
                files: row.get(9)?,
                bytes: row.get(10)?,
                git_commit: row.get(11)?,
                git_branch: row.get(12)?,
            },
        })
    })
}

pub(crate) fn sequence(connection: Connection<'_>) -> Result<u64> {
    Ok(journal_end(connection)?.0)
}

/// The last sequence number and its seal.
pub(crate) fn journal_end(connection: Connection<'_>) -> Result<(u64, Digest)> {
    last_record(connection, "SELECT sequence, seal FROM journal ORDER BY sequence DESC LIMIT 1")
}

/// The last sequence number and its seal, which nobody else changes before this transaction ends.
pub(super) fn lock_journal(connection: Connection<'_>) -> Result<(u64, Digest)> {
    let mut query = connection.prepare_cached("SELECT sequence, seal FROM journal_head FOR UPDATE")?;
    let head = query.first(params![], |row| Ok((row.get(0)?, digest(row, 1)?)))?;
    head.ok_or(Error::Moved)
}

fn last_record(connection: Connection<'_>, sql: &str) -> Result<(u64, Digest)> {
    let mut query = connection.prepare_cached(sql)?;
    let last = collect(query.query(params![])?, |row| Ok((row.get(0)?, digest(row, 1)?)))?;
    Ok(last.into_iter().next().unwrap_or((0, Record::genesis())))
}

pub(crate) fn journal(connection: Connection<'_>, after: u64, most: usize) -> Result<Vec<Record>> {
    let mut query = connection.prepare_cached(
        "SELECT sequence, at, account, token, operation, collection, document, path, previous, new, state, seal
         FROM journal WHERE sequence > ?1 ORDER BY sequence LIMIT ?2",
    )?;
    collect(query.query(params![after, most as i64])?, record)
}

/// A record from the columns of the journal, in their order.
pub(crate) fn record(row: &Row<'_>) -> Result<Record> {
    let operation = Operation::from_word(&row.get::<String>(4)?).ok_or(Error::Unreadable("an operation"))?;
    let present = |at: usize| row.cell(at).is_ok_and(|cell| cell != Cell::Null);
    Ok(Record {
        sequence: row.get(0)?,
        at: moment(row, 1)?,
        account: account_id(row, 2)?,
        token: row.get(3)?,
        operation,
        collection: if present(5) { Some(collection_id(row, 5)?) } else { None },
        document: if present(6) { Some(document_id(row, 6)?) } else { None },
        path: row.get(7)?,
        previous: optional_digest(row, 8)?,
        new: optional_digest(row, 9)?,
        state: optional_digest(row, 10)?,
        seal: digest(row, 11)?,
    })
}
