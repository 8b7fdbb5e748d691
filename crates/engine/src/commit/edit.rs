//! Drafts that change or remove what is there.

use shelf_base::{
    Digest,
    ids::{AccountId, CollectionId, DocumentId},
};
use shelf_catalog::{
    Actor, Document, DocumentChange, Metadata, NewContent, NewType, Scope, TagChange, Update,
};

use super::{Content, Draft, Writing, put::blocks};
use crate::Result;

/// Changes a document: what is given, all at once.
pub(crate) struct EditDraft<'a> {
    pub actor: &'a Actor,
    pub scope: &'a Scope,
    pub id: DocumentId,
    /// Only if this is still its content; otherwise the change is a conflict.
    pub expected: Option<Digest>,
    pub title: Option<String>,
    pub r#type: Option<NewType>,
    pub metadata: Option<Metadata>,
    pub content: Option<Content<'a>>,
}

impl Draft for EditDraft<'_> {
    /// The document as it is now; `None` when there is none.
    type Receipt = Option<Document>;

    fn write(self, writing: &mut Writing<'_>) -> Result<Self::Receipt> {
        let content = match self.content {
            None => None,
            Some(content) => {
                let cut = writing.store(content)?.cut;
                Some(NewContent {
                    hash: cut.hash,
                    size: cut.size,
                    manifest: cut.manifest.encode(),
                    blocks: blocks(&cut),
                    loose: writing.take_inline(),
                    fence: writing.fence.clone(),
                })
            }
        };
        let change = DocumentChange {
            expected: self.expected,
            title: self.title,
            r#type: self.r#type,
            metadata: self.metadata,
            content,
        };
        let changed = writing.catalog().change(self.actor, self.scope, self.id, change, writing.now())?;
        writing.touched(changed.is_some().into());
        Ok(changed)
    }
}

/// Changes metadata and tags of a document.
pub(crate) struct TagDraft<'a> {
    pub actor: &'a Actor,
    pub scope: &'a Scope,
    pub id: DocumentId,
    pub update: Update,
}

impl Draft for TagDraft<'_> {
    /// What was changed; `None` when there is no such document.
    type Receipt = Option<Vec<TagChange>>;

    fn write(self, writing: &mut Writing<'_>) -> Result<Self::Receipt> {
        Ok(writing.catalog().update(self.actor, self.scope, self.id, &self.update, writing.now())?)
    }
}

/// Deletes documents.
pub(crate) struct DeleteDraft<'a> {
    pub actor: &'a Actor,
    pub scope: &'a Scope,
    pub ids: &'a [DocumentId],
}

impl Draft for DeleteDraft<'_> {
    /// Those that were there.
    type Receipt = Vec<DocumentId>;

    fn write(self, writing: &mut Writing<'_>) -> Result<Self::Receipt> {
        let gone = writing.catalog().delete(self.actor, self.scope, self.ids, writing.now())?;
        writing.touched(gone.len() as u64);
        Ok(gone)
    }
}

/// Deletes a collection with all that is in it.
pub(crate) struct DropCollectionDraft<'a> {
    pub actor: &'a Actor,
    pub scope: &'a Scope,
    pub id: CollectionId,
}

impl Draft for DropCollectionDraft<'_> {
    /// Whether it was there.
    type Receipt = bool;

    fn write(self, writing: &mut Writing<'_>) -> Result<bool> {
        let gone = writing.catalog().delete_collection(self.actor, self.scope, self.id, writing.now())?;
        writing.touched(gone.into());
        Ok(gone)
    }
}

/// Deletes an account with all that it owns.
pub(crate) struct DropAccountDraft<'a> {
    pub actor: &'a Actor,
    pub id: AccountId,
}

impl Draft for DropAccountDraft<'_> {
    /// Whether it was there.
    type Receipt = bool;

    fn write(self, writing: &mut Writing<'_>) -> Result<bool> {
        let gone = writing.catalog().delete_account(self.actor, self.id, writing.now())?;
        writing.touched(gone.into());
        Ok(gone)
    }
}
