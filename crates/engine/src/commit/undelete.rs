//! Bringing back deleted documents, and content that the library still holds though nothing live refers to it.

use std::collections::BTreeSet;

use shelf_base::{Digest, ids::DocumentId};
use shelf_blocks::{Manifest, cut::Cut};
use shelf_catalog::{Actor, Document, Metadata, Revival, Scope};

use super::{
    Draft, Writing,
    put::{document, entry, snapshot_of},
};
use crate::{
    Error, Listing, Result,
    ingest::{AddOptions, Facts},
};

/// Brings a deleted document back with all that the catalog knows of it.
pub(crate) struct ReviveDraft<'a> {
    pub actor: &'a Actor,
    pub scope: &'a Scope,
    pub id: DocumentId,
    pub tags: Option<&'a BTreeSet<String>>,
    pub metadata: Option<&'a Metadata>,
}

impl Draft for ReviveDraft<'_> {
    /// The document; `None` when the catalog has forgotten it.
    type Receipt = Option<Document>;

    fn write(self, writing: &mut Writing<'_>) -> Result<Self::Receipt> {
        let revival = Revival {
            tags: self.tags.cloned(),
            metadata: self.metadata.cloned(),
            fence: writing.fence.clone(),
        };
        let back = writing.catalog().revive(self.actor, self.scope, self.id, revival, writing.now())?;
        writing.touched(back.is_some().into());
        Ok(back)
    }
}

/// Stores a blob at a path without reading it.
pub(crate) struct UndeleteDraft<'a> {
    pub actor: &'a Actor,
    pub options: &'a AddOptions,
    pub path: String,
    pub hash: Digest,
    /// The beginning of the content, from which its type is told.
    pub sample: &'a [u8],
}

/// What became of it.
pub(crate) enum Revived {
    /// It is there, under this id.
    Stored(DocumentId),
    /// The content was freed in the meantime.
    Gone,
}

impl Draft for UndeleteDraft<'_> {
    type Receipt = Revived;

    fn write(self, writing: &mut Writing<'_>) -> Result<Revived> {
        // The writers' lock is held: from here on nothing frees what this refers to.
        let Some(row) = writing.catalog().blob(&self.hash)? else { return Ok(Revived::Gone) };
        let cut = Cut { hash: self.hash, size: row.size, manifest: Manifest::decode(&row.manifest)? };
        let facts = Facts::of_content(row.size, writing.now());
        let document = document(self.options, self.path.clone(), &cut, self.sample, &facts);
        let listing = Listing::new([entry(&document.path, &document)]);
        let snapshot = snapshot_of(writing, &listing, "/", None, || Ok(None))?;
        let put = writing.transaction(self.actor, self.options.shelf(), vec![document], Some(snapshot));
        let (mut results, _) = writing.put(put)?;
        let result = results.pop().ok_or_else(|| Error::missing("document", self.path))?;
        Ok(Revived::Stored(result.id))
    }
}
