//! Collections by id: made, looked at, renamed, deleted.

use shelf_base::{CallContext, ids::CollectionId};
use shelf_catalog::{Collection, CollectionSummary};

use crate::{Caller, Error, Library, Result, commit::DropCollectionDraft, validate};

impl Library {
    /// Makes a collection of the caller's.
    pub fn create_collection(&self, caller: &Caller, name: &str) -> Result<Collection> {
        caller.must_write()?;
        validate::collection_name("name", name)?;
        Ok(self.catalog.create_collection(caller.pass.actor(), name, self.now())?)
    }

    /// A collection that the caller reaches, with its figures.
    pub fn collection_by_id(&self, caller: &Caller, id: &str) -> Result<CollectionSummary> {
        caller.must_read()?;
        let missing = || Error::missing("collection", id);
        let parsed: CollectionId = id.parse().map_err(|_| missing())?;
        self.catalog.collection_by_id(&caller.pass.reach(), parsed)?.ok_or_else(missing)
    }

    /// One of the collections that the caller's queries cover, with its figures.
    pub fn collection(&self, caller: &Caller, id: CollectionId) -> Result<Option<CollectionSummary>> {
        caller.must_read()?;
        Ok(self.catalog.collection_by_id(caller.pass.scope(), id)?)
    }

    /// A collection that the caller reaches, by its id. Whether it may read or write there is for whoever asks to check:
    /// who only writes names collections too.
    pub(crate) fn reachable_collection(&self, caller: &Caller, id: &str) -> Result<Collection> {
        let missing = || Error::missing("collection", id);
        let parsed: CollectionId = id.parse().map_err(|_| missing())?;
        self.catalog.known_collection(&caller.pass.reach(), parsed)?.ok_or_else(missing)
    }

    /// How many tokens of a collection work.
    pub fn active_collection_tokens(&self, id: CollectionId) -> Result<u64> {
        Ok(self.catalog.active_tokens(id, self.now())?)
    }

    /// Gives a collection another name.
    pub fn rename_collection(&self, caller: &Caller, id: &str, name: &str) -> Result<Collection> {
        caller.must_write()?;
        validate::collection_name("name", name)?;
        let missing = || Error::missing("collection", id);
        let parsed: CollectionId = id.parse().map_err(|_| missing())?;
        let scope = caller.pass.reach();
        let renamed =
            self.catalog.rename_collection(caller.pass.actor(), &scope, parsed, name, self.now())?;
        self.export_registry(caller.pass.actor());
        renamed.ok_or_else(missing)
    }

    /// Deletes a collection with its documents, snapshots and tokens, unless one of its tokens still works.
    pub fn delete_collection(&self, caller: &Caller, id: &str, call: &CallContext) -> Result<()> {
        caller.must_write()?;
        let missing = || Error::missing("collection", id);
        let parsed: CollectionId = id.parse().map_err(|_| missing())?;
        let scope = caller.pass.reach();
        let draft = DropCollectionDraft { actor: caller.pass.actor(), scope: &scope, id: parsed };
        let is_gone = self.commit(draft, call)?;
        self.export_registry(caller.pass.actor());
        if is_gone { Ok(()) } else { Err(missing()) }
    }

    /// The caller as it looks at one collection only, when it names one.
    pub(crate) fn looking_at(&self, caller: &Caller, collection: Option<&str>) -> Result<Caller> {
        caller.must_read()?;
        let Some(id) = collection else { return Ok(caller.clone()) };
        let found = self.reachable_collection(caller, id)?;
        Ok(Caller { pass: caller.pass.within(found.id), ..caller.clone() })
    }
}
