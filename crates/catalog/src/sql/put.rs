//! Writes: documents, versions, snapshots, changes and deletions, each with its journal record.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value;
use shelf_base::{
    Digest, Moment, bounds,
    ids::{AccountId, CollectionId, DocumentId},
};

use super::{
    Connection, Row, Value as SqlValue, account_blocks,
    blobs::{self, Blob},
    books, documents, fences, params, read,
    rows::{collect, digest},
    snapshots,
    state::{self, DocumentState},
    turn::Turn,
};
use crate::{
    Actor, BookStatus, Collection, CollectionKind, Error, Expected, Metadata, Operation, Put, PutDocument,
    PutResult, PutState, Result, Scope, Shelf, Snapshot, TagChange, Update,
};

/// Documents of one transaction that are many, and those that are looked up at once.
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
    pub name: String,
    pub is_book: bool,
    pub status: BookStatus,
}

const PLACE: &str = "SELECT c.uuid, c.id, c.account, c.name, c.kind = 'book', c.status FROM collections c";

fn read_place(row: &Row<'_>) -> Result<Place> {
    Ok(Place {
        id: super::rows::collection_id(row, 0)?,
        row: row.get(1)?,
        account: row.get(2)?,
        name: row.get(3)?,
        is_book: row.get(4)?,
        status: BookStatus::from_word(&row.get::<String>(5)?).ok_or(Error::Unreadable("a book's status"))?,
    })
}

pub(super) fn place(turn: &Turn<'_>, id: CollectionId) -> Result<Place> {
    let find = format!("{PLACE} WHERE c.uuid = ?1 AND c.deleted_at IS NULL");
    let found = turn.connection.prepare_cached(&find)?.first(params![id.as_bytes()], read_place)?;
    found.ok_or(Error::NoCollection)
}

fn named_place(turn: &Turn<'_>, owner: AccountId, name: &str) -> Result<Option<Place>> {
    let find = format!(
        "{PLACE} WHERE c.account = (SELECT id FROM accounts WHERE uuid = ?1) AND c.name = ?2 AND c.deleted_at IS NULL"
    );
    turn.connection.prepare_cached(&find)?.first(params![owner.as_bytes(), name], read_place)
}

/// The collection of a put, made in the same transaction when it is not there: a put that fails leaves none behind.
pub(super) fn shelf(turn: &Turn<'_>, put: &Put) -> Result<Place> {
    let owner = put.actor.account;
    let made = match &put.collection {
        Shelf::Known(id) => return place(turn, *id),
        Shelf::Named(name) => match named_place(turn, owner, name)? {
            Some(found) => return Ok(found),
            None => make_collection(turn, &put.actor, name, put.now)?,
        },
        Shelf::Book(name) => match named_place(turn, owner, name)? {
            Some(found) if found.is_book => return Ok(found),
            Some(_) => return Err(books::not_a_book(name)),
            None => books::make(turn, &put.actor, name, put.now)?,
        },
    };
    place(turn, made.id)
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
    blobs::keep_loose(turn, &put.loose)?;
    let results = put_documents(turn, put, &place)?;
    let snapshot =
        put.snapshot.as_ref().map(|draft| snapshots::make(turn, put, &place, draft)).transpose()?;
    Ok((results, snapshot))
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
    path: String,
    title: String,
    created_at: i64,
    document_type: Option<String>,
}

/// Writes the documents of a put.
///
/// What they need to know is asked for many documents at once where the database is far away, and for one after the other where
/// it is in this process.
fn put_documents(turn: &Turn<'_>, put: &Put, place: &Place) -> Result<Vec<PutResult>> {
    let mut results = Vec::with_capacity(put.documents.len());
    let mut rest = &put.documents[..];
    while !rest.is_empty() {
        let count = match turn.connection {
            Connection::Sqlite(_) => 1,
            Connection::Postgres(_) => different_paths(rest),
        };
        let (now, later) = rest.split_at(count);
        put_at_once(turn, put, place, now, &mut results)?;
        rest = later;
    }
    Ok(results)
}

/// How many of the first documents have different paths, up to a bound.
fn different_paths(documents: &[PutDocument]) -> usize {
    let mut seen = HashSet::new();
    documents.iter().take(MANY).take_while(|document| seen.insert(&document.path)).count()
}

/// Writes documents with different paths.
fn put_at_once(
    turn: &Turn<'_>,
    put: &Put,
    place: &Place,
    documents: &[PutDocument],
    results: &mut Vec<PutResult>,
) -> Result<()> {
    for document in documents {
        books::must_take(place, &document.path)?;
    }
    let wanted: Vec<Blob<'_>> = documents.iter().map(Blob::of).collect();
    let blobs = blobs::ensure(turn, &wanted)?;
    let counted =
        account_blocks::add(turn, place.account, documents.iter().map(|document| &document.blocks[..]))?;
    let present = present(turn, place.row, documents)?;
    let new = documents.iter().zip(&present).filter(|(_, present)| present.is_none());
    books::must_have_room(turn, place, &new.map(|(document, _)| &document.path[..]).collect::<Vec<_>>())?;
    for (((document, blob), (stored, deduplicated)), present) in
        documents.iter().zip(blobs).zip(counted).zip(present)
    {
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
        results.push(PutResult { id, state, stored, deduplicated });
    }
    Ok(())
}

/// Writes one document.
pub(super) fn put_document(
    turn: &Turn<'_>,
    put: &Put,
    place: &Place,
    document: &PutDocument,
) -> Result<PutResult> {
    let mut results = Vec::with_capacity(1);
    put_at_once(turn, put, place, std::slice::from_ref(document), &mut results)?;
    results.pop().ok_or(Error::Unreadable("a document to store"))
}

const PRESENT: &str =
    "SELECT d.id, d.uuid, d.blob, b.hash, d.version, d.tags, d.metadata, d.resource_id, d.mime,
         d.modified_at, d.indexed_at, d.mode, d.path, d.title, d.created_at, d.document_type
     FROM documents d JOIN blobs b ON b.id = d.blob";

/// What is stored at the paths of documents.
fn present(turn: &Turn<'_>, collection: i64, documents: &[PutDocument]) -> Result<Vec<Option<Present>>> {
    if let Connection::Postgres(_) = turn.connection {
        let find = format!(
            "{PRESENT} WHERE d.collection = ?1 AND d.path = ANY (CAST(?2 AS TEXT[])) AND d.deleted_at IS NULL"
        );
        let paths: Vec<&str> = documents.iter().map(|document| &document.path[..]).collect();
        let mut query = turn.connection.prepare_cached(&find)?;
        let found = collect(query.query(params![collection, paths[..]])?, present_of)?;
        let mut found: HashMap<String, Present> =
            found.into_iter().map(|present| (present.path.clone(), present)).collect();
        return Ok(paths.iter().map(|path| found.remove(*path)).collect());
    }
    let find = format!("{PRESENT} WHERE d.collection = ?1 AND d.path = ?2 AND d.deleted_at IS NULL");
    documents
        .iter()
        .map(|document| read_present(turn.connection, &find, params![collection, document.path]))
        .collect()
}

fn read_present(connection: Connection<'_>, find: &str, values: &[SqlValue<'_>]) -> Result<Option<Present>> {
    connection.prepare_cached(find)?.first(values, present_of)
}

fn present_of(row: &Row<'_>) -> Result<Present> {
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
        path: row.get(12)?,
        title: row.get(13)?,
        created_at: row.get(14)?,
        document_type: row.get(15)?,
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

/// The number of a document counts the documents of its account; the caller has the account for itself.
const INSERT: &str =
    "INSERT INTO documents (uuid, collection, path, title, resource_id, extension, mime, is_text, blob, size, version,
         modified_at, indexed_at, created_at, checked_at, mode, stat, tags, metadata, document_type, account_number)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 1, ?11, ?12, ?12, ?12, ?13, ?14, ?15, ?16, ?17, (";

fn insert(
    turn: &Turn<'_>,
    put: &Put,
    place: &Place,
    document: &PutDocument,
    blob: i64,
) -> Result<DocumentId> {
    let id = document.id.unwrap_or_else(DocumentId::fresh);
    let now = put.now.micros();
    let (tags, metadata) = (to_json(&document.tags)?, to_json(&document.metadata)?);
    let (uuid, modified_at) = (id.as_bytes(), document.modified_at.nanos());
    let values = params![
        uuid,
        place.row,
        document.path,
        document.title,
        document.resource_id,
        document.extension,
        document.mime,
        document.is_text,
        blob,
        document.size,
        modified_at,
        now,
        document.mode,
        document.stat,
        tags,
        metadata,
        document.document_type,
        place.account,
    ];
    let row = match turn.connection {
        Connection::Sqlite(_) => {
            turn.connection
                .prepare_cached(
                    "UPDATE accounts SET documents_numbered = documents_numbered + 1 WHERE id = ?1",
                )?
                .execute(params![place.account])?;
            let number = "SELECT documents_numbered FROM accounts WHERE id = ?18";
            let row = turn.connection.insert(&format!("{INSERT}{number}))"), values)?;
            insert_version(turn, row, 1, blob, (document.modified_at, document.mode), put.now)?;
            row
        }
        // One way to the database and back, instead of three.
        Connection::Postgres(_) => {
            let insert = format!(
                "WITH counted AS (UPDATE accounts SET documents_numbered = documents_numbered + 1 WHERE id = ?18
                                  RETURNING documents_numbered),
                      added AS ({INSERT}SELECT documents_numbered FROM counted)) RETURNING id),
                      first AS (INSERT INTO versions (document, number, blob, modified_at, indexed_at, mode)
                                SELECT added.id, 1, ?9, ?11, ?12, ?13 FROM added)
                 SELECT id FROM added"
            );
            turn.connection.query_row(&insert, values, |row| row.get(0))?
        }
    };
    insert_tags(turn, row, &document.tags)?;
    let state = DocumentState {
        collection: place.id,
        path: &document.path,
        title: &document.title,
        resource_id: document.resource_id.as_deref(),
        extension: &document.extension,
        mime: &document.mime,
        is_text: document.is_text,
        hash: document.hash,
        size: document.size,
        version: 1,
        modified_at: document.modified_at.nanos(),
        indexed_at: now,
        created_at: now,
        mode: document.mode,
        tags: &tags,
        metadata: &metadata,
        document_type: document.document_type.as_deref(),
    };
    record_document(turn, put, Operation::Add, id, &state, None)?;
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
    let (tags_json, metadata_json) = (to_json(&tags)?, to_json(&metadata)?);
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
        tags_json,
        metadata_json,
        put.now.micros(),
    ])?;
    insert_tags(turn, present.row, &document.tags)?;
    if changed {
        insert_version(turn, present.row, version, blob, (document.modified_at, document.mode), put.now)?;
    }
    let operation = match (changed, document.mime != present.mime) {
        (true, _) => Operation::Replace,
        // The same bytes under another type have another text.
        (false, true) => Operation::Retitle,
        (false, false) => Operation::Update,
    };
    let state = DocumentState {
        collection: place.id,
        path: &present.path,
        title: &present.title,
        resource_id: resource_id.as_deref(),
        extension: &document.extension,
        mime: &document.mime,
        is_text: document.is_text,
        hash: document.hash,
        size: document.size,
        version,
        modified_at,
        indexed_at,
        created_at: present.created_at,
        mode,
        tags: &tags_json,
        metadata: &metadata_json,
        document_type: present.document_type.as_deref(),
    };
    record_document(turn, put, operation, present.id, &state, Some(present.hash))?;
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

pub(super) fn insert_tags(turn: &Turn<'_>, row: i64, tags: &BTreeSet<String>) -> Result<()> {
    let mut insert = turn
        .connection
        .prepare_cached("INSERT INTO tags (tag, document) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?;
    for tag in tags {
        insert.execute(params![tag, row])?;
    }
    Ok(())
}

/// Records what a put made of a document.
fn record_document(
    turn: &Turn<'_>,
    put: &Put,
    operation: Operation,
    id: DocumentId,
    state: &DocumentState<'_>,
    previous: Option<Digest>,
) -> Result<()> {
    let mut record = Turn::blank(&put.actor, put.now, operation);
    record.collection = Some(state.collection);
    record.document = Some(id);
    record.path = state.path.to_owned();
    record.previous = previous;
    record.new = Some(state.hash);
    record.state = Some(state.digest());
    turn.record(record)
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
