//! Changing metadata and tags of a document.

use shelf_base::CallContext;
use shelf_catalog::{Document, Metadata, TagChange, Update};

use crate::{Caller, Error, Library, Result, commit::TagDraft, get::keep_named, validate};

/// A request to change metadata or tags.
#[derive(Clone, Debug, Default)]
pub struct UpdateRequest {
    /// By content.
    pub hash: Option<String>,
    /// By name.
    pub name: Option<String>,
    /// Only in this collection.
    pub collection: Option<String>,
    /// Keys to set.
    pub metadata: Metadata,
    /// Tags to add.
    pub add_tags: Vec<String>,
    /// Tags to remove.
    pub remove_tags: Vec<String>,
}

/// What was changed.
#[derive(Clone, Debug)]
pub struct UpdateReply {
    /// The document before the change.
    pub document: Document,
    /// Each change.
    pub changes: Vec<TagChange>,
}

impl Library {
    /// Changes metadata and tags of the one document that is meant.
    pub fn update(
        &self,
        caller: &Caller,
        request: &UpdateRequest,
        call: &CallContext,
    ) -> Result<UpdateReply> {
        caller.must_write()?;
        call.check()?;
        validate::metadata(&request.metadata)?;
        let update = Update {
            set: request.metadata.clone(),
            add_tags: validate::tags(&request.add_tags)?,
            remove_tags: request.remove_tags.iter().cloned().collect(),
        };
        let document = self.meant(caller, request)?;
        let (actor, scope) = (caller.pass.actor(), caller.pass.scope());
        match self.commit(TagDraft { actor, scope, id: document.id, update }, call)? {
            Some(changes) => Ok(UpdateReply { document, changes }),
            None => Err(Error::missing("document", document.path)),
        }
    }

    fn meant(&self, caller: &Caller, request: &UpdateRequest) -> Result<Document> {
        match (&request.hash, &request.name) {
            (Some(hash), name) => {
                let prefix = validate::hash_prefix(hash)?;
                let mut found = self.catalog.hashed(caller.pass.scope(), &prefix, 11)?;
                if let Some(collection) = &request.collection {
                    found.retain(|(document, _)| document.collection_name == *collection);
                }
                if let Some(name) = name {
                    keep_named(&mut found, hash, name)?;
                }
                // Prefer documents whose present content it is to those that once had it.
                if found.iter().any(|(document, version)| document.version.hash == version.hash) {
                    found.retain(|(document, version)| document.version.hash == version.hash);
                }
                if found.len() > 1 {
                    let candidates =
                        found.iter().map(|(d, v)| format!("{} (hash {})", d.path, v.hash)).collect();
                    return Err(Error::Ambiguous { name: hash.clone(), candidates });
                }
                found
                    .pop()
                    .map(|(document, _)| document)
                    .ok_or_else(|| Error::missing("document with hash", hash.clone()))
            }
            (None, Some(name)) => {
                let found = self.one_named(caller, request.collection.as_deref(), name)?;
                match found {
                    Some(found) => Ok(found),
                    None => Err(self.no_document(caller, request.collection.as_deref(), name)),
                }
            }
            (None, None) => Err(Error::invalid("hash", "or name is needed to say which document")),
        }
    }
}
