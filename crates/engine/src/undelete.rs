//! Bringing back a document that was deleted.
//!
//! Until garbage collection forgets it, a deleted document keeps its row and its versions, and comes back as it was. After
//! that its content may still be there because something else needs it. The journal says where the document was and what
//! it held, so its last version is stored again at its path; what it was called is lost.

use shelf_base::{CallContext, Digest, ErrorInfo, Kind, ids::DocumentId};
use shelf_catalog::{CollectionKind, Operation, RecordFilter};

use crate::{
    Caller, Error, Library, Metadata, Result,
    commit::{ReviveDraft, Revived, UndeleteDraft},
    ingest::AddOptions,
    validate,
};

/// A request to bring a document back.
#[derive(Clone, Debug, Default)]
pub struct UndeleteRequest {
    /// The id that it had.
    pub document_id: String,
    /// Tags to give it, in place of those that it had.
    pub tags: Option<Vec<String>>,
    /// Metadata to give it, in place of what it had.
    pub metadata: Option<Metadata>,
}

/// A document that is there again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undeleted {
    /// Its id: the one that it had, or a new one.
    pub id: DocumentId,
    /// Its path.
    pub path: String,
    /// Its collection.
    pub collection: String,
    /// Its content.
    pub hash: Digest,
    /// Whether it is as it was. Otherwise only its path and content came back.
    pub is_whole: bool,
}

impl Library {
    /// Brings a deleted document back.
    pub fn undelete(
        &self,
        caller: &Caller,
        request: &UndeleteRequest,
        call: &CallContext,
    ) -> Result<Undeleted> {
        caller.must_write()?;
        call.check()?;
        request.metadata.as_ref().map_or(Ok(()), validate::metadata)?;
        let tags = request.tags.as_deref().map(validate::tags).transpose()?;
        let missing = || Error::missing("deleted document", &request.document_id);
        let id: DocumentId = request.document_id.parse().map_err(|_| missing())?;
        let scope = caller.pass.scope();
        if self.catalog.document(scope, id)?.is_some() {
            return Err(Error::invalid("document_id", "means a document that is not deleted"));
        }
        let filter = RecordFilter {
            document: Some(id),
            operations: vec![Operation::Delete],
            ..RecordFilter::default()
        };
        let found = self.catalog.recent(scope, &filter, 1)?;
        let (record, _) = found.records.into_iter().next().ok_or_else(missing)?;
        let (Some(collection), Some(hash)) = (record.collection, record.previous) else {
            return Err(missing());
        };
        let collection = self.catalog.known_collection(scope, collection)?.ok_or_else(missing)?;
        if collection.kind == CollectionKind::Book {
            let expected = "means a file of a book: write it again with write_content or upload_asset";
            return Err(Error::invalid("document_id", expected));
        }
        let taken = self.one_named(caller, Some(&collection.name), &record.path);
        let is_taken = match taken {
            Ok(found) => found.is_some_and(|found| found.path == record.path),
            Err(error) if error.kind() == Kind::Conflict => false,
            Err(error) => return Err(error),
        };
        if is_taken {
            let expected = format!("cannot be brought back: '{}' is stored anew by now", record.path);
            return Err(Error::invalid("the document", expected));
        }
        let draft = ReviveDraft {
            actor: caller.pass.actor(),
            scope,
            id,
            tags: tags.as_ref(),
            metadata: request.metadata.as_ref(),
        };
        if let Some(back) = self.commit(draft, call)? {
            let (path, collection, hash) = (back.path, back.collection_name, back.version.hash);
            return Ok(Undeleted { id: back.id, path, collection, hash, is_whole: true });
        }
        let sample = match self.catalog.blob(&hash)? {
            Some(_) => self.blobs.read_range(call, &hash, 0..shelf_reading::SAMPLE as u64)?,
            None => return Err(freed()),
        };
        let name = collection.name.clone();
        let options = AddOptions {
            name: name.clone(),
            collection: Some(collection),
            tags: tags.unwrap_or_default(),
            metadata: request.metadata.clone().unwrap_or_default(),
            ..AddOptions::default()
        };
        let draft = UndeleteDraft {
            actor: caller.pass.actor(),
            options: &options,
            path: record.path.clone(),
            hash,
            sample: &sample,
        };
        match self.commit(draft, call)? {
            Revived::Stored(id) => {
                Ok(Undeleted { id, path: record.path, collection: name, hash, is_whole: false })
            }
            Revived::Gone => Err(freed()),
        }
    }
}

fn freed() -> Error {
    Error::invalid("the document", "cannot be brought back: garbage collection has freed its content")
}
