//! Collections and snapshots: what there is, and the listing behind a snapshot.

use serde::{Serialize, de::DeserializeOwned};
use shelf_base::{CallContext, Digest, Moment};
use shelf_catalog::{CollectionSummary, Filter, Snapshot, SnapshotFilter, StoredListing};

use crate::{Caller, Entry, Error, Library, Listing, Result, commit::SnapshotCollectionDraft, validate};

impl Library {
    /// The caller's collections with their figures.
    pub fn collections(&self, caller: &Caller) -> Result<Vec<CollectionSummary>> {
        caller.must_read()?;
        let scope = caller.pass.scope();
        let sequence = self.catalog.sequence()?;
        self.remembered.collections(format!("{scope:?}"), sequence, || Ok(self.catalog.collections(scope)?))
    }

    /// The caller's collections after `cursor`, in an order of which `place` gives each one's place; and how many there
    /// are in all.
    pub fn collections_after<K: Ord + Serialize + DeserializeOwned>(
        &self,
        caller: &Caller,
        place: impl Fn(&CollectionSummary) -> K,
        cursor: Option<&str>,
    ) -> Result<(Vec<CollectionSummary>, u64)> {
        let mut found = self.collections(caller)?;
        let total = found.len() as u64;
        found.sort_by_cached_key(&place);
        if let Some(cursor) = cursor {
            let last: K = self.open_cursor(caller, COLLECTIONS, cursor)?;
            found.retain(|summary| place(summary) > last);
        }
        Ok((found, total))
    }

    /// The cursor that goes on after a collection, by its place.
    pub fn cursor_after_collection(&self, caller: &Caller, place: &impl Serialize) -> Result<String> {
        self.seal_cursor(caller, COLLECTIONS, place)
    }

    /// How many snapshots the caller has.
    pub fn snapshot_count(&self, caller: &Caller, collection: Option<&str>) -> Result<u64> {
        caller.must_read()?;
        if let Some(name) = collection {
            self.known_collection(caller, name)?;
        }
        let filter = SnapshotFilter { collection, ..SnapshotFilter::default() };
        Ok(self.catalog.snapshot_count(caller.pass.scope(), &filter)?)
    }

    /// The caller's snapshots after `cursor`, newest first, at most `most`.
    pub fn snapshots_after(
        &self,
        caller: &Caller,
        collection: Option<&str>,
        cursor: Option<&str>,
        most: usize,
    ) -> Result<Vec<Snapshot>> {
        caller.must_read()?;
        if let Some(name) = collection {
            self.known_collection(caller, name)?;
        }
        let before = cursor
            .map(|cursor| self.open_cursor::<i64>(caller, &snapshot_question(collection), cursor))
            .transpose()?
            .map(Moment::from_micros);
        let filter = SnapshotFilter { collection, before, ..SnapshotFilter::default() };
        Ok(self.catalog.snapshots(caller.pass.scope(), &filter, most)?)
    }

    /// The snapshot with this id.
    pub fn snapshot(&self, caller: &Caller, id: &str) -> Result<Option<Snapshot>> {
        caller.must_read()?;
        let Ok(at) = id.parse::<Moment>() else { return Ok(None) };
        let filter = SnapshotFilter { at: Some(at), ..SnapshotFilter::default() };
        Ok(self.catalog.snapshots(caller.pass.scope(), &filter, 1)?.pop())
    }

    /// The cursor that goes on after `snapshot`.
    pub fn cursor_after_snapshot(
        &self,
        caller: &Caller,
        collection: Option<&str>,
        snapshot: &Snapshot,
    ) -> Result<String> {
        self.seal_cursor(caller, &snapshot_question(collection), &snapshot.at.micros())
    }

    /// The files of a snapshot.
    pub fn listing(&self, snapshot: &Snapshot, call: &CallContext) -> Result<Listing> {
        let failed = |what| Error::Listing { snapshot: snapshot.at.with_micros(), what };
        match &snapshot.draft.stored {
            StoredListing::Inline(bytes) if Digest::of(bytes) == snapshot.draft.listing => {
                Listing::decode(bytes).map_err(failed)
            }
            StoredListing::Inline(_) => Err(failed("it does not have its hash")),
            StoredListing::Blob { .. } => {
                let bytes = self.blobs.read_blob(call, &snapshot.draft.listing)?;
                Listing::decode(&bytes).map_err(failed)
            }
        }
    }

    /// Makes a snapshot of a whole collection as it is now.
    pub fn snapshot_collection(
        &self,
        caller: &Caller,
        name: &str,
        label: Option<&str>,
        call: &CallContext,
    ) -> Result<Snapshot> {
        caller.must_write()?;
        label.map_or(Ok(()), validate::label)?;
        self.known_collection(caller, name)?;
        self.commit(SnapshotCollectionDraft { caller, name, label }, call)
    }

    /// What a collection holds now, by whole paths.
    pub(crate) fn present_listing(&self, caller: &Caller, collection: &str) -> Result<Listing> {
        let filter = Filter { collection: Some(collection.to_owned()), ..Filter::default() };
        let chosen = self.catalog.choose(caller.pass.scope(), &filter)?;
        Ok(Listing::new(chosen.into_iter().map(|chosen| Entry {
            path: chosen.path,
            hash: chosen.version.hash,
            size: chosen.version.size,
            mode: chosen.version.mode,
            modified_at: chosen.version.modified_at,
            link: None,
        })))
    }

    /// The one snapshot that an id or a label means; of several with one label the newest.
    pub(crate) fn one_snapshot(
        &self,
        caller: &Caller,
        collection: Option<&str>,
        id: Option<&str>,
        label: Option<&str>,
    ) -> Result<Snapshot> {
        caller.must_read()?;
        if let Some(name) = collection {
            self.known_collection(caller, name)?;
        }
        let at = match id {
            Some(id) => {
                let parsed: Result<Moment, _> = id.parse();
                Some(parsed.map_err(|_| Error::missing("snapshot", id))?)
            }
            None => None,
        };
        let scope = caller.pass.scope();
        let filter = SnapshotFilter { collection, at, label, before: None };
        if let Some(found) = self.catalog.snapshots(scope, &filter, 1)?.pop() {
            return Ok(found);
        }
        let asked = id.or(label).unwrap_or_default();
        let mut near = Vec::new();
        if let Some(label) = label {
            let all = SnapshotFilter { collection, ..SnapshotFilter::default() };
            let known = self.catalog.snapshots(scope, &all, LABELS_LOOKED_AT)?;
            near = shelf_base::nearest(label, known.iter().filter_map(|s| s.draft.label.as_deref()), 3);
        }
        Err(Error::NotFound { what: "snapshot", id: asked.to_owned(), near })
    }

    pub(crate) fn known_collection(&self, caller: &Caller, name: &str) -> Result<()> {
        if self.catalog.collection(caller.pass.scope(), name)?.is_some() {
            return Ok(());
        }
        let known = self.catalog.collections(caller.pass.scope())?;
        let near = shelf_base::nearest(name, known.iter().map(|known| known.collection.name.as_str()), 3);
        Err(Error::NotFound { what: "collection", id: name.to_owned(), near })
    }
}

/// Snapshots among which a similar label is looked for.
const LABELS_LOOKED_AT: usize = 1_000;
/// What cursors of collections are bound to.
const COLLECTIONS: &str = "collections";

fn snapshot_question(collection: Option<&str>) -> String {
    format!("snapshots {collection:?}")
}
