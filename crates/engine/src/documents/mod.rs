//! Documents with a title and a type: the documents family's way to the same shelves.

mod kind;
mod spelling;

use kind::Understood;
pub use kind::{DocumentType, OtherContent};
use shelf_base::{CallContext, ids::DocumentId};
use shelf_catalog::{Document, Metadata, NewType, Order, PutState, Scope, Shelf, SortBy};
use spelling::Spelling;

use crate::{
    Caller, Error, Library, ListReply, ListRequest, Result,
    commit::{Content, DeleteDraft, EditDraft, StoreDraft, Typed},
    indexing::{Measured, measure},
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
    /// Whether it was there already, and stayed as it was.
    pub was_there: bool,
    /// What its content is, if it is not what its type says.
    pub other: Option<OtherContent>,
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
        let id = DocumentId::fresh();
        let path = format!("documents/{id}");
        let measured = measure(&self.blobs.readings, &path, &content.mime, content.is_text, &content.bytes);
        let draft = StoreDraft {
            actor: caller.pass.actor(),
            collection: shelf,
            id,
            path,
            title: &request.title,
            r#type: Typed {
                word: content.word,
                extension: kind.extension().to_owned(),
                mime: content.mime,
                is_text: content.is_text,
            },
            metadata: &request.metadata,
            content: Content::Bytes(&content.bytes),
        };
        let (id, state) = self.commit(draft, call)?;
        let was_there = state == PutState::Unchanged;
        Ok(StoredDocument { was_there, other: content.other, ..stored(id, measured) })
    }

    /// Where a new document goes.
    fn shelf_by_id(&self, caller: &Caller, collection: Option<&str>) -> Result<Shelf> {
        match (collection, caller.pass.scope()) {
            (Some(id), _) => Ok(Shelf::Known(self.reachable_collection(caller, id)?.id)),
            (None, Scope::Collection(id)) => Ok(Shelf::Known(*id)),
            (None, _) => Ok(Shelf::Named("default".into())),
        }
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
        loop {
            let present = self.reachable_document(caller, id)?;
            match self.change_present(caller, &present, request, call) {
                // Somebody else changed the content that this change was made from.
                Err(Error::Catalog(shelf_catalog::Error::ContentChanged { .. })) => call.check()?,
                outcome => return outcome,
            }
        }
    }

    fn change_present(
        &self,
        caller: &Caller,
        present: &Document,
        request: &ChangeRequest,
        call: &CallContext,
    ) -> Result<StoredDocument> {
        let Changed { bytes, is_new, r#type, other } = self.changed_content(present, request, call)?;
        let (mime, is_text) = r#type
            .as_ref()
            .map_or((present.mime.as_str(), present.is_text), |new| (new.mime.as_str(), new.is_text));
        let measured = measure(&self.blobs.readings, &present.path, mime, is_text, &bytes);
        let draft = EditDraft {
            actor: caller.pass.actor(),
            scope: &caller.pass.reach(),
            id: present.id,
            expected: request.content.is_none().then_some(present.version.hash),
            title: request.title.clone(),
            r#type,
            metadata: request.metadata.clone(),
            content: is_new.then_some(Content::Bytes(&bytes)),
        };
        let changed = self.commit(draft, call)?;
        let changed = changed.ok_or_else(|| Error::missing("document", present.id.to_string()))?;
        Ok(StoredDocument { other, ..stored(changed.id, measured) })
    }

    /// The content of a document after a change, and its type where that changes.
    fn changed_content(
        &self,
        present: &Document,
        request: &ChangeRequest,
        call: &CallContext,
    ) -> Result<Changed> {
        let kind = request.document_type.unwrap_or_else(|| DocumentType::of(present));
        let of_content = |content: Understood| Changed {
            r#type: Some(new_type(kind, content.word, content.mime, content.is_text)),
            bytes: content.bytes,
            is_new: true,
            other: content.other,
        };
        if let Some(text) = &request.content {
            return Ok(of_content(kind::understand(kind, text)?));
        }
        let bytes = self.blobs.read_blob(call, &present.version.hash)?;
        let stays = |bytes, r#type| Changed { bytes, is_new: false, r#type, other: None };
        if request.document_type.is_none() {
            return Ok(stays(bytes, None));
        }
        if !present.is_text {
            let word = Spelling::of(present).behind(kind.word());
            return Ok(stays(bytes, Some(new_type(kind, word, present.mime.clone(), false))));
        }
        // Text that is now called a file may be one in base64.
        let file = std::str::from_utf8(&bytes).ok().map(|text| kind::as_file(kind, text)).transpose()?;
        if let Some(file) = file.flatten() {
            return Ok(of_content(file));
        }
        let r#type = new_type(kind, kind.word().to_owned(), kind.mime_of_text().to_owned(), true);
        Ok(stays(bytes, Some(r#type)))
    }

    /// A document by id, wherever the caller reaches.
    pub fn document_by_id(&self, caller: &Caller, id: &str) -> Result<Document> {
        caller.must_read()?;
        self.reachable_document(caller, id)
    }

    /// The same, for who may read or write; only what a change tells of it may reach who only writes.
    fn reachable_document(&self, caller: &Caller, id: &str) -> Result<Document> {
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
            Ok(text) => in_base64(document, text.as_bytes()),
            Err(error) => in_base64(document, error.as_bytes()),
        })
    }

    /// Deletes a document by id.
    pub fn delete_document(&self, caller: &Caller, id: &str, call: &CallContext) -> Result<()> {
        caller.must_write()?;
        let missing = || Error::missing("document", id);
        let parsed: DocumentId = id.parse().map_err(|_| missing())?;
        let scope = caller.pass.reach();
        let draft = DeleteDraft { actor: caller.pass.actor(), scope: &scope, ids: &[parsed] };
        if self.commit(draft, call)?.is_empty() { Err(missing()) } else { Ok(()) }
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
            sort: SortBy::Created,
            order: Order::Descending,
            limit,
            offset,
            cursor,
            ..ListRequest::default()
        };
        let listed = self.list(&caller, &request, call)?;
        let next = match listed.documents.last() {
            Some(last) if listed.more => Some(self.cursor_after(&caller, &request, last)?),
            _ => None,
        };
        Ok((listed, next))
    }
}

const fn stored(id: DocumentId, measured: Measured) -> StoredDocument {
    StoredDocument { id, passages: measured.passages, tokens: measured.tokens, was_there: false, other: None }
}

fn in_base64(document: Document, bytes: &[u8]) -> WholeDocument {
    WholeDocument { content: Spelling::of(&document).write(bytes), document, is_base64: true }
}

/// The content of a document after a change.
struct Changed {
    bytes: Vec<u8>,
    /// Whether it differs from what is stored.
    is_new: bool,
    r#type: Option<NewType>,
    other: Option<OtherContent>,
}

fn new_type(kind: DocumentType, word: String, mime: String, is_text: bool) -> NewType {
    NewType { document_type: word, extension: kind.extension().to_owned(), mime, is_text }
}

fn check_title(title: &str) -> Result<()> {
    let count = title.chars().count();
    if title.trim().is_empty() || count > TITLE_CHARS || title.chars().any(char::is_control) {
        let expected = format!("must be 1 to {TITLE_CHARS} characters without control characters");
        return Err(Error::invalid("title", expected));
    }
    Ok(())
}
