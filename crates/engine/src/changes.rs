//! What the journal says changed, for those who want to be told: other processes write to the same journal, so following
//! it is the one way to notice every change.

use std::collections::HashSet;

use shelf_base::ids::{CollectionId, DocumentId};
use shelf_catalog::{Operation, Record};

use crate::{Library, Result};

/// Records that are read at once.
const CHUNK: usize = 1_000;
/// Records that are read for one answer; the rest is left for the next.
const MOST: usize = 20_000;

/// Documents and collections that changed up to a place in the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The last record that was looked at.
    pub position: u64,
    /// Documents that were added, changed or deleted.
    pub documents: HashSet<DocumentId>,
    /// Collections of which something changed: the collection itself, a document or a snapshot of it.
    pub collections: HashSet<CollectionId>,
    /// The library was rebuilt, so everything may have changed.
    pub is_everything: bool,
}

impl Library {
    /// What changed after a place in the journal. After a great many records a part of them is looked at; ask again with
    /// the position of the reply.
    pub fn changes_since(&self, position: u64) -> Result<Changes> {
        let mut changes = Changes { position, ..Changes::default() };
        if self.catalog.sequence()? < position {
            changes.position = self.catalog.sequence()?;
            changes.is_everything = true;
            return Ok(changes);
        }
        for _ in 0..MOST / CHUNK {
            let records = self.catalog.journal(changes.position, CHUNK)?;
            let is_last = records.len() < CHUNK;
            records.into_iter().for_each(|record| changes.note(&record));
            if is_last {
                break;
            }
        }
        Ok(changes)
    }
}

impl Changes {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        !self.is_everything && self.documents.is_empty() && self.collections.is_empty()
    }

    fn note(&mut self, record: &Record) {
        self.position = record.sequence;
        match record.operation {
            Operation::Add
            | Operation::Replace
            | Operation::Update
            | Operation::Retitle
            | Operation::Delete
            | Operation::Snapshot
            | Operation::CreateCollection
            | Operation::RenameCollection
            | Operation::DeleteCollection
            | Operation::SetBook
            | Operation::SetMap
            | Operation::DropSnapshot => {
                self.documents.extend(record.document);
                self.collections.extend(record.collection);
            }
            Operation::Recover => self.is_everything = true,
            Operation::SetModel
            | Operation::CreateAccount
            | Operation::UpdateAccount
            | Operation::DeleteAccount
            | Operation::RevokeSession
            | Operation::CreateToken
            | Operation::RevokeToken
            | Operation::RotateToken
            | Operation::Collect => {}
        }
    }
}
