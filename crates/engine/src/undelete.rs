//! Bringing back a document that was deleted: its last version is stored again at its path.
//!
//! The journal says where the document was and what it held; its content is there until garbage collection frees it.
//! Tags and metadata are not in the journal, so whoever wants them back gives them.

use shelf_base::{CallContext, Digest, ErrorInfo, Kind, ids::DocumentId};
use shelf_catalog::{CollectionKind, Operation, RecordFilter};

use crate::{
    Caller, Error, Library, Metadata, Result,
    commit::{Revived, UndeleteDraft},
    ingest::AddOptions,
    validate,
};

/// A request to bring a document back.
#[derive(Clone, Debug, Default)]
pub struct UndeleteRequest {
    /// The id that it had.
    pub document_id: String,
    /// Tags to give it.
    pub tags: Vec<String>,
    /// Metadata to give it.
    pub metadata: Metadata,
}

/// A document that is there again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undeleted {
    /// Its new id.
    pub id: DocumentId,
    /// Its path.
    pub path: String,
    /// Its collection.
    pub collection: String,
    /// Its content.
    pub hash: Digest,
}

impl Library {
    /// Stores the last version of a deleted document again.
    pub fn undelete(
        &self,
        caller: &Caller,
        request: &UndeleteRequest,
        call: &CallContext,
    ) -> Result<Undeleted> {
        caller.must_write()?;
        call.check()?;
        validate::metadata(&request.metadata)?;
        let tags = validate::tags(&request.tags)?;
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
        let sample = match self.catalog.blob(&hash)? {
            Some(_) => self.blobs.read_range(call, &hash, 0..shelf_reading::SAMPLE as u64)?,
            None => return Err(freed()),
        };
        let name = collection.name.clone();
        let options = AddOptions {
            name: name.clone(),
            collection: Some(collection),
            tags,
            metadata: request.metadata.clone(),
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
            Revived::Stored(id) => Ok(Undeleted { id, path: record.path, collection: name, hash }),
            Revived::Gone => Err(freed()),
        }
    }
}

fn freed() -> Error {
    Error::invalid("the document", "cannot be brought back: garbage collection has freed its content")
}
