//! The state of a document or snapshot: one hash over everything that the catalog says of it, kept in the journal, so
//! that a row that was changed behind the journal's back is noticed.

use shelf_base::{Digest, DigestWriter, Moment, ids::CollectionId};

use super::{Cell, Connection, params};
use crate::{Result, SnapshotDraft};

const OF_DOCUMENT: &str = "shelf-document-state-1\0";
const OF_SNAPSHOT: &str = "shelf-snapshot-state-1\0";

/// What makes up a document. Left out is only what an add notes without changing it: `stat` and `checked_at`.
const DOCUMENT: &str = "SELECT c.uuid, d.path, d.title, d.resource_id, d.extension, d.mime, d.is_text, b.hash, d.size, \
     d.version, d.modified_at, d.indexed_at, d.created_at, d.mode, d.tags, d.metadata, d.document_type \
     FROM documents d JOIN collections c ON c.id = d.collection JOIN blobs b ON b.id = d.blob WHERE d.id = ?1";

const SNAPSHOT: &str = "SELECT c.uuid, s.at, s.label, s.root, s.listing, s.merkle, s.files, s.bytes, s.git_commit, \
     s.git_branch FROM snapshots s JOIN collections c ON c.id = s.collection WHERE s.at = ?1";

/// The state of a document by its row; `None` when it, its collection or its blob is not there.
pub(super) fn of_document(connection: Connection<'_>, row: i64) -> Result<Option<Digest>> {
    of_row(connection, OF_DOCUMENT, DOCUMENT, row)
}

/// The state of a snapshot by its id.
pub(super) fn of_snapshot(connection: Connection<'_>, at: i64) -> Result<Option<Digest>> {
    of_row(connection, OF_SNAPSHOT, SNAPSHOT, at)
}

fn of_row(connection: Connection<'_>, domain: &str, sql: &str, key: i64) -> Result<Option<Digest>> {
    let mut query = connection.prepare_cached(sql)?;
    let mut rows = query.query(params![key])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let mut state = State::new(domain);
    for at in 0..row.cells() {
        state.add(row.cell(at)?);
    }
    Ok(Some(state.finish()))
}

/// A document as it was just written, by the columns of [`DOCUMENT`].
pub(super) struct DocumentState<'d> {
    pub collection: CollectionId,
    pub path: &'d str,
    pub title: &'d str,
    pub resource_id: Option<&'d str>,
    pub extension: &'d str,
    pub mime: &'d str,
    pub is_text: bool,
    pub hash: Digest,
    pub size: u64,
    pub version: u32,
    pub modified_at: i64,
    pub indexed_at: i64,
    pub created_at: i64,
    pub mode: u32,
    pub tags: &'d str,
    pub metadata: &'d str,
    pub document_type: Option<&'d str>,
}

impl DocumentState<'_> {
    /// What [`of_document`] says of the row, without asking the database for what it was just given.
    pub(super) fn digest(&self) -> Digest {
        let mut state = State::new(OF_DOCUMENT);
        state.add(Cell::Blob(self.collection.as_bytes()));
        state.add(text(self.path));
        state.add(text(self.title));
        state.add(optional(self.resource_id));
        state.add(text(self.extension));
        state.add(text(self.mime));
        state.add(Cell::Integer(i64::from(self.is_text)));
        state.add(Cell::Blob(self.hash.as_bytes()));
        state.add(number(self.size));
        state.add(Cell::Integer(i64::from(self.version)));
        state.add(Cell::Integer(self.modified_at));
        state.add(Cell::Integer(self.indexed_at));
        state.add(Cell::Integer(self.created_at));
        state.add(Cell::Integer(i64::from(self.mode)));
        state.add(text(self.tags));
        state.add(text(self.metadata));
        state.add(optional(self.document_type));
        state.finish()
    }
}

/// What [`of_snapshot`] says of a snapshot that was just written.
pub(super) fn of_new_snapshot(collection: CollectionId, at: Moment, draft: &SnapshotDraft) -> Digest {
    let mut state = State::new(OF_SNAPSHOT);
    state.add(Cell::Blob(collection.as_bytes()));
    state.add(Cell::Integer(at.micros()));
    state.add(optional(draft.label.as_deref()));
    state.add(text(&draft.root));
    state.add(Cell::Blob(draft.listing.as_bytes()));
    state.add(Cell::Blob(draft.merkle.as_bytes()));
    state.add(number(draft.files));
    state.add(number(draft.bytes));
    state.add(optional(draft.git_commit.as_deref()));
    state.add(optional(draft.git_branch.as_deref()));
    state.finish()
}

const fn text(text: &str) -> Cell<'_> {
    Cell::Text(text.as_bytes())
}

fn optional(value: Option<&str>) -> Cell<'_> {
    value.map_or(Cell::Null, text)
}

/// A number as it is stored.
fn number(number: u64) -> Cell<'static> {
    Cell::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

/// A hash over the columns of a row.
struct State(DigestWriter);

impl State {
    fn new(domain: &str) -> Self {
        let mut writer = DigestWriter::new();
        writer.update(domain.as_bytes());
        Self(writer)
    }

    fn add(&mut self, cell: Cell<'_>) {
        let (kind, bytes): (u8, &[u8]) = match cell {
            Cell::Null => (0, &[]),
            Cell::Integer(number) => {
                self.0.update(&[1]);
                self.0.update(&number.to_le_bytes());
                return;
            }
            Cell::Text(text) => (2, text),
            Cell::Blob(bytes) => (3, bytes),
        };
        self.0.update(&[kind]);
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn finish(self) -> Digest {
        self.0.finish()
    }
}
