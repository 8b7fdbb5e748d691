//! Documents with a title and a type: the documents family's way to the same shelves.

mod kind;

use base64::{Engine as _, engine::general_purpose::STANDARD};
pub use kind::DocumentType;
use shelf_base::{CallContext, ids::DocumentId};
use shelf_blocks::cut::Cut;
use shelf_catalog::{
    Document, DocumentChange, Filter, Metadata, NewContent, NewType, Order, Put, PutDocument, Scope, Shelf,
    SortBy,
};

use crate::{
    Caller, Error, Library, ListReply, ListRequest, Result,
    indexing::{Measured, measure},
    ingest::{InlineBlocks, SMALL},
    validate,
};

/// Most characters of a title.
const TITLE_CHARS: usize = 500;

/// A document to be stored.
#[derive(Clone, Debug)]
pub struct StoreRequest {
    /// Its title.
    pub title: String,
    /// Its content: text, or base64 of a PDF or DOCX file.
    pub content: String,
    /// Its type; Markdown when not given.
    pub document_type: Option<DocumentType>,
    /// Its metadata.
    pub metadata: Metadata,
    /// Id of the collection; the caller's `default`, or the one of its token, when not given.
    pub collection: Option<String>,
}

/// What to change of a document; `None` stays.
#[derive(Clone, Debug, Default)]
pub struct ChangeRequest {
    /// New title.
    pub title: Option<String>,
    /// New content.
    pub content: Option<String>,
    /// New type.
    pub document_type: Option<DocumentType>,
    /// New metadata, in place of the old.
    pub metadata: Option<Metadata>,
}

/// A document that was stored or changed.
#[derive(Clone, Debug)]
pub struct StoredDocument {
    /// Its id.
    pub id: DocumentId,
    /// Its passages.
    pub passages: usize,
    /// Its tokens.
    pub tokens: usize,
}

/// A document with its content.
#[derive(Clone, Debug)]
pub struct WholeDocument {
    /// The document.
    pub document: Document,
    /// Its content: text, or base64.
    pub content: String,
    /// Whether the content is base64.
    pub is_base64: bool,
}

impl Library {
    /// Stores a document; the same title and content again give the same document.
    pub fn store_document(
        &self,
        caller: &Caller,
        request: &StoreRequest,
        call: &CallContext,
    ) -> Result<StoredDocument> {
        caller.must_write()?;
        call.check()?;
        check_title(&request.title)?;
        validate::metadata(&request.metadata)?;
        let shelf = self.shelf_by_id(caller, request.collection.as_deref())?;
        let kind = request.document_type.unwrap_or_default();
        let content = kind::understand(kind, &request.content)?;
        let _writing = self.writing(call)?;
        let mut inline = InlineBlocks::default();
        let cut = self.cut_document(&content.bytes, &mut inline)?;
        let id = DocumentId::fresh();
        let path = format!("documents/{id}");
        let measured = measure(&path, content.mime, content.is_text, &content.bytes);
        let document = PutDocument {
            id: Some(id),
            path,
            title: request.title.clone(),
            extension: kind.extension().to_owned(),
            mime: content.mime.to_owned(),
            is_text: content.is_text,
            hash: cut.hash,
            size: cut.size,
            manifest: cut.manifest.encode(),
            blocks: blocks(&cut),
            modified_at: self.now(),
            mode: 0,
            stat: None,
            tags: std::collections::BTreeSet::new(),
            metadata: request.metadata.clone(),
            resource_id: None,
            document_type: Some(kind.word().to_owned()),
        };
        let loose_bytes: usize = inline.loose.iter().map(|block| block.bytes.len()).sum();
        let put = Put {
            actor: caller.pass.actor().clone(),
            collection: shelf,
            now: self.now(),
            documents: vec![document],
            loose: inline.loose,
            snapshot: None,
        };
        let (id, _) = self.catalog.store(put)?;
        self.fold_when_due(loose_bytes);
        self.indexing.wrote(1);
        Ok(stored(id, measured))
    }

    /// Where a new document goes.
    fn shelf_by_id(&self, caller: &Caller, collection: Option<&str>) -> Result<Shelf> {
        match (collection, caller.pass.scope()) {
            (Some(id), _) => Ok(Shelf::Known(self.collection_by_id(caller, id)?.collection.id)),
            (None, Scope::Collection(id)) => Ok(Shelf::Known(*id)),
            (None, _) => Ok(Shelf::Named("default".into())),
        }
    }

    fn cut_document(&self, bytes: &[u8], inline: &mut InlineBlocks) -> Result<Cut> {
        if bytes.len() as u64 <= SMALL { self.cut_loose(bytes, inline) } else { self.cut_packed(bytes) }
    }

    /// Changes a document: what is given, all at once.
    pub fn change_document(
        &self,
        caller: &Caller,
        id: &str,
        request: &ChangeRequest,
        call: &CallContext,
    ) -> Result<StoredDocument> {
        caller.must_write()?;
        request.title.as_deref().map_or(Ok(()), check_title)?;
        request.metadata.as_ref().map_or(Ok(()), validate::metadata)?;
        let present = self.document_by_id(caller, id)?;
        let _writing = self.writing(call)?;
        let mut inline = InlineBlocks::default();
        let kind = request.document_type.unwrap_or_else(|| DocumentType::of(&present));
        let (content, bytes, new_type) = match &request.content {
            Some(text) => {
                let content = kind::understand(kind, text)?;
                let cut = self.cut_document(&content.bytes, &mut inline)?;
                let new_type = new_type(kind, content.mime, content.is_text);
                (Some(cut), content.bytes, Some(new_type))
            }
            None => {
                let bytes = self.blobs.read_blob(call, &present.version.hash)?;
                // Text that is now called a file may be one in base64.
                let file = request
                    .document_type
                    .filter(|_| present.is_text)
                    .and_then(|kind| kind::as_file(kind, std::str::from_utf8(&bytes).ok()?));
                if let Some(file) = file {
                    let cut = self.cut_document(&file.bytes, &mut inline)?;
                    (Some(cut), file.bytes, Some(new_type(kind, file.mime, false)))
                } else {
                    let new_type = request.document_type.map(|kind| {
                        let mime = if present.is_text { kind.mime_of_text() } else { &present.mime };
                        new_type(kind, mime, present.is_text)
                    });
                    (None, bytes, new_type)
                }
            }
        };
        let (mime, is_text) = new_type
            .as_ref()
            .map_or((present.mime.as_str(), present.is_text), |new| (new.mime.as_str(), new.is_text));
        let measured = measure(&present.path, mime, is_text, &bytes);
        let loose_bytes: usize = inline.loose.iter().map(|block| block.bytes.len()).sum();
        let change = DocumentChange {
            title: request.title.clone(),
            r#type: new_type,
            metadata: request.metadata.clone(),
            content: content.map(|cut| NewContent {
                hash: cut.hash,
                size: cut.size,
                manifest: cut.manifest.encode(),
                blocks: blocks(&cut),
                loose: inline.loose,
            }),
        };
        let (actor, scope) = (caller.pass.actor(), caller.pass.reach());
        let changed = self.catalog.change(actor, &scope, present.id, change, self.now())?;
        let changed = changed.ok_or_else(|| Error::missing("document", id))?;
        self.fold_when_due(loose_bytes);
        self.indexing.wrote(1);
        Ok(stored(changed.id, measured))
    }

    /// A document by id, wherever the caller reaches.
    pub fn document_by_id(&self, caller: &Caller, id: &str) -> Result<Document> {
        caller.must_read()?;
        let missing = || Error::missing("document", id);
        let parsed: DocumentId = id.parse().map_err(|_| missing())?;
        self.catalog.document(&caller.pass.reach(), parsed)?.ok_or_else(missing)
    }

    /// A document by id with its content, whole.
    pub fn whole_document(&self, caller: &Caller, id: &str, call: &CallContext) -> Result<WholeDocument> {
        let document = self.document_by_id(caller, id)?;
        let bytes = self.blobs.read_blob(call, &document.version.hash)?;
        Ok(match String::from_utf8(bytes) {
            Ok(content) if document.is_text => WholeDocument { document, content, is_base64: false },
            Ok(text) => WholeDocument { document, content: STANDARD.encode(text), is_base64: true },
            Err(error) => {
                WholeDocument { document, content: STANDARD.encode(error.into_bytes()), is_base64: true }
            }
        })
    }

    /// Deletes a document by id.
    pub fn delete_document(&self, caller: &Caller, id: &str) -> Result<()> {
        caller.must_write()?;
        let missing = || Error::missing("document", id);
        let parsed: DocumentId = id.parse().map_err(|_| missing())?;
        let scope = caller.pass.reach();
        let gone = self.catalog.delete(caller.pass.actor(), &scope, &[parsed], self.now())?;
        if gone.is_empty() {
            return Err(missing());
        }
        self.indexing.wrote(1);
        Ok(())
    }

    /// A page of documents, newest first, and the cursor of the next.
    pub fn list_documents(
        &self,
        caller: &Caller,
        collection: Option<&str>,
        (limit, offset): (usize, u64),
        cursor: Option<String>,
        call: &CallContext,
    ) -> Result<(ListReply, Option<String>)> {
        let caller = self.looking_at(caller, collection)?;
        let request = ListRequest {
            filter: Filter::default(),
            patterns: Vec::new(),
            name: None,
            sort: SortBy::Created,
            order: Order::Descending,
            limit,
            offset,
            cursor,
        };
        let listed = self.list(&caller, &request, call)?;
        let next = match listed.documents.last() {
            Some(last) if listed.more => Some(self.cursor_after(&caller, &request, last)?),
            _ => None,
        };
        Ok((listed, next))
    }
}

fn stored(id: DocumentId, measured: Measured) -> StoredDocument {
    StoredDocument { id, passages: measured.passages, tokens: measured.tokens }
}

fn blocks(cut: &Cut) -> Vec<(i64, u32)> {
    cut.manifest.blocks.iter().map(|block| (block.id.short(), block.length)).collect()
}

fn new_type(kind: DocumentType, mime: &str, is_text: bool) -> NewType {
    NewType {
        document_type: kind.word().to_owned(),
        extension: kind.extension().to_owned(),
        mime: mime.to_owned(),
        is_text,
    }
}

fn check_title(title: &str) -> Result<()> {
    let count = title.chars().count();
    if title.trim().is_empty() || count > TITLE_CHARS || title.chars().any(char::is_control) {
        let expected = format!("must be 1 to {TITLE_CHARS} characters without control characters");
        return Err(Error::invalid("title", expected));
    }
    Ok(())
}
