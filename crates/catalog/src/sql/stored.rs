//! Documents that have a title and an author's type: stored once, changed as a whole.

use shelf_base::{
    Digest, Moment,
    ids::{CollectionId, DocumentId},
};

use super::{
    account_blocks,
    blobs::{self, Blob},
    books, documents, fences, params,
    put::{self, Place},
    rows::{self, Conditions},
    state,
    turn::Turn,
};
use crate::{
    Actor, Document, DocumentChange, Error, NewContent, Operation, Put, PutDocument, PutState, Result, Scope,
};

pub(super) fn store(turn: &Turn<'_>, put: &Put) -> Result<(DocumentId, PutState)> {
    let document = put.documents.first().ok_or(Error::Unreadable("a document to store"))?;
    fences::check(turn, put.fence.as_ref())?;
    let place = put::shelf(turn, put)?;
    blobs::keep_loose(turn, &put.loose)?;
    if let Some(id) = same(turn, &place, document)? {
        // Nothing changes, but what had been damaged of the content is whole again.
        blobs::ensure(turn, &[Blob::of(document)])?;
        return Ok((id, PutState::Unchanged));
    }
    let result = put::put_document(turn, put, &place, document)?;
    Ok((result.id, result.state))
}

/// The live document with this title and content.
fn same(turn: &Turn<'_>, place: &Place, document: &PutDocument) -> Result<Option<DocumentId>> {
    let mut find = turn.connection.prepare_cached(
        "SELECT d.uuid FROM blobs b JOIN versions v ON v.blob = b.id JOIN documents d ON d.id = v.document
         WHERE b.hash = ?1 AND d.blob = b.id AND d.collection = ?2 AND d.title = ?3 AND d.deleted_at IS NULL
               AND d.document_type IS NOT NULL
         ORDER BY d.id LIMIT 1",
    )?;
    find.first(params![document.hash.as_bytes(), place.row, document.title], |row| rows::document_id(row, 0))
}

/// What of a document a change needs.
struct Present {
    row: i64,
    version: u32,
    hash: Digest,
    collection: CollectionId,
    path: String,
    title: String,
    mime: String,
    document_type: Option<String>,
    metadata: String,
}

fn present(turn: &Turn<'_>, scope: &Scope, id: DocumentId) -> Result<Option<Present>> {
    let mut conditions = Conditions::live(turn.connection, scope, None)?;
    conditions.add("d.uuid = ?", id.as_bytes().to_vec());
    let sql = format!(
        "SELECT d.id, d.version, b.hash, c.uuid, d.path, d.title, d.mime, d.document_type, d.metadata FROM {} WHERE {}",
        rows::FROM,
        conditions.sql()
    );
    let mut query = turn.connection.prepare_cached(&sql)?;
    let found = rows::collect(query.query(&conditions.parameters())?, |row| {
        Ok(Present {
            row: row.get(0)?,
            version: row.get(1)?,
            hash: rows::digest(row, 2)?,
            collection: rows::collection_id(row, 3)?,
            path: row.get(4)?,
            title: row.get(5)?,
            mime: row.get(6)?,
            document_type: row.get(7)?,
            metadata: row.get(8)?,
        })
    })?;
    Ok(found.into_iter().next())
}

pub(super) fn change(
    turn: &Turn<'_>,
    actor: &Actor,
    scope: &Scope,
    id: DocumentId,
    change: &DocumentChange,
    now: Moment,
) -> Result<Option<Document>> {
    fences::check(turn, change.content.as_ref().and_then(|content| content.fence.as_ref()))?;
    let Some(present) = present(turn, scope, id)? else { return Ok(None) };
    if change.expected.is_some_and(|expected| expected != present.hash) {
        return Err(Error::ContentChanged { current: Some(present.hash) });
    }
    books::must_be_open(turn, "SELECT collection FROM documents WHERE id = ?1", present.row)?;
    let content = change.content.as_ref().filter(|content| content.hash != present.hash);
    let title = change.title.as_ref().filter(|title| **title != present.title);
    let kind = change.r#type.as_ref().filter(|kind| {
        kind.mime != present.mime || Some(&kind.document_type) != present.document_type.as_ref()
    });
    let metadata = change.metadata.as_ref().map(put::to_json).transpose()?;
    let metadata = metadata.filter(|metadata| *metadata != present.metadata);
    match (content, &change.content) {
        (Some(content), _) => replace_content(turn, &present, content, now)?,
        (None, Some(again)) => {
            blobs::keep_loose(turn, &again.loose)?;
            blobs::ensure(turn, &[blob_of(again)])?;
        }
        (None, None) => {}
    }
    if let Some(title) = title {
        turn.connection
            .execute("UPDATE documents SET title = ?2 WHERE id = ?1", params![present.row, title])?;
    }
    if let Some(kind) = kind {
        turn.connection.execute(
            "UPDATE documents SET document_type = ?2, extension = ?3, mime = ?4, is_text = ?5 WHERE id = ?1",
            params![present.row, kind.document_type, kind.extension, kind.mime, kind.is_text],
        )?;
    }
    if let Some(metadata) = &metadata {
        turn.connection
            .execute("UPDATE documents SET metadata = ?2 WHERE id = ?1", params![present.row, metadata])?;
    }
    let operation = match (content, title.is_some() || kind.is_some(), metadata) {
        (Some(_), ..) => Some(Operation::Replace),
        (None, true, _) => Some(Operation::Retitle),
        (None, false, Some(_)) => Some(Operation::Update),
        (None, false, None) => None,
    };
    if let Some(operation) = operation {
        let mut record = Turn::blank(actor, now, operation);
        record.collection = Some(present.collection);
        record.document = Some(id);
        record.path = present.path;
        record.previous = Some(present.hash);
        record.new = Some(content.map_or(present.hash, |content| content.hash));
        record.state = state::of_document(turn.connection, present.row)?;
        turn.record(record)?;
    }
    documents::by_id(turn.connection, scope, id)
}

const fn blob_of(content: &NewContent) -> Blob<'_> {
    Blob { hash: &content.hash, size: content.size, manifest: content.manifest.as_slice() }
}

fn replace_content(turn: &Turn<'_>, present: &Present, content: &NewContent, now: Moment) -> Result<()> {
    blobs::keep_loose(turn, &content.loose)?;
    let place = put::place(turn, present.collection)?;
    let blob = blobs::ensure(turn, &[blob_of(content)])?[0];
    account_blocks::add(turn, place.account, std::iter::once(&content.blocks[..]))?;
    let version = present.version + 1;
    turn.connection.execute(
        "UPDATE documents SET blob = ?2, size = ?3, version = ?4, modified_at = ?5, indexed_at = ?6, checked_at = ?6,
             stat = NULL
         WHERE id = ?1",
        params![present.row, blob, content.size, version, now.nanos(), now.micros()],
    )?;
    put::insert_version(turn, present.row, version, blob, (now, 0), now)
}
