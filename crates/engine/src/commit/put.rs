//! Drafts of single documents, and of snapshots.

use shelf_base::{Digest, ids::DocumentId};
use shelf_blocks::cut::Cut;
use shelf_catalog::{
    Actor, Metadata, PutDocument, PutResult, PutState, Shelf, Snapshot, SnapshotDraft, StoredListing,
};
use shelf_reading::{detect, extension_of};

use super::{Content, Draft, Writing};
use crate::{
    Caller, Entry, Error, Library, Listing, Result,
    ingest::{AddOptions, Facts},
};

/// Bytes of a listing that lies with its snapshot: those of a single document or two.
const INLINE_LISTING: usize = 512;

/// Adds one document at a path, in place of what is there, and makes a snapshot of it.
pub(crate) struct AddDraft<'a> {
    pub actor: &'a Actor,
    pub options: &'a AddOptions,
    pub file: AddedFile<'a>,
    /// What belongs to it and is stored with it: the subtitles of a recording.
    pub beside: Vec<AddedFile<'a>>,
}

/// A file and its content.
pub(crate) struct AddedFile<'a> {
    pub path: String,
    pub facts: Facts,
    pub content: Content<'a>,
}

/// What became of an added document.
pub(crate) struct Added {
    pub hash: Digest,
    pub result: PutResult,
    /// What became of the files that belong to it.
    pub beside: Vec<PutResult>,
    pub snapshot: Option<Snapshot>,
}

impl Draft for AddDraft<'_> {
    type Receipt = Added;

    fn write(self, writing: &mut Writing<'_>) -> Result<Added> {
        let Self { actor, options, file, beside } = self;
        let mut documents = Vec::with_capacity(1 + beside.len());
        let mut store = |options: &AddOptions, file: AddedFile<'_>| -> Result<PutDocument> {
            let stored = writing.store(file.content)?;
            Ok(document(options, file.path, &stored.cut, &stored.sample, &file.facts))
        };
        // Tags and metadata are given to all of them, an id and a type to the one that was asked for.
        let (tags, metadata) = (options.tags.clone(), options.metadata.clone());
        let shared = AddOptions { tags, metadata, ..AddOptions::default() };
        for one in beside {
            documents.push(store(&shared, one)?);
        }
        let main = store(options, file)?;
        let (hash, path) = (main.hash, main.path.clone());
        documents.push(main);
        let listing = Listing::new(documents.iter().map(|document| entry(&document.path, document)));
        let snapshot = snapshot_of(writing, &listing, "/", options.label.clone(), || Ok(None))?;
        let put = writing.transaction(actor, options.shelf(), documents, Some(snapshot));
        let (mut beside, snapshot) = writing.put(put)?;
        let result = beside.pop().ok_or_else(|| Error::missing("document", path))?;
        Ok(Added { hash, result, beside, snapshot })
    }
}

/// The type of a document as its author gives it.
#[derive(Clone, Debug)]
pub(crate) struct Typed {
    pub word: String,
    pub extension: String,
    pub mime: String,
    pub is_text: bool,
}

/// Stores a document with a title, unless the collection has one with this title and content.
pub(crate) struct StoreDraft<'a> {
    pub actor: &'a Actor,
    pub collection: Shelf,
    pub id: DocumentId,
    pub path: String,
    pub title: &'a str,
    pub r#type: Typed,
    pub metadata: &'a Metadata,
    pub content: Content<'a>,
}

impl Draft for StoreDraft<'_> {
    /// The document, and whether it was there already.
    type Receipt = (DocumentId, PutState);

    fn write(self, writing: &mut Writing<'_>) -> Result<Self::Receipt> {
        let cut = writing.store(self.content)?.cut;
        let document = PutDocument {
            id: Some(self.id),
            path: self.path,
            title: self.title.to_owned(),
            extension: self.r#type.extension,
            mime: self.r#type.mime,
            is_text: self.r#type.is_text,
            hash: cut.hash,
            size: cut.size,
            manifest: cut.manifest.encode(),
            blocks: blocks(&cut),
            modified_at: writing.now(),
            mode: 0,
            stat: None,
            tags: std::collections::BTreeSet::new(),
            metadata: self.metadata.clone(),
            resource_id: None,
            document_type: Some(self.r#type.word),
            expected: shelf_catalog::Expected::Anything,
        };
        let put = writing.transaction(self.actor, self.collection, vec![document], None);
        let stored = writing.begun(writing.catalog().store(put))?;
        writing.touched(1);
        Ok(stored)
    }
}

/// Makes a snapshot of a whole collection as it is now.
pub(crate) struct SnapshotCollectionDraft<'a> {
    pub caller: &'a Caller,
    pub name: &'a str,
    pub label: Option<&'a str>,
}

impl Draft for SnapshotCollectionDraft<'_> {
    type Receipt = Snapshot;

    fn write(self, writing: &mut Writing<'_>) -> Result<Snapshot> {
        let missing = || Error::missing("collection", self.name);
        let library: &Library = writing.library;
        let collection = library.catalog.collection(self.caller.pass.scope(), self.name)?;
        let id = collection.ok_or_else(missing)?.id;
        let collection = Shelf::Known(id);
        let listing = library.present_listing(self.caller, self.name)?;
        writing.call.check()?;
        let earlier = || Ok(library.catalog.newest_listing(id, "/")?);
        let snapshot = snapshot_of(writing, &listing, "/", self.label.map(str::to_owned), earlier)?;
        let put = writing.transaction(self.caller.pass.actor(), collection, Vec::new(), Some(snapshot));
        writing.put(put)?.1.ok_or_else(missing)
    }
}

/// Stores the content of a file of a book and describes the document.
pub(crate) fn book_document(
    writing: &mut Writing<'_>,
    path: &str,
    content: Content<'_>,
    facts: &Facts,
) -> Result<PutDocument> {
    let stored = writing.store(content)?;
    Ok(document(&AddOptions::default(), path.to_owned(), &stored.cut, &stored.sample, facts))
}

/// A document as the catalog takes it, from its stored content.
pub(super) fn document(
    options: &AddOptions,
    path: String,
    cut: &Cut,
    sample: &[u8],
    facts: &Facts,
) -> PutDocument {
    let detected = detect(&path, sample);
    PutDocument {
        id: None,
        document_type: None,
        expected: shelf_catalog::Expected::Anything,
        title: path.rsplit('/').next().unwrap_or(&path).to_owned(),
        extension: extension_of(&path),
        mime: options.mime.clone().unwrap_or(detected.mime),
        is_text: detected.is_text,
        hash: cut.hash,
        size: cut.size,
        manifest: cut.manifest.encode(),
        blocks: blocks(cut),
        modified_at: facts.modified_at,
        mode: facts.mode,
        stat: facts.stat,
        tags: options.tags.clone(),
        metadata: options.metadata.clone(),
        resource_id: options.resource_id.clone(),
        path,
    }
}

/// Short names of the blocks and what of each is used, for the account's own accounting.
pub(super) fn blocks(cut: &Cut) -> Vec<(i64, u32)> {
    cut.manifest.pieces.iter().map(|piece| (piece.block.id.short(), piece.length)).collect()
}

/// The entry of a snapshot for a document.
pub(super) fn entry(relative: &str, document: &PutDocument) -> Entry {
    Entry {
        path: relative.to_owned(),
        hash: document.hash,
        size: document.size,
        mode: document.mode,
        modified_at: document.modified_at,
        link: None,
    }
}

/// Stores a listing and describes the snapshot of it. `earlier` gives the listing of an earlier snapshot of the same files, if
/// there is one.
pub(super) fn snapshot_of(
    writing: &mut Writing<'_>,
    listing: &Listing,
    root: &str,
    label: Option<String>,
    earlier: impl FnOnce() -> Result<Option<Digest>>,
) -> Result<SnapshotDraft> {
    let bytes = listing.encode();
    let (hash, stored) = if bytes.len() <= INLINE_LISTING {
        (Digest::of(&bytes), StoredListing::Inline(bytes))
    } else {
        let cut = writing.store_listing(&bytes, earlier()?)?;
        (cut.hash, StoredListing::Blob { manifest: cut.manifest.encode(), size: cut.size })
    };
    Ok(SnapshotDraft {
        label,
        root: root.to_owned(),
        listing: hash,
        stored,
        merkle: listing.merkle_root(),
        files: listing.files().count() as u64,
        bytes: listing.bytes(),
        git_commit: None,
        git_branch: None,
    })
}
