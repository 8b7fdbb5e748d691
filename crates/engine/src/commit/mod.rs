//! The one way to change a library: a draft goes in, a receipt comes out.
//!
//! A [`Draft`] says what should be true afterwards: documents with their content, changes with expectations, a snapshot.
//! [`Library::commit`] takes the writers' lock, lets the draft cut its content and run its transaction through a
//! [`Writing`], and then sees to what follows from any write: folding loose blocks and waking the index. Nothing else in
//! the engine takes that lock, cuts content or wakes the index.
//!
//! Content is stored before the transaction that refers to it, and the lock is held in between, so garbage collection
//! never removes a block that a draft relies on.

mod book_folder;
mod bulk;
mod content;
mod edit;
mod fold;
mod import;
mod put;
mod undelete;

use shelf_base::{CallContext, Fence, Moment};
use shelf_blocks::Store;
use shelf_catalog::{
    Actor, Catalog, LooseBlock, Put, PutDocument, PutResult, Shelf, Snapshot, SnapshotDraft, UploadUse,
};

pub(crate) use book_folder::{BookFolderDraft, BookSource};
pub(crate) use bulk::{FolderDraft, FolderReceipt, Found};
pub(crate) use content::Content;
pub(crate) use edit::{DeleteDraft, DropAccountDraft, DropCollectionDraft, EditDraft, TagDraft};
pub(crate) use fold::Folding;
pub(crate) use import::ImportDraft;
pub(crate) use put::{AddDraft, AddedFile, SnapshotCollectionDraft, StoreDraft, Typed, book_document};

pub(crate) use undelete::{ReviveDraft, Revived, UndeleteDraft};

use crate::{Library, Result};

/// A change that has not happened yet.
pub(crate) trait Draft {
    /// What happened.
    type Receipt;

    /// Makes the change.
    fn write(self, writing: &mut Writing<'_>) -> Result<Self::Receipt>;
}

/// A write in progress. The writers' lock is held for as long as it lives.
pub(crate) struct Writing<'a> {
    pub library: &'a Library,
    pub call: &'a CallContext,
    /// Blocks that the next transaction stores in the catalog itself: small writes then cost a single sync.
    inline: Vec<LooseBlock>,
    /// Bytes of such blocks that transactions have stored.
    inline_bytes: usize,
    /// Documents that the index has to look at.
    documents: u64,
    /// The writers' lock as it was when it was taken: a transaction that comes when it was lost is refused.
    fence: Option<Fence>,
}

impl Library {
    /// Carries a draft out.
    pub(crate) fn commit<D: Draft>(&self, draft: D, call: &CallContext) -> Result<D::Receipt> {
        let guard = self.locks.write(call)?;
        let mut writing = Writing {
            library: self,
            call,
            inline: Vec::new(),
            inline_bytes: 0,
            documents: 0,
            fence: guard.fence().cloned(),
        };
        let receipt = draft.write(&mut writing);
        drop(guard);
        // A draft of several transactions may have failed after the first of them.
        if writing.inline_bytes > 0 || receipt.is_ok() {
            self.fold_when_due(writing.inline_bytes);
        }
        if writing.documents > 0 {
            self.followers().for_each(|follower| follower.wake(writing.documents));
        }
        receipt
    }
}

impl Writing<'_> {
    fn catalog(&self) -> &dyn Catalog {
        &*self.library.catalog
    }

    fn blocks(&self) -> &Store {
        &self.library.blocks
    }

    fn now(&self) -> Moment {
        self.library.now()
    }

    /// Notes that the index has to look at so many documents.
    const fn touched(&mut self, documents: u64) {
        self.documents += documents;
    }

    /// The inline blocks of the transaction that is about to run.
    fn take_inline(&mut self) -> Vec<LooseBlock> {
        let inline = std::mem::take(&mut self.inline);
        self.inline_bytes += inline.iter().map(|block| block.bytes.len()).sum::<usize>();
        inline
    }

    /// A transaction over documents and a snapshot, with the inline blocks that were cut for it.
    fn transaction(
        &mut self,
        actor: &Actor,
        collection: Shelf,
        documents: Vec<PutDocument>,
        snapshot: Option<SnapshotDraft>,
    ) -> Put {
        let loose = self.take_inline();
        Put {
            actor: actor.clone(),
            collection,
            now: self.now(),
            documents,
            loose,
            snapshot,
            upload: None,
            fence: self.fence.clone(),
            may_wait: !self.call.is_in_place(),
        }
    }

    /// What became of a transaction. One that would have had to wait, where it must not, has not begun.
    fn begun<T>(&self, outcome: shelf_catalog::Result<T>) -> Result<T> {
        if matches!(outcome, Err(shelf_catalog::Error::Busy)) {
            self.call.may_wait();
        }
        Ok(outcome?)
    }

    /// Writes a document of a book and, with it, completes the upload that it came by.
    pub(crate) fn put_in_book(
        &mut self,
        actor: &Actor,
        book: &str,
        documents: Vec<PutDocument>,
        upload: Option<UploadUse>,
    ) -> Result<Vec<PutResult>> {
        let put = self.transaction(actor, Shelf::Book(book.to_owned()), documents, None);
        Ok(self.put(Put { upload, ..put })?.0)
    }

    fn put(&mut self, put: Put) -> Result<(Vec<PutResult>, Option<Snapshot>)> {
        let count = put.documents.len() as u64;
        let done = self.begun(self.catalog().put(put))?;
        self.touched(count);
        Ok(done)
    }
}
