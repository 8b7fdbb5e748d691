//! Writes: documents, versions, snapshots, changes and deletions, each with its journal record.

use std::collections::BTreeSet;

use serde_json::Value;
use shelf_base::{
    Digest, Moment, bounds,
    ids::{CollectionId, DocumentId},
};

use super::{
    Connection, Value as SqlValue, account_blocks, books, documents, fences, params, read,
    rows::{Conditions, collect, digest},
    state,
    turn::Turn,
};
use crate::{
    Actor, Collection, CollectionKind, Error, Expected, LooseBlock, Metadata, Operation, Put, PutDocument,
    PutResult, PutState, Result, Scope, Shelf, Snapshot, SnapshotDraft, TagChange, Update,
};

/// Documents of one transaction that are many.
const MANY: usize = 256;

pub(super) fn make_collection(turn: &Turn<'_>, actor: &Actor, name: &str, now: Moment) -> Result<Collection> {
    make(turn, actor, name, CollectionKind::Plain, now)
}

pub(super) fn make(
    turn: &Turn<'_>,
    actor: &Actor,
    name: &str,
    kind: CollectionKind,
    now: Moment,
) -> Result<Collection> {
    let scope = Scope::Account(actor.account);
    if let Some(found) = read::collection(turn.connection, &scope, name)? {
        return Ok(found);
    }
    let id = CollectionId::fresh();
    turn.connection.execute(
        "INSERT INTO collections (uuid, account, name, kind, created_at)
         VALUES (?1, (SELECT id FROM accounts WHERE uuid = ?2), ?3, ?4, ?5)",
        params![id.as_bytes(), actor.account.as_bytes(), name, kind.word(), now.micros()],
    )?;
    let mut record = Turn::blank(actor, now, Operation::CreateCollection);
    record.collection = Some(id);
    record.path = name.to_owned();
    turn.record(record)?;
    read::collection(turn.connection, &scope, name)?.ok_or(Error::NoCollection)
}

/// The collection as the writes need it: its row, its owner's row.
pub(super) struct Place {
    pub id: CollectionId,
    pub row: i64,
    pub account: i64,
    pub is_book: bool,
}

pub(super) fn place(turn: &Turn<'_>, id: CollectionId) -> Result<Place> {
    let found = turn
        .connection
        .prepare_cached("SELECT id, account, kind = 'book' FROM collections WHERE uuid = ?1")?
        .first(params![id.as_bytes()], |row| {
            Ok(Place { id, row: row.get(0)?, account: row.get(1)?, is_book: row.get(2)? })
        })?;
    found.ok_or(Error::NoCollection)
}

/// The collection of a put, made in the same transaction when it is not there: a put that fails leaves none behind.
pub(super) fn shelf(turn: &Turn<'_>, put: &Put) -> Result<Place> {
    let id = match &put.collection {
        Shelf::Known(id) => *id,
        Shelf::Named(name) => make_collection(turn, &put.actor, name, put.now)?.id,
        Shelf::Book(name) => books::make(turn, &put.actor, name, put.now)?.id,
    };
    place(turn, id)
}

pub(super) fn put(turn: &Turn<'_>, put: &Put) -> Result<(Vec<PutResult>, Option<Snapshot>)> {
    fences::check(turn, put.fence.as_ref())?;
    let place = shelf(turn, put)?;
    if let Some(upload) = &put.upload {
        books::use_upload(turn, upload, put.now)?;
    }
    if let (MANY.., Connection::Sqlite(connection)) = (put.documents.len(), turn.connection) {
        crate::sqlite::expect_many(connection)?;
    }
    keep_loose(turn, &put.loose)?;
    let results = put
        .documents
        .iter()
        .map(|document| put_document(turn, put, &place, document))
        .collect::<Result<_>>()?;
    let snapshot = put.snapshot.as_ref().map(|draft| make_snapshot(turn, put, &place, draft)).transpose()?;
    Ok((results, snapshot))
}

pub(super) fn keep_loose(turn: &Turn<'_>, loose: &[LooseBlock]) -> Result<()> {
    // A row that holds something else is damaged: what was just sent heals it.
    let mut insert = turn.connection.prepare_cached(
        "INSERT INTO loose_blocks (id, bytes) VALUES (?1, ?2)
         ON CONFLICT (id) DO UPDATE SET bytes = excluded.bytes WHERE loose_blocks.bytes <> excluded.bytes",
    )?;
    for block in loose {
        insert.execute(params![block.id, block.bytes])?;
    }
    Ok(())
}

/// What is stored at the path now.
struct Present {
    row: i64,
    id: DocumentId,
    blob: i64,
    hash: Digest,
    version: u32,
    tags: BTreeSet<String>,
    metadata: Metadata,
    resource_id: Option<String>,
    mime: String,
    modified_at: i64,
    indexed_at: i64,
    mode: u32,
}

pub(super) fn put_document(
    turn: &Turn<'_>,
    put: &Put,
    place: &Place,
    document: &PutDocument,
) -> Result<PutResult> {
    books::must_take(turn, place, &document.path)?;
    let blob = ensure_blob(turn, &document.hash, document.size, &document.manifest)?;
    let (stored, deduplicated) = account_blocks::add(turn, place.account, &document.blocks)?;
    let present = present(turn, place.row, &document.path)?;
    if let Expected::Content(expected) = document.expected
        && present.as_ref().is_none_or(|present| present.hash != expected)
    {
        return Err(Error::ContentChanged { current: present.map(|present| present.hash) });
    }
    if let Some(resource_id) = &document.resource_id {
        claim_resource_id(turn, place, resource_id, present.as_ref().map(|present| present.row))?;
    }
    let (id, state) = match present {
        None => (insert(turn, put, place, document, blob)?, PutState::Added),
        Some(present) => (present.id, replace(turn, put, place, document, blob, &present)?),
    };
    Ok(PutResult { id, state, stored, deduplicated })
}

pub(super) fn ensure_blob(turn: &Turn<'_>, hash: &Digest, size: u64, manifest: &[u8]) -> Result<i64> {
    let mut find = turn.connection.prepare_cached("SELECT id, manifest = ?2 FROM blobs WHERE hash = ?1")?;
    let found: Option<(i64, bool)> =
        find.first(params![hash.as_bytes(), manifest], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if let Some((id, is_same)) = found {
        // The writer knows that the blocks of its own manifest are there; of another one it knows nothing.
        if !is_same {
            turn.connection
                .prepare_cached("UPDATE blobs SET manifest = ?2, size = ?3 WHERE id = ?1")?
                .execute(params![id, manifest, size])?;
        }
        return Ok(id);
    }
    turn.connection.insert(
        "INSERT INTO blobs (hash, size, manifest) VALUES (?1, ?2, ?3)",
        params![hash.as_bytes(), size, manifest],
    )
}

const PRESENT: &str =
    "SELECT d.id, d.uuid, d.blob, b.hash, d.version, d.tags, d.metadata, d.resource_id, d.mime,
         d.modified_at, d.indexed_at, d.mode
     FROM documents d JOIN blobs b ON b.id = d.blob";

fn present(turn: &Turn<'_>, collection: i64, path: &str) -> Result<Option<Present>> {
    let find = format!("{PRESENT} WHERE d.collection = ?1 AND d.path = ?2 AND d.deleted_at IS NULL");
    read_present(turn.connection, &find, params![collection, path])
}

fn read_present(connection: Connection<'_>, find: &str, values: &[SqlValue<'_>]) -> Result<Option<Present>> {
    connection.prepare_cached(find)?.first(values, |row| {
        Ok(Present {
            row: row.get(0)?,
            id: super::rows::document_id(row, 1)?,
            blob: row.get(2)?,
            hash: digest(row, 3)?,
            version: row.get(4)?,
            // What cannot be read any more gives way to what is written now.
            tags: serde_json::from_str(&row.get::<String>(5)?).unwrap_or_default(),
            metadata: serde_json::from_str(&row.get::<String>(6)?).unwrap_or_default(),
            resource_id: row.get(7)?,
            mime: row.get(8)?,
            modified_at: row.get(9)?,
            indexed_at: row.get(10)?,
            mode: row.get(11)?,
        })
    })
}

pub(super) fn claim_resource_id(
    turn: &Turn<'_>,
    place: &Place,
    resource_id: &str,
    own: Option<i64>,
) -> Result<()> {
    let mut find = turn.connection.prepare_cached(
        "SELECT d.id FROM documents d JOIN collections c ON c.id = d.collection
         WHERE d.resource_id = ?1 AND c.account = ?2 AND d.deleted_at IS NULL",
    )?;
    let taken: Option<i64> = find.first(params![resource_id, place.account], |row| row.get(0))?;
    match taken {
        Some(row) if Some(row) != own => Err(Error::ResourceIdTaken(resource_id.to_owned())),
        _ => Ok(()),
    }
}

pub(super) fn to_json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|_| Error::Unreadable("tags or metadata"))
}

fn insert(
    turn: &Turn<'_>,
    put: &Put,
    place: &Place,
    document: &PutDocument,
    blob: i64,
) -> Result<DocumentId> {
    let id = document.id.unwrap_or_else(DocumentId::fresh);
    let now = put.now.micros();
    turn.connection
        .prepare_cached("UPDATE accounts SET documents_numbered = documents_numbered + 1 WHERE id = ?1")?
        .execute(params![place.account])?;
    let row = turn.connection.insert(
        "INSERT INTO documents (uuid, collection, path, title, resource_id, extension, mime, is_text, blob, size, version,
             modified_at, indexed_at, created_at, checked_at, mode, stat, tags, metadata, document_type, account_number)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 1, ?11, ?12, ?12, ?12, ?13, ?14, ?15, ?16, ?17,
             (SELECT documents_numbered FROM accounts WHERE id = ?18))",
        params![
            id.as_bytes(),
            place.row,
            document.path,
            document.title,
            document.resource_id,
            document.extension,
            document.mime,
            document.is_text,
            blob,
            document.size,
            document.modified_at.nanos(),
            now,
            document.mode,
            document.stat,
            to_json(&document.tags)?,
            to_json(&document.metadata)?,
            document.document_type,
            place.account,
        ],
    )?;
    insert_version(turn, row, 1, blob, (document.modified_at, document.mode), put.now)?;
    insert_tags(turn, row, &document.tags)?;
    record_document(
        turn,
        put,
        place,
        Operation::Add,
        (id, row),
        &document.path,
        (None, Some(document.hash)),
    )?;
    Ok(id)
}

/// Writes over a document: a new version when the bytes differ, and whatever tags and metadata came along. Its title
/// stays: somebody may have given it one, and the name it had at first still fits its path.
fn replace(
    turn: &Turn<'_>,
    put: &Put,
    place: &Place,
    document: &PutDocument,
    blob: i64,
    present: &Present,
) -> Result<PutState> {
    let changed = present.blob != blob;
    let tags: BTreeSet<String> = present.tags.union(&document.tags).cloned().collect();
    let mut metadata = present.metadata.clone();
    metadata.extend(document.metadata.clone());
    let resource_id = document.resource_id.clone().or_else(|| present.resource_id.clone());
    let described = tags != present.tags
        || metadata != present.metadata
        || resource_id != present.resource_id
        || document.mime != present.mime;
    if !changed && !described {
        let mut seen = turn
            .connection
            .prepare_cached("UPDATE documents SET stat = ?2, checked_at = ?3 WHERE id = ?1")?;
        seen.execute(params![present.row, document.stat, put.now.micros()])?;
        return Ok(PutState::Unchanged);
    }
    check_bounds(&tags, &metadata)?;
    let version = present.version + u32::from(changed);
    let (modified_at, indexed_at, mode) = if changed {
        (document.modified_at.nanos(), put.now.micros(), document.mode)
    } else {
        (present.modified_at, present.indexed_at, present.mode)
    };
    let mut update = turn.connection.prepare_cached(
        "UPDATE documents SET resource_id = ?2, extension = ?3, mime = ?4, is_text = ?5, blob = ?6, size = ?7,
             version = ?8, modified_at = ?9, indexed_at = ?10, mode = ?11, stat = ?12, tags = ?13, metadata = ?14,
             checked_at = ?15
         WHERE id = ?1",
    )?;
    update.execute(params![
        present.row,
        resource_id,
        document.extension,
        document.mime,
        document.is_text,
        blob,
        document.size,
        version,
        modified_at,
        indexed_at,
        mode,
        document.stat,
        to_json(&tags)?,
        to_json(&metadata)?,
        put.now.micros(),
    ])?;
    insert_tags(turn, present.row, &document.tags)?;
    if changed {
        insert_version(turn, present.row, version, blob, (document.modified_at, document.mode), put.now)?;
        let hashes = (Some(present.hash), Some(document.hash));
        record_document(
            turn,
            put,
            place,
            Operation::Replace,
            (present.id, present.row),
            &document.path,
            hashes,
        )?;
    } else {
        let hashes = (Some(present.hash), Some(present.hash));
        // The same bytes under another type have another text.
        let is_retyped = document.mime != present.mime;
        record_document(
            turn,
            put,
            place,
            if is_retyped { Operation::Retitle } else { Operation::Update },
            (present.id, present.row),
            &document.path,
            hashes,
        )?;
    }
    Ok(if changed { PutState::Updated } else { PutState::Unchanged })
}

/// The bounds hold for what a document has in the end, not just for what one call adds.
pub(super) fn check_bounds(tags: &BTreeSet<String>, metadata: &Metadata) -> Result<()> {
    if tags.len() > bounds::TAGS_PER_DOCUMENT {
        return Err(Error::OverBound { what: "tags", limit: format!("{} tags", bounds::TAGS_PER_DOCUMENT) });
    }
    if to_json(metadata)?.len() > bounds::METADATA_BYTES {
        return Err(Error::OverBound {
            what: "metadata",
            limit: format!("{} bytes of JSON", bounds::METADATA_BYTES),
        });
    }
    Ok(())
}

pub(super) fn insert_version(
    turn: &Turn<'_>,
    row: i64,
    number: u32,
    blob: i64,
    (modified_at, mode): (Moment, u32),
    now: Moment,
) -> Result<()> {
    let mut insert = turn.connection.prepare_cached(
        "INSERT INTO versions (document, number, blob, modified_at, indexed_at, mode) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    insert.execute(params![row, number, blob, modified_at.nanos(), now.micros(), mode])?;
    Ok(())
}

fn insert_tags(turn: &Turn<'_>, row: i64, tags: &BTreeSet<String>) -> Result<()> {
    let mut insert = turn
        .connection
        .prepare_cached("INSERT INTO tags (tag, document) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?;
    for tag in tags {
        insert.execute(params![tag, row])?;
    }
    Ok(())
}

fn record_document(
    turn: &Turn<'_>,
    put: &Put,
    place: &Place,
    operation: Operation,
    (id, row): (DocumentId, i64),
    path: &str,
    (previous, new): (Option<Digest>, Option<Digest>),
) -> Result<()> {
    let mut record = Turn::blank(&put.actor, put.now, operation);
    record.collection = Some(place.id);
    record.document = Some(id);
    record.path = path.to_owned();
    record.previous = previous;
    record.new = new;
    record.state = state::of_document(turn.connection, row)?;
    turn.record(record)?;
    Ok(())
}

fn make_snapshot(turn: &Turn<'_>, put: &Put, place: &Place, draft: &SnapshotDraft) -> Result<Snapshot> {
    ensure_blob(turn, &draft.listing, draft.listing_size, &draft.listing_manifest)?;
    let at = free_moment(turn, put.now.micros())?;
    let mut insert = turn.connection.prepare_cached(
        "INSERT INTO snapshots (at, collection, label, root, listing, merkle, files, bytes, git_commit, git_branch)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    insert.execute(params![
        at,
        place.row,
        draft.label,
        draft.root,
        draft.listing.as_bytes(),
        draft.merkle.as_bytes(),
        draft.files,
        draft.bytes,
        draft.git_commit,
        draft.git_branch,
    ])?;
    let at = Moment::from_micros(at);
    let mut record = Turn::blank(&put.actor, put.now, Operation::Snapshot);
    record.collection = Some(place.id);
    record.path = at.with_micros();
    record.new = Some(draft.listing);
    record.state = state::of_snapshot(turn.connection, at.micros())?;
    turn.record(record)?;
    let mut find = turn.connection.prepare_cached("SELECT name FROM collections WHERE id = ?1")?;
    let name = find.query_row(params![place.row], |row| row.get(0))?;
    Ok(Snapshot { at, collection: place.id, collection_name: name, draft: draft.clone() })
}

/// The id of a snapshot made now: after the newest, unless that one was made by a clock that ran far ahead.
fn free_moment(turn: &Turn<'_>, now: i64) -> Result<i64> {
    const SKEW: i64 = 2_000_000;
    let mut last = turn.connection.prepare_cached("SELECT MAX(at) FROM snapshots")?;
    let newest: Option<i64> = last.query_row(params![], |row| row.get(0))?;
    match newest {
        Some(newest) if newest >= now && newest - now < SKEW => return Ok(newest + 1),
        Some(newest) if newest >= now => {}
        _ => return Ok(now),
    }
    let mut is_taken = turn.connection.prepare_cached("SELECT 1 FROM snapshots WHERE at = ?1")?;
    let mut at = now;
    while is_taken.exists(params![at])? {
        at += 1;
    }
    Ok(at)
}

pub(super) fn update(
    turn: &Turn<'_>,
    actor: &Actor,
    scope: &Scope,
    id: DocumentId,
    update: &Update,
    now: Moment,
) -> Result<Option<Vec<TagChange>>> {
    if documents::by_id(turn.connection, scope, id)?.is_none() {
        return Ok(None);
    }
    let find = format!("{PRESENT} WHERE d.uuid = ?1 AND d.deleted_at IS NULL");
    let Some(present) = read_present(turn.connection, &find, params![id.as_bytes()])? else {
        return Ok(None);
    };
    books::must_be_open(turn, "SELECT collection FROM documents WHERE id = ?1", present.row)?;
    let (metadata, tags, changes) = apply(&present, update);
    check_bounds(&tags, &metadata)?;
    if changes.is_empty() {
        return Ok(Some(changes));
    }
    let mut write =
        turn.connection.prepare_cached("UPDATE documents SET tags = ?2, metadata = ?3 WHERE id = ?1")?;
    write.execute(params![present.row, to_json(&tags)?, to_json(&metadata)?])?;
    turn.connection.execute("DELETE FROM tags WHERE document = ?1", params![present.row])?;
    insert_tags(turn, present.row, &tags)?;
    let (path, collection) = turn.connection.query_row(
        "SELECT d.path, c.uuid FROM documents d JOIN collections c ON c.id = d.collection WHERE d.id = ?1",
        params![present.row],
        |row| Ok((row.get::<String>(0)?, row.get::<Vec<u8>>(1)?)),
    )?;
    let mut record = Turn::blank(actor, now, Operation::Update);
    record.collection = CollectionId::from_slice(&collection);
    record.document = Some(id);
    record.path = path;
    record.previous = Some(present.hash);
    record.new = Some(present.hash);
    record.state = state::of_document(turn.connection, present.row)?;
    turn.record(record)?;
    Ok(Some(changes))
}

fn apply(present: &Present, update: &Update) -> (Metadata, BTreeSet<String>, Vec<TagChange>) {
    let mut metadata = present.metadata.clone();
    let mut tags = present.tags.clone();
    let mut changes = Vec::new();
    for (key, new) in &update.set {
        let old: Option<Value> = metadata.insert(key.clone(), new.clone());
        if old.as_ref() != Some(new) {
            changes.push(TagChange::Metadata { key: key.clone(), old, new: new.clone() });
        }
    }
    changes
        .extend(update.remove_tags.iter().filter(|tag| tags.remove(*tag)).cloned().map(TagChange::Removed));
    changes.extend(
        update.add_tags.iter().filter(|tag| tags.insert((*tag).clone())).cloned().map(TagChange::Added),
    );
    (metadata, tags, changes)
}

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
        let find = format!(
            "SELECT d.id, d.path, b.hash, c.uuid FROM {} WHERE {}",
            super::rows::FROM,
            conditions.sql()
        );
        let mut query = turn.connection.prepare_cached(&find)?;
        let found = collect(query.query(&conditions.parameters())?, |row| {
            Ok((
                row.get::<i64>(0)?,
                row.get::<String>(1)?,
                digest(row, 2)?,
                super::rows::collection_id(row, 3)?,
            ))
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
