//! The state of a document or snapshot: one hash over everything that the catalog says of it, kept in the journal, so
//! that a row that was changed behind the journal's back is noticed.

use shelf_base::{Digest, DigestWriter};

use super::{Cell, Connection, params};
use crate::Result;

/// What makes up a document. Left out is only what an add notes without changing it: `stat` and `checked_at`.
const DOCUMENT: &str = "SELECT c.uuid, d.path, d.title, d.resource_id, d.extension, d.mime, d.is_text, b.hash, d.size, \
     d.version, d.modified_at, d.indexed_at, d.created_at, d.mode, d.tags, d.metadata, d.document_type \
     FROM documents d JOIN collections c ON c.id = d.collection JOIN blobs b ON b.id = d.blob WHERE d.id = ?1";

const SNAPSHOT: &str = "SELECT c.uuid, s.at, s.label, s.root, s.listing, s.merkle, s.files, s.bytes, s.git_commit, \
     s.git_branch FROM snapshots s JOIN collections c ON c.id = s.collection WHERE s.at = ?1";

/// The state of a document by its row; `None` when it, its collection or its blob is not there.
pub(super) fn of_document(connection: Connection<'_>, row: i64) -> Result<Option<Digest>> {
    of_row(connection, "shelf-document-state-1\0", DOCUMENT, row)
}

/// The state of a snapshot by its id.
pub(super) fn of_snapshot(connection: Connection<'_>, at: i64) -> Result<Option<Digest>> {
    of_row(connection, "shelf-snapshot-state-1\0", SNAPSHOT, at)
}

fn of_row(connection: Connection<'_>, domain: &str, sql: &str, key: i64) -> Result<Option<Digest>> {
    let mut query = connection.prepare_cached(sql)?;
    let mut rows = query.query(params![key])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let mut writer = DigestWriter::new();
    writer.update(domain.as_bytes());
    for at in 0..row.cells() {
        let (kind, bytes): (u8, &[u8]) = match row.cell(at)? {
            Cell::Null => (0, &[]),
            Cell::Integer(number) => {
                writer.update(&[1]);
                writer.update(&number.to_le_bytes());
                continue;
            }
            Cell::Text(text) => (2, text),
            Cell::Blob(bytes) => (3, bytes),
        };
        writer.update(&[kind]);
        writer.update(&(bytes.len() as u64).to_le_bytes());
        writer.update(bytes);
    }
    Ok(Some(writer.finish()))
}
