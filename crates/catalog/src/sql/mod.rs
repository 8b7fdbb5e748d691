//! The catalog in SQL, whatever the database: rows, queries and writes.
//!
//! A database brings a [`Connection`] and the [`Backend`] that hands it out; everything that the [`Catalog`] promises is
//! written here once.

mod account_blocks;
mod accounts;
mod audit;
mod blobs;
mod books;
mod browse;
mod connection;
mod delete;
mod documents;
mod fences;
mod maps;
mod put;
pub(crate) mod read;
mod retired;
pub(crate) mod rows;
mod shelves;
mod snapshots;
mod state;
mod stored;
mod tokens;
mod transfer;
pub(crate) mod turn;
pub(crate) mod upkeep;
mod value;
mod who;

use std::path::Path;

use shelf_base::{
    Digest, Fence, Moment,
    ids::{AccountId, CollectionId, DocumentId},
};

pub(crate) use connection::{Connection, Row, Rows};
pub(crate) use documents::Counts;
pub use transfer::Transferred;
pub(crate) use transfer::{copy, transfer};
pub(crate) use turn::Turn;
pub(crate) use value::{AsValue, Cell, OwnedValue, Value, params};

use crate::{
    Actor, BlobRow, Catalog, Changes, Chosen, Chunk, Collection, CollectionSummary, CopyNote, Document,
    DocumentChange, Filter, Listed, LooseBlock, Page, Position, Purge, Put, PutResult, PutState, Record,
    Result, RetiredPack, Revival, Scope, Shelf, Snapshot, SnapshotFilter, Source, Standing, TagChange,
    TypeFigures, Update, Version,
};

/// What a write looks at before it writes, and so what nobody else may change meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Touches {
    /// Rows that stand for themselves.
    Nothing,
    /// What an account has.
    Account(AccountId),
    /// What the account of a collection has.
    Collection(CollectionId),
    /// What the accounts of these documents have.
    Documents(Vec<DocumentId>),
    /// Something that is unique in the library, or all of it.
    Library,
}

/// A database that holds a catalog.
pub(crate) trait Backend: Send + Sync {
    /// Runs a query, perhaps more than once.
    fn read<T>(&self, query: impl FnMut(Connection<'_>) -> Result<T>) -> Result<T>;
    /// Runs several queries that must see one state.
    fn view<T>(&self, query: impl Fn(Connection<'_>) -> Result<T>) -> Result<T>;
    /// Runs `work` in a transaction, perhaps more than once; returns when it is durable.
    fn write<T: Send + 'static>(
        &self,
        touches: Touches,
        work: impl Fn(&Turn<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T>;
    /// The same if that waits for nobody else who writes; otherwise nothing is done, and the error is [`Busy`](crate::Error).
    fn write_now<T: Send + 'static>(
        &self,
        touches: Touches,
        work: impl Fn(&Turn<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T>;
    /// Runs `work` in one of the next transactions and does not wait for it; nobody hears of a failure.
    fn post(&self, work: impl Fn(&Turn<'_>) -> Result<()> + Send + 'static) -> Result<()>;
    /// Runs long work in a transaction beside which nobody writes.
    fn alone<T>(&self, work: impl Fn(&Turn<'_>) -> Result<T>) -> Result<T>;
    /// How many documents filters took lately.
    fn counts(&self) -> &Counts;
    /// See [`Catalog::release_memory`].
    fn release_memory(&self);
    /// See [`Catalog::place`].
    fn place(&self) -> String;
    /// See [`Catalog::is_shared`].
    fn is_shared(&self) -> bool;
    /// See [`Catalog::incarnation`].
    fn incarnation(&self) -> u64;
    /// See [`Catalog::clock`].
    fn clock(&self) -> Result<Option<Moment>> {
        Ok(None)
    }
    /// See [`Catalog::ping`].
    fn ping(&self) -> Result<()> {
        self.read(read::sequence).map(drop)
    }
    /// See [`Catalog::integrity`].
    fn integrity(&self) -> Result<Vec<String>>;
    /// See [`Catalog::write_copy`].
    fn write_copy(&self, target: &Path) -> Result<CopyNote>;
    /// See [`Catalog::write_backup`].
    fn write_backup(&self, target: &Path) -> Result<CopyNote>;
    /// See [`Catalog::bytes`].
    fn bytes(&self) -> Result<u64>;
    /// See [`Catalog::schema_version`].
    fn schema_version(&self) -> Result<u32>;
}

fn touched(put: &Put) -> Touches {
    match &put.collection {
        Shelf::Known(id) => Touches::Collection(*id),
        Shelf::Named(_) => Touches::Account(put.actor.account),
        // It may have to be made, and its id is unique in the library.
        Shelf::Book(_) => Touches::Library,
    }
}

impl<B: Backend> Catalog for B {
    fn release_memory(&self) {
        Backend::release_memory(self);
    }

    fn collections(&self, scope: &Scope) -> Result<Vec<CollectionSummary>> {
        self.view(|connection| read::collections(connection, scope))
    }

    fn collection(&self, scope: &Scope, name: &str) -> Result<Option<Collection>> {
        self.read(|connection| read::collection(connection, scope, name))
    }

    fn collection_ids(&self, scope: &Scope, name: Option<&str>) -> Result<Vec<CollectionId>> {
        self.read(|connection| read::collection_ids(connection, scope, name))
    }

    fn ensure_collection(&self, actor: &Actor, name: &str, now: Moment) -> Result<Collection> {
        if let Some(found) = self.collection(&Scope::Account(actor.account), name)? {
            return Ok(found);
        }
        let (account, actor, name) = (actor.account, actor.clone(), name.to_owned());
        self.write(Touches::Account(account), move |turn| put::make_collection(turn, &actor, &name, now))
    }

    fn known_collection(&self, scope: &Scope, id: CollectionId) -> Result<Option<Collection>> {
        self.read(|connection| read::known_collection(connection, scope, id))
    }

    fn collection_by_id(&self, scope: &Scope, id: CollectionId) -> Result<Option<CollectionSummary>> {
        self.read(|connection| read::collection_by_id(connection, scope, id))
    }

    fn active_tokens(&self, id: CollectionId, now: Moment) -> Result<u64> {
        self.read(|connection| shelves::active_tokens(connection, id, now))
    }

    fn create_collection(&self, actor: &Actor, name: &str, now: Moment) -> Result<Collection> {
        let (account, actor, name) = (actor.account, actor.clone(), name.to_owned());
        self.write(Touches::Account(account), move |turn| shelves::create(turn, &actor, &name, now))
    }

    fn rename_collection(
        &self,
        actor: &Actor,
        scope: &Scope,
        id: CollectionId,
        name: &str,
        now: Moment,
    ) -> Result<Option<Collection>> {
        let (actor, scope, name) = (actor.clone(), scope.clone(), name.to_owned());
        // The name of a book is unique in the library.
        self.write(Touches::Library, move |turn| shelves::rename(turn, &actor, &scope, id, &name, now))
    }

    fn delete_collection(&self, actor: &Actor, scope: &Scope, id: CollectionId, now: Moment) -> Result<bool> {
        let (actor, scope) = (actor.clone(), scope.clone());
        self.write(Touches::Collection(id), move |turn| shelves::delete(turn, &actor, &scope, id, now))
    }

    fn set_model(&self, actor: &Actor, id: CollectionId, model: Option<&str>, now: Moment) -> Result<()> {
        let (actor, model) = (actor.clone(), model.map(str::to_owned));
        self.write(Touches::Collection(id), move |turn| {
            shelves::set_model(turn, &actor, id, model.as_deref(), now)
        })
    }

    fn models(&self, scope: &Scope) -> Result<Vec<(CollectionId, Option<String>)>> {
        self.read(|connection| read::models(connection, scope))
    }

    fn put(&self, put: Put) -> Result<(Vec<PutResult>, Option<Snapshot>)> {
        match put.may_wait {
            true => self.write(touched(&put), move |turn| put::put(turn, &put)),
            false => self.write_now(touched(&put), move |turn| put::put(turn, &put)),
        }
    }

    fn store(&self, put: Put) -> Result<(DocumentId, PutState)> {
        match put.may_wait {
            true => self.write(touched(&put), move |turn| stored::store(turn, &put)),
            false => self.write_now(touched(&put), move |turn| stored::store(turn, &put)),
        }
    }

    fn change(
        &self,
        actor: &Actor,
        scope: &Scope,
        id: DocumentId,
        change: DocumentChange,
        now: Moment,
    ) -> Result<Option<Document>> {
        let (actor, scope) = (actor.clone(), scope.clone());
        self.write(Touches::Documents(vec![id]), move |turn| {
            stored::change(turn, &actor, &scope, id, &change, now)
        })
    }

    fn update(
        &self,
        actor: &Actor,
        scope: &Scope,
        id: DocumentId,
        update: &Update,
        now: Moment,
    ) -> Result<Option<Vec<TagChange>>> {
        let (actor, scope, update) = (actor.clone(), scope.clone(), update.clone());
        self.write(Touches::Documents(vec![id]), move |turn| {
            put::update(turn, &actor, &scope, id, &update, now)
        })
    }

    fn delete(
        &self,
        actor: &Actor,
        scope: &Scope,
        ids: &[DocumentId],
        now: Moment,
    ) -> Result<Vec<DocumentId>> {
        let (actor, scope, ids) = (actor.clone(), scope.clone(), ids.to_vec());
        self.write(Touches::Documents(ids.clone()), move |turn| {
            delete::delete(turn, &actor, &scope, &ids, now)
        })
    }

    fn revive(
        &self,
        actor: &Actor,
        scope: &Scope,
        id: DocumentId,
        revival: Revival,
        now: Moment,
    ) -> Result<Option<Document>> {
        let (actor, scope) = (actor.clone(), scope.clone());
        self.write(Touches::Documents(vec![id]), move |turn| {
            delete::revive(turn, &actor, &scope, id, &revival, now)
        })
    }

    fn document(&self, scope: &Scope, id: DocumentId) -> Result<Option<Document>> {
        self.read(|connection| documents::by_id(connection, scope, id))
    }

    fn named(
        &self,
        scope: &Scope,
        collection: Option<&str>,
        name: &str,
        most: usize,
    ) -> Result<Vec<Document>> {
        self.view(|connection| documents::named(connection, scope, collection, name, most))
    }

    fn hashed(&self, scope: &Scope, prefix: &str, most: usize) -> Result<Vec<(Document, Version)>> {
        self.view(|connection| documents::hashed(connection, scope, prefix, most))
    }

    fn list(&self, scope: &Scope, filter: &Filter, page: &Page) -> Result<Listed> {
        self.view(|connection| documents::list(connection, scope, filter, page, self.counts()))
    }

    fn choose_from(&self, scope: &Scope, filter: &Filter, position: &Position) -> Result<Chunk<Chosen>> {
        self.view(|connection| documents::choose(connection, scope, filter, position))
    }

    fn paths_from(&self, scope: &Scope, filter: &Filter, position: &Position) -> Result<Chunk<String>> {
        self.view(|connection| documents::paths(connection, scope, filter, position))
    }

    fn numbers_from(&self, scope: &Scope, filter: &Filter, position: &Position) -> Result<Chunk<i64>> {
        self.view(|connection| documents::numbers(connection, scope, filter, position))
    }

    fn numbered(&self, scope: &Scope, numbers: &[i64]) -> Result<Vec<Document>> {
        self.read(|connection| documents::numbered(connection, scope, numbers))
    }

    fn sources_from(
        &self,
        collection: CollectionId,
        folder: &str,
        position: &Position,
    ) -> Result<Chunk<Source>> {
        self.read(|connection| documents::sources(connection, collection, folder, position))
    }

    fn versions(&self, scope: &Scope, id: DocumentId) -> Result<Vec<Version>> {
        self.read(|connection| documents::versions(connection, scope, id))
    }

    fn type_figures(&self, scope: &Scope) -> Result<Vec<TypeFigures>> {
        self.read(|connection| read::type_figures(connection, scope))
    }

    fn live_manifests_from(&self, scope: &Scope, position: &Position) -> Result<Chunk<BlobRow>> {
        self.view(|connection| read::live_manifests(connection, scope, position))
    }

    fn blob(&self, hash: &Digest) -> Result<Option<BlobRow>> {
        self.read(|connection| read::blob(connection, hash))
    }

    fn blobs(&self, hashes: &[Digest]) -> Result<Vec<(Digest, BlobRow)>> {
        self.read(|connection| read::blobs_of(connection, hashes))
    }

    fn blobs_from(&self, position: &Position) -> Result<Chunk<(Digest, BlobRow)>> {
        self.read(|connection| read::blobs(connection, position))
    }

    fn loose(&self, ids: &[[u8; 32]]) -> Result<Vec<LooseBlock>> {
        self.read(|connection| read::loose(connection, ids))
    }

    fn loose_figures(&self) -> Result<(u64, u64)> {
        self.read(read::loose_figures)
    }

    fn loose_after(&self, after: Option<[u8; 32]>, most: usize) -> Result<Vec<LooseBlock>> {
        self.read(|connection| read::loose_after(connection, after, most))
    }

    fn drop_loose(&self, ids: &[[u8; 32]], fence: Option<&Fence>) -> Result<()> {
        let (ids, fence) = (ids.to_vec(), fence.cloned());
        self.write(Touches::Nothing, move |turn| upkeep::drop_loose(turn, &ids, fence.as_ref()))
    }

    fn snapshots(&self, scope: &Scope, filter: &SnapshotFilter<'_>, most: usize) -> Result<Vec<Snapshot>> {
        self.view(|connection| read::snapshots(connection, scope, filter, most))
    }

    fn newest_listing(&self, collection: CollectionId, root: &str) -> Result<Option<Digest>> {
        self.view(|connection| read::newest_listing(connection, collection, root))
    }

    fn snapshot_count(&self, scope: &Scope, filter: &SnapshotFilter<'_>) -> Result<u64> {
        self.view(|connection| read::snapshot_count(connection, scope, filter))
    }

    fn standing(&self) -> Result<Standing> {
        if Backend::is_shared(self) { self.read(retired::standing) } else { Ok(Standing::default()) }
    }

    fn claim_objects(&self, place: &str) -> Result<String> {
        let place = place.to_owned();
        self.write(Touches::Library, move |turn| retired::claim_objects(turn, &place))
    }

    fn move_objects(&self, place: &str, fence: Option<&Fence>) -> Result<()> {
        let (place, fence) = (place.to_owned(), fence.cloned());
        self.write(Touches::Library, move |turn| retired::move_objects(turn, &place, fence.as_ref()))
    }

    fn retired_packs(&self) -> Result<Vec<RetiredPack>> {
        self.read(retired::all)
    }

    fn retire_packs(&self, names: &[String], now: Moment, fence: Option<&Fence>) -> Result<()> {
        let (names, fence) = (names.to_vec(), fence.cloned());
        self.write(Touches::Nothing, move |turn| retired::retire(turn, &names, now, fence.as_ref()))
    }

    fn claim_packs(&self, until: Moment) -> Result<Vec<String>> {
        self.write(Touches::Nothing, move |turn| retired::claim(turn, until))
    }

    fn packs_gone(&self, names: &[String]) -> Result<()> {
        let names = names.to_vec();
        self.write(Touches::Nothing, move |turn| retired::gone(turn, &names))
    }

    fn revive_pack(&self, name: &str) -> Result<bool> {
        let name = name.to_owned();
        self.write(Touches::Nothing, move |turn| retired::revive(turn, &name))
    }

    fn place(&self) -> String {
        Backend::place(self)
    }

    fn is_shared(&self) -> bool {
        Backend::is_shared(self)
    }

    fn incarnation(&self) -> u64 {
        Backend::incarnation(self)
    }

    fn clock(&self) -> Result<Option<Moment>> {
        Backend::clock(self)
    }

    fn ping(&self) -> Result<()> {
        Backend::ping(self)
    }

    fn sequence(&self) -> Result<u64> {
        self.read(read::sequence)
    }

    fn journal(&self, after: u64, most: usize) -> Result<Vec<Record>> {
        self.read(|connection| read::journal(connection, after, most))
    }

    fn changes(&self, after: u64, until: u64) -> Result<Changes> {
        self.view(|connection| documents::changes(connection, after, until))
    }

    fn version_hashes_from(&self, position: &Position) -> Result<Chunk<(Digest, bool)>> {
        self.read(|connection| upkeep::version_hashes(connection, position))
    }

    fn version_count(&self) -> Result<u64> {
        self.read(upkeep::version_count)
    }

    fn purge(&self, actor: &Actor, purge: &Purge, now: Moment) -> Result<()> {
        self.alone(|turn| upkeep::purge(turn, actor, purge, now))
    }

    fn forget_stats(&self) -> Result<()> {
        self.write(Touches::Library, |turn| {
            turn.connection.execute("UPDATE documents SET stat = NULL", params![]).map(drop)
        })
    }

    fn integrity(&self) -> Result<Vec<String>> {
        Backend::integrity(self)
    }

    fn audit(&self) -> Result<Vec<String>> {
        self.view(audit::audit)
    }

    fn accept(&self, actor: &Actor, now: Moment) -> Result<u64> {
        self.alone(|turn| audit::accept(turn, actor, now))
    }

    fn write_copy(&self, target: &Path) -> Result<CopyNote> {
        Backend::write_copy(self, target)
    }

    fn write_backup(&self, target: &Path) -> Result<CopyNote> {
        Backend::write_backup(self, target)
    }

    fn bytes(&self) -> Result<u64> {
        Backend::bytes(self)
    }

    fn schema_version(&self) -> Result<u32> {
        Backend::schema_version(self)
    }
}
