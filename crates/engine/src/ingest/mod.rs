//! Adding: content, a file, or a folder; each makes a snapshot.

mod folder;
mod git;
mod single;
mod source;

use std::{collections::BTreeSet, path::PathBuf};

use shelf_base::{CallContext, Digest, Moment, ids::DocumentId};
use shelf_catalog::{Collection, Metadata, PutState, Shelf};

pub(crate) use single::most_of;
pub(crate) use source::{Facts, Source};

use crate::{Caller, Error, Library, Result, validate};

/// What to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A file or folder of the machine.
    Path(PathBuf),
    /// Content under a name.
    Content {
        /// The name, which becomes the path.
        name: String,
        /// The bytes.
        bytes: Vec<u8>,
    },
}

/// A request to add.
#[derive(Clone, Debug)]
pub struct AddRequest {
    /// What.
    pub what: What,
    /// Collection; `default` when not given.
    pub collection: Option<String>,
    /// Tags to give.
    pub tags: Vec<String>,
    /// Metadata to give.
    pub metadata: Metadata,
    /// Label of the snapshot.
    pub snapshot_label: Option<String>,
    /// Whether a folder is walked below its first level.
    pub recursive: bool,
    /// Only these files of a folder.
    pub include: Vec<String>,
    /// Not these files of a folder.
    pub exclude: Vec<String>,
    /// Delete documents of the folder whose files are gone; snapshots keep them.
    pub prune: bool,
    /// Make a snapshot of a folder only if something in it changed.
    pub only_changes: bool,
    /// MIME type, when the caller knows better than the content.
    pub mime_type: Option<String>,
    /// Citation resource id.
    pub resource_id: Option<String>,
}

impl AddRequest {
    /// Adds `what` with nothing special.
    pub fn new(what: What) -> Self {
        Self {
            what,
            collection: None,
            tags: Vec::new(),
            metadata: Metadata::new(),
            snapshot_label: None,
            recursive: true,
            include: Vec::new(),
            exclude: Vec::new(),
            prune: false,
            only_changes: false,
            mime_type: None,
            resource_id: None,
        }
    }
}

/// A file that could not be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedFile {
    /// Its path.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// What an add did.
#[derive(Clone, Debug)]
pub struct AddReply {
    /// The file's hash, or the Merkle root of a folder.
    pub hash: Digest,
    /// Bytes that were new to the caller's library.
    pub bytes_stored: u64,
    /// Bytes that it had already.
    pub bytes_deduped: u64,
    /// The document, when one was added.
    pub document_id: Option<DocumentId>,
    /// The path it is known by: of the document, or of the folder.
    pub path: String,
    /// The collection.
    pub collection: String,
    /// The snapshot.
    pub snapshot: Moment,
    /// Files stored: new or changed.
    pub files_added: u64,
    /// Of those, files that were changed.
    pub files_updated: u64,
    /// Files that were there already with the same bytes.
    pub files_unchanged: u64,
    /// Documents that were deleted, because their files are gone.
    pub files_removed: u64,
    /// Symbolic links that the snapshot keeps as links.
    pub links: u64,
    /// What is no file: pipes, sockets, devices.
    pub skipped: Vec<FailedFile>,
    /// Files that could not be added.
    pub failed: Vec<FailedFile>,
}

/// The parts of a request that hold for every document of it, checked.
#[derive(Default)]
pub(crate) struct AddOptions {
    /// Name of the collection.
    pub name: String,
    /// The collection, when it is known to exist. Looking it up is left to the transaction of a single document.
    pub collection: Option<Collection>,
    pub tags: BTreeSet<String>,
    pub metadata: Metadata,
    pub mime: Option<String>,
    pub resource_id: Option<String>,
    pub label: Option<String>,
}

impl AddOptions {
    /// Where the catalog is to put documents.
    pub(crate) fn shelf(&self) -> Shelf {
        self.collection
            .as_ref()
            .map_or_else(|| Shelf::Named(self.name.clone()), |known| Shelf::Known(known.id))
    }
}

impl Library {
    /// Adds content, a file or a folder, and makes a snapshot of it.
    pub fn add(&self, caller: &Caller, request: &AddRequest, call: &CallContext) -> Result<AddReply> {
        caller.must_write()?;
        call.check()?;
        let mut options = self.options(caller, request)?;
        match &request.what {
            What::Content { name, bytes } => self.add_content(caller, &options, name, bytes, call),
            What::Path(path) => {
                let source = Source::open(self, caller.file_access, path)?;
                if source.is_folder() {
                    if options.collection.is_none() {
                        options.collection = self.catalog.collection(caller.pass.scope(), &options.name)?;
                    }
                    self.add_folder(caller, request, &options, &source, call)
                } else {
                    self.add_file(caller, &options, &source, call)
                }
            }
        }
    }

    fn options(&self, caller: &Caller, request: &AddRequest) -> Result<AddOptions> {
        let tags = validate::tags(&request.tags)?;
        validate::metadata(&request.metadata)?;
        request.snapshot_label.as_deref().map_or(Ok(()), validate::label)?;
        request.resource_id.as_deref().map_or(Ok(()), validate::resource_id)?;
        if let Some(mime) = &request.mime_type {
            check_mime(mime)?;
        }
        let (name, collection) = self.shelf_for_writing(caller, request.collection.as_deref())?;
        Ok(AddOptions {
            name,
            collection,
            tags,
            metadata: request.metadata.clone(),
            mime: request.mime_type.clone(),
            resource_id: request.resource_id.clone(),
            label: request.snapshot_label.clone(),
        })
    }

    /// The collection a write goes to: `default` when none is named; a token's own is never left. One that does not
    /// exist yet is made by the transaction that first writes to it.
    fn shelf_for_writing(&self, caller: &Caller, name: Option<&str>) -> Result<(String, Option<Collection>)> {
        let scope = caller.pass.scope();
        if let shelf_catalog::Scope::Collection(id) = scope {
            let own = self.catalog.known_collection(scope, *id)?;
            let own = own.ok_or_else(|| Error::missing("collection", id.to_string()))?;
            return match name {
                Some(name) if name != own.name => Err(Error::missing("collection", name)),
                _ => Ok((own.name.clone(), Some(own))),
            };
        }
        let name = name.unwrap_or("default");
        validate::collection(name)?;
        Ok((name.to_owned(), None))
    }
}

fn check_mime(mime: &str) -> Result<()> {
    let fits = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&b))
    };
    match mime.split_once('/') {
        Some((family, kind)) if fits(family) && fits(kind) && mime.len() <= 127 => Ok(()),
        _ => Err(Error::invalid("mime_type", "must be like 'text/markdown'")),
    }
}

/// The figures of one document's outcome.
pub(crate) const fn counts(state: PutState) -> (u64, u64, u64) {
    match state {
        PutState::Added => (1, 0, 0),
        PutState::Updated => (1, 1, 0),
        PutState::Unchanged => (0, 0, 1),
    }
}

/// A path as a snapshot of the folder `root` names it.
pub(crate) fn relative(root: &str, path: &str) -> String {
    path.strip_prefix(root).unwrap_or(path).trim_start_matches('/').to_owned()
}
