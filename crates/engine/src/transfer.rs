//! Taking documents out of a library and into another, with everything that is known of them.

use std::{
    fs::File,
    io::{self, Read},
    path::PathBuf,
};

use shelf_base::{CallContext, Digest, Moment};
use shelf_catalog::{Metadata, PutState, Scope, Shelf};

use crate::{
    Caller, Document, Error, Library, Order, Result, SortBy, commit::ImportDraft, list::ListRequest, validate,
};

/// Documents of one page while a collection is walked.
const PAGE: usize = 500;

/// Where the content of an imported document comes from.
#[derive(Clone, Debug)]
pub enum ImportContent {
    /// Bytes in memory.
    Bytes(Vec<u8>),
    /// A file.
    File(PathBuf),
}

impl ImportContent {
    pub(crate) fn open(&self) -> io::Result<Box<dyn Read + '_>> {
        Ok(match self {
            Self::Bytes(bytes) => Box::new(bytes.as_slice()),
            Self::File(path) => Box::new(File::open(path)?),
        })
    }
}

/// A document to import, with what is known of it.
#[derive(Clone, Debug)]
pub struct ImportItem {
    /// Its path.
    pub path: String,
    /// Its content.
    pub content: ImportContent,
    /// The hash that the content must have.
    pub hash: Option<Digest>,
    /// Its title; the last part of the path when not given.
    pub title: Option<String>,
    /// Its MIME type; told from the content when not given.
    pub mime: Option<String>,
    /// Whether it is text; told from the content when not given.
    pub is_text: Option<bool>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its metadata.
    pub metadata: Metadata,
    /// Its citation resource id.
    pub resource_id: Option<String>,
    /// What its author calls its type.
    pub document_type: Option<String>,
    /// When it was modified.
    pub modified_at: Option<Moment>,
    /// Permission bits; 0 when nobody knows.
    pub mode: u32,
}

impl ImportItem {
    /// A document with nothing but a path and content.
    pub fn new(path: impl Into<String>, content: ImportContent) -> Self {
        Self {
            path: path.into(),
            content,
            hash: None,
            title: None,
            mime: None,
            is_text: None,
            tags: Vec::new(),
            metadata: Metadata::new(),
            resource_id: None,
            document_type: None,
            modified_at: None,
            mode: 0,
        }
    }
}

impl ImportItem {
    /// Checks everything that can be known before the content is read, and the name of the collection if there is one.
    pub fn check(&self, collection: Option<&str>) -> Result<()> {
        collection.map_or(Ok(()), validate::collection)?;
        validate::path("path", &self.path)?;
        validate::tags(&self.tags)?;
        validate::metadata(&self.metadata)?;
        self.resource_id.as_deref().map_or(Ok(()), validate::resource_id)
    }
}

/// What an import did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportReply {
    /// New documents.
    pub added: u64,
    /// Documents that have other content now.
    pub updated: u64,
    /// Documents that were there with the same content.
    pub unchanged: u64,
    /// Resource ids that were left out, because another document has them.
    pub ids_left_out: u64,
}

impl ImportReply {
    /// Adds what another round did.
    pub const fn add(&mut self, other: Self) {
        self.added += other.added;
        self.updated += other.updated;
        self.unchanged += other.unchanged;
        self.ids_left_out += other.ids_left_out;
    }
}

impl Library {
    /// Imports documents into a collection, all or none of them. Nothing is deleted.
    pub fn import(
        &self,
        caller: &Caller,
        collection: &str,
        mut items: Vec<ImportItem>,
        call: &CallContext,
    ) -> Result<ImportReply> {
        caller.must_write()?;
        validate::collection(collection)?;
        let mut reply = ImportReply::default();
        for item in &mut items {
            item.check(None)?;
            if let Some(id) = &item.resource_id {
                let holder = self.catalog.resource(caller.pass.scope(), id)?;
                let is_own =
                    |found: &Document| found.collection_name == collection && found.path == item.path;
                if holder.is_some_and(|found| !is_own(&found)) {
                    item.resource_id = None;
                    reply.ids_left_out += 1;
                }
            }
        }
        let shelf = match caller.pass.scope() {
            Scope::Collection(id) => Shelf::Known(*id),
            Scope::Account(_) | Scope::Library => Shelf::Named(collection.to_owned()),
        };
        let draft = ImportDraft { actor: caller.pass.actor(), shelf, items: &items };
        for result in self.commit(draft, call)? {
            match result.state {
                PutState::Added => reply.added += 1,
                PutState::Updated => reply.updated += 1,
                PutState::Unchanged => reply.unchanged += 1,
            }
        }
        Ok(reply)
    }

    /// Gives every document of a collection to `each`, in the order of their paths.
    pub fn walk_collection<E: From<Error>>(
        &self,
        caller: &Caller,
        collection: &str,
        call: &CallContext,
        mut each: impl FnMut(Document) -> Result<(), E>,
    ) -> Result<u64, E> {
        let mut request = ListRequest {
            sort: SortBy::Name,
            order: Order::Ascending,
            limit: PAGE,
            ..ListRequest::default()
        };
        request.filter.collection = Some(collection.to_owned());
        let mut count = 0;
        loop {
            let page = self.list(caller, &request, call)?;
            let Some(last) = page.documents.last().cloned() else { return Ok(count) };
            for document in page.documents {
                count += 1;
                call.report(count, Some(page.total), "exporting");
                each(document)?;
            }
            if !page.more {
                return Ok(count);
            }
            request.cursor = Some(self.cursor_after(caller, &request, &last)?);
        }
    }
}
