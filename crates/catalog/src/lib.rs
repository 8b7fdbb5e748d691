//! The catalog: the single source of truth.
//!
//! Documents, versions, blobs, collections, snapshots, tokens and the journal live here, and a write has happened
//! exactly when its transaction has committed. The [`Catalog`] trait is what the rest of the program sees. Its queries are
//! written once, in the SQL that two databases share: [`sqlite`] keeps the catalog in a file, [`postgres`] in a database that
//! many machines use. [`suite`] holds the behaviour both must show. No SQL is written outside this crate.
//!
//! Tenancy is a [`Scope`] that every query takes: it is part of the `WHERE`, never a check afterwards.

mod accounts;
mod books;
mod browse;
mod chunk;
mod error;
mod journal;
mod maps;
mod model;
pub mod postgres;
mod retired;
mod revival;
mod sql;
pub mod sqlite;
pub mod suite;

pub use accounts::{
    Account, AccountChange, AccountStart, Accounts, Holder, NewAccount, NewToken, Rank, Rotation, Session,
    Token, TokenKind, scopes,
};
pub use books::{BookChange, BookStatus, Books, UploadUse};
pub use browse::{
    Browse, Facet, Facets, Folder, FolderContent, RecentRecords, RecordFilter, SessionRow, Subject,
};
pub use chunk::{Chunk, Position, chunks};
pub use error::{EngineError, Error};
pub use journal::{Operation, Record};
pub use maps::{GivenMap, Maps, NewMap};
pub use model::{
    Actor, BlobRow, BlocksOf, Changed, Changes, Chosen, Collection, CollectionKind, CollectionSummary,
    Document, DocumentChange, Expected, Filter, Listed, LooseBlock, Metadata, NewContent, NewType, Order,
    Page, Purge, Put, PutDocument, PutResult, PutState, Scope, Shelf, Snapshot, SnapshotDraft,
    SnapshotFilter, SortBy, Source, StoredListing, TagChange, TypeFigures, Update, Version,
};
pub use retired::{PackState, RetiredPack, Standing};
pub use revival::Revival;
pub use sql::Transferred;
pub use sqlite::CopyNote;

use std::path::Path;

use shelf_base::{
    Digest, Fence, Moment,
    ids::{CollectionId, DocumentId},
};

/// Shorthand for this crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What the rest of the program asks of a catalog. All methods may be called from many threads and many processes at once; each
/// read sees every write that any process had acknowledged before it started.
pub trait Catalog: Accounts + Books + Browse + Maps {
    /// The collections in scope with their figures, by name.
    fn collections(&self, scope: &Scope) -> Result<Vec<CollectionSummary>>;
    /// A collection in scope by name.
    fn collection(&self, scope: &Scope, name: &str) -> Result<Option<Collection>>;
    /// The ids of the collections in scope, of that name when one is given.
    fn collection_ids(&self, scope: &Scope, name: Option<&str>) -> Result<Vec<CollectionId>>;
    /// The account's collection of that name, made when it is not there.
    fn ensure_collection(&self, actor: &Actor, name: &str, now: Moment) -> Result<Collection>;

    /// A collection in scope by id.
    fn known_collection(&self, scope: &Scope, id: CollectionId) -> Result<Option<Collection>>;
    /// A collection in scope by id, with its figures.
    fn collection_by_id(&self, scope: &Scope, id: CollectionId) -> Result<Option<CollectionSummary>>;
    /// How many tokens of a collection work.
    fn active_tokens(&self, id: CollectionId, now: Moment) -> Result<u64>;
    /// Makes a collection of the actor's account; an error when the name is taken.
    fn create_collection(&self, actor: &Actor, name: &str, now: Moment) -> Result<Collection>;
    /// Gives a collection in scope another name; `None` when there is none, an error when the name is taken.
    fn rename_collection(
        &self,
        actor: &Actor,
        scope: &Scope,
        id: CollectionId,
        name: &str,
        now: Moment,
    ) -> Result<Option<Collection>>;
    /// Deletes a collection in scope with its documents, snapshots and tokens; `false` when there is none, an error
    /// when a token of it still works.
    fn delete_collection(&self, actor: &Actor, scope: &Scope, id: CollectionId, now: Moment) -> Result<bool>;

    /// Records the embedding model that a collection is searched with; `None` is the built-in one.
    fn set_model(&self, actor: &Actor, id: CollectionId, model: Option<&str>, now: Moment) -> Result<()>;
    /// The models of the collections in scope, by collection.
    fn models(&self, scope: &Scope) -> Result<Vec<(CollectionId, Option<String>)>>;

    /// Writes documents, loose blocks and a snapshot in one transaction.
    fn put(&self, put: Put) -> Result<(Vec<PutResult>, Option<Snapshot>)>;
    /// Writes the one document of `put`, unless the collection has one with its title and content already.
    fn store(&self, put: Put) -> Result<(DocumentId, PutState)>;
    /// Changes a document in scope, all of it in one transaction; `None` when there is none, an error when its content is
    /// no longer the expected one.
    fn change(
        &self,
        actor: &Actor,
        scope: &Scope,
        id: DocumentId,
        change: DocumentChange,
        now: Moment,
    ) -> Result<Option<Document>>;
    /// Changes metadata and tags of one document in scope; `None` when there is none.
    fn update(
        &self,
        actor: &Actor,
        scope: &Scope,
        id: DocumentId,
        update: &Update,
        now: Moment,
    ) -> Result<Option<Vec<TagChange>>>;
    /// Removes documents from every live view; those already gone are left out of the reply.
    fn delete(
        &self,
        actor: &Actor,
        scope: &Scope,
        ids: &[DocumentId],
        now: Moment,
    ) -> Result<Vec<DocumentId>>;

    /// Brings a deleted document in scope back as it was, with its id and versions; `None` when its last version is not
    /// there any more.
    fn revive(
        &self,
        actor: &Actor,
        scope: &Scope,
        id: DocumentId,
        revival: Revival,
        now: Moment,
    ) -> Result<Option<Document>>;

    /// One live document by id.
    fn document(&self, scope: &Scope, id: DocumentId) -> Result<Option<Document>>;
    /// Live documents that `name` means: a whole path, else a path suffix, else a title.
    fn named(
        &self,
        scope: &Scope,
        collection: Option<&str>,
        name: &str,
        most: usize,
    ) -> Result<Vec<Document>>;
    /// Live documents with a version whose hash begins with `prefix`.
    fn hashed(&self, scope: &Scope, prefix: &str, most: usize) -> Result<Vec<(Document, Version)>>;
    /// One page of live documents.
    fn list(&self, scope: &Scope, filter: &Filter, page: &Page) -> Result<Listed>;
    /// Path, id and hash of live documents that the filter takes, in the order of collections and paths.
    fn choose_from(&self, scope: &Scope, filter: &Filter, position: &Position) -> Result<Chunk<Chosen>>;
    /// The paths of live documents that the filter takes, in the order of collections and paths.
    fn paths_from(&self, scope: &Scope, filter: &Filter, position: &Position) -> Result<Chunk<String>>;
    /// The numbers of live documents that the filter takes, in order.
    fn numbers_from(&self, scope: &Scope, filter: &Filter, position: &Position) -> Result<Chunk<i64>>;
    /// The live documents in scope among these numbers.
    fn numbered(&self, scope: &Scope, numbers: &[i64]) -> Result<Vec<Document>>;
    /// What the collection holds of files added from disk under `folder`.
    fn sources_from(
        &self,
        collection: CollectionId,
        folder: &str,
        position: &Position,
    ) -> Result<Chunk<Source>>;
    /// All versions of a document, oldest first.
    fn versions(&self, scope: &Scope, id: DocumentId) -> Result<Vec<Version>>;
    /// Count and bytes of live documents by extension and MIME type.
    fn type_figures(&self, scope: &Scope) -> Result<Vec<TypeFigures>>;
    /// Size and manifest of live documents in scope, one a document.
    fn live_manifests_from(&self, scope: &Scope, position: &Position) -> Result<Chunk<BlobRow>>;

    /// A blob's size and manifest.
    fn blob(&self, hash: &Digest) -> Result<Option<BlobRow>>;
    /// The size and manifest of those of these blobs that there are, in no particular order. A query takes a bounded number of
    /// them, so a long list takes several.
    fn blobs(&self, hashes: &[Digest]) -> Result<Vec<(Digest, BlobRow)>>;
    /// Blobs with their hashes.
    fn blobs_from(&self, position: &Position) -> Result<Chunk<(Digest, BlobRow)>>;
    /// Loose blocks among `ids`, in no particular order, and queried in the same way.
    fn loose(&self, ids: &[[u8; 32]]) -> Result<Vec<LooseBlock>>;
    /// Number and bytes of all loose blocks.
    fn loose_figures(&self) -> Result<(u64, u64)>;
    /// Up to `most` loose blocks whose id is greater than `after`, in the order of their ids.
    fn loose_after(&self, after: Option<[u8; 32]>, most: usize) -> Result<Vec<LooseBlock>>;
    /// Forgets loose blocks that are in a pack now, or that nothing needs, as was found under this lock.
    fn drop_loose(&self, ids: &[[u8; 32]], fence: Option<&Fence>) -> Result<()>;

    /// Snapshots in scope, newest first, at most `most`.
    fn snapshots(&self, scope: &Scope, filter: &SnapshotFilter<'_>, most: usize) -> Result<Vec<Snapshot>>;
    /// How many snapshots there are.
    fn snapshot_count(&self, scope: &Scope, filter: &SnapshotFilter<'_>) -> Result<u64>;

    /// Gives back memory for a while in which nobody writes and few read.
    fn release_memory(&self);

    /// Where it is, as people write it; without a password.
    fn place(&self) -> String;
    /// Whether several machines may use it, each with an index of its own.
    fn is_shared(&self) -> bool;
    /// Changes when the catalog was replaced by a recovery while it was open: what was learnt from it before is void.
    fn incarnation(&self) -> u64;
    /// What time it is on the machine of the catalog, when that is another one.
    fn clock(&self) -> Result<Option<Moment>>;
    /// Whether it answers now. A database that has gone away is not waited for.
    fn ping(&self) -> Result<()>;
    /// The last sequence number of the journal; 0 when it is empty.
    fn sequence(&self) -> Result<u64>;
    /// Journal records after `after`, in order, at most `most`.
    fn journal(&self, after: u64, most: usize) -> Result<Vec<Record>>;

    /// The documents that journal records after `after` and up to `until` say anything of, each once, as it is now; and
    /// all that were forgotten after `after`.
    fn changes(&self, after: u64, until: u64) -> Result<Changes>;

    /// Hashes that versions refer to, each with whether a live document has it (in any version).
    fn version_hashes_from(&self, position: &Position) -> Result<Chunk<(Digest, bool)>>;
    /// How many versions there are, of live and deleted documents.
    fn version_count(&self) -> Result<u64>;
    /// Carries out a garbage collection: forgets snapshots, versions of deleted documents and blobs that are not kept.
    fn purge(&self, actor: &Actor, purge: &Purge, now: Moment) -> Result<()>;
    /// What a writer must know before it relies on a pack, in one question. Empty for a catalog that one machine uses.
    fn standing(&self) -> Result<Standing>;
    /// Notes where the packs are unless that has been noted; what is noted now.
    fn claim_objects(&self, place: &str) -> Result<String>;
    /// Notes that the packs are somewhere else from now on, as was brought about under this lock.
    fn move_objects(&self, place: &str, fence: Option<&Fence>) -> Result<()>;
    /// Packs that garbage collection has marked. Only a catalog that several machines use has any.
    fn retired_packs(&self) -> Result<Vec<RetiredPack>>;
    /// Marks exactly these packs, as was found under this lock: none of them is needed, and all others are.
    fn retire_packs(&self, names: &[String], now: Moment, fence: Option<&Fence>) -> Result<()>;
    /// Decides that the packs go that were marked up to this moment; their names, and those that were decided on before.
    fn claim_packs(&self, until: Moment) -> Result<Vec<String>>;
    /// Notes that packs have been deleted.
    fn packs_gone(&self, names: &[String]) -> Result<()>;
    /// Takes the mark off a pack that is about to be written again; `false` while somebody is deleting it.
    fn revive_pack(&self, name: &str) -> Result<bool>;
    /// Forgets what the file system said of files, so that the next add reads every one of them again.
    fn forget_stats(&self) -> Result<()>;
    /// What the storage engine itself finds wrong.
    fn integrity(&self) -> Result<Vec<String>>;
    /// What does not agree with the journal: rows that were changed, removed or added without a record.
    fn audit(&self) -> Result<Vec<String>>;
    /// Takes the rows as they are for the truth, with a journal record for each that differs from what was recorded; how
    /// many there were.
    fn accept(&self, actor: &Actor, now: Moment) -> Result<u64>;
    /// Writes a copy of all that cannot be made again to a file.
    fn write_copy(&self, target: &Path) -> Result<CopyNote>;
    /// Writes a copy of all of it to a file, wherever it lies: for a backup, from which a catalog in a file can be rebuilt.
    fn write_backup(&self, target: &Path) -> Result<CopyNote>;
    /// Bytes the catalog takes on its storage.
    fn bytes(&self) -> Result<u64>;
    /// The version of the schema.
    fn schema_version(&self) -> Result<u32>;

    /// [`choose_from`](Self::choose_from) to its end, in the order of paths.
    fn choose(&self, scope: &Scope, filter: &Filter) -> Result<Vec<Chosen>> {
        let mut all = gather(|position| self.choose_from(scope, filter, position))?;
        all.sort_by(|a, b| (&a.path, a.number).cmp(&(&b.path, b.number)));
        Ok(all)
    }

    /// [`numbers_from`](Self::numbers_from) to its end.
    fn numbers(&self, scope: &Scope, filter: &Filter) -> Result<Vec<i64>> {
        gather(|position| self.numbers_from(scope, filter, position))
    }

    /// [`sources_from`](Self::sources_from) to its end.
    fn sources(&self, collection: CollectionId, folder: &str) -> Result<Vec<Source>> {
        gather(|position| self.sources_from(collection, folder, position))
    }

    /// [`version_hashes_from`](Self::version_hashes_from) to its end.
    fn version_hashes(&self) -> Result<Vec<(Digest, bool)>> {
        gather(|position| self.version_hashes_from(position))
    }

    /// The listing of the newest snapshot of a folder in a collection, as far as it is a blob.
    fn newest_listing(&self, collection: CollectionId, root: &str) -> Result<Option<Digest>>;
    /// Every snapshot of the library, of all accounts, newest first.
    fn all_snapshots(&self) -> Result<Vec<Snapshot>> {
        const AT_ONCE: usize = 4_096;
        let mut all: Vec<Snapshot> = Vec::new();
        loop {
            let before = all.last().map(|snapshot| snapshot.at);
            let filter = SnapshotFilter { before, ..SnapshotFilter::default() };
            let found = self.snapshots(&Scope::Library, &filter, AT_ONCE)?;
            let is_end = found.len() < AT_ONCE;
            all.extend(found);
            if is_end {
                return Ok(all);
            }
        }
    }
}

fn gather<T>(read: impl FnMut(&Position) -> Result<Chunk<T>>) -> Result<Vec<T>> {
    let mut all = Vec::new();
    chunks(read, |items| {
        all.extend(items);
        Ok(())
    })?;
    Ok(all)
}
