//! Collection of blocks that nothing needs: plan, then do.
//!
//! The caller says which blocks are needed and makes sure that nobody writes meanwhile. A pack of which nothing is
//! needed is deleted; one of which little is needed is rewritten: its live blocks go into a new pack first.

use std::collections::HashSet;

use crate::{BlockId, BlockRef, Error, Store};

/// A pack is rewritten when less than this share of its raw bytes is needed.
const KEEP_ABOVE_PERCENT: u64 = 70;

/// What a collection will do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Packs that go away whole.
    pub delete: Vec<String>,
    /// Packs whose live blocks move to new packs.
    pub rewrite: Vec<String>,
    /// Packs that stay.
    pub keep: u64,
    /// Stored bytes of the packs that go or are rewritten.
    pub touched_bytes: u64,
    /// About how many stored bytes become free.
    pub freed_bytes: u64,
}

impl Plan {
    /// Decides for every pack, given the blocks that are needed.
    pub fn make(store: &Store, live: &HashSet<BlockId>) -> Result<Self, Error> {
        store.refresh()?;
        let mut plan = Self::default();
        // A block in two packs is needed in one of them: the first that claims it.
        let mut claimed = HashSet::new();
        let mut packs = store.open_packs();
        packs.sort_by(|a, b| b.length.cmp(&a.length).then(a.name.cmp(&b.name)));
        for pack in packs {
            let total: u64 = pack.blocks.iter().map(|block| u64::from(block.length)).sum();
            let needed =
                pack.blocks.iter().filter(|block| live.contains(&block.id) && !claimed.contains(&block.id));
            let needed: Vec<_> = needed.collect();
            let kept: u64 = needed.iter().map(|block| u64::from(block.length)).sum();
            if kept == 0 && needed.is_empty() {
                plan.freed_bytes += pack.length;
                plan.touched_bytes += pack.length;
                plan.delete.push(pack.name.clone());
            } else if kept * 100 < total * KEEP_ABOVE_PERCENT {
                plan.freed_bytes += pack.length - pack.length * kept / total.max(1);
                plan.touched_bytes += pack.length;
                plan.rewrite.push(pack.name.clone());
            } else {
                plan.keep += 1;
            }
            claimed.extend(needed.iter().map(|block| block.id));
        }
        Ok(plan)
    }

    /// Carries the plan out. New packs are durable before old ones go, so a stop at any point loses nothing.
    pub fn run(&self, store: &Store, live: &HashSet<BlockId>) -> Result<(), Error> {
        let doomed: HashSet<&String> = self.rewrite.iter().chain(&self.delete).collect();
        let mut moves: Vec<BlockRef> = Vec::new();
        for pack in store.open_packs().iter().filter(|pack| self.rewrite.contains(&pack.name)) {
            let live = pack.blocks.iter().filter(|block| live.contains(&block.id));
            moves.extend(live.map(|block| BlockRef { id: block.id, length: block.length }));
        }
        let kept: Vec<_> =
            store.open_packs().into_iter().filter(|pack| !doomed.contains(&pack.name)).collect();
        moves.retain(|block| !kept.iter().any(|pack| pack.find(&block.id).is_some()));
        self.copy(store, &moves)?;
        for name in doomed {
            let failed = |source| Error::Storage { action: "delete", object: name.clone(), source };
            store.objects().delete(name).map_err(failed)?;
            store.forget(name);
        }
        let failed = |source| Error::Storage { action: "sweep", object: "unfinished packs".into(), source };
        store.objects().sweep().map_err(failed)?;
        Ok(())
    }

    fn copy(&self, store: &Store, moves: &[BlockRef]) -> Result<(), Error> {
        // Read through the full store, write through one that does not know the doomed packs.
        let target = Store::new(store.objects_handle());
        target.refresh()?;
        for name in self.rewrite.iter().chain(&self.delete) {
            target.forget(name);
        }
        let batch = target.batch();
        let mut lane = batch.lane()?;
        for block in moves {
            lane.put_alone(*block, &store.read(&block.id)?)?;
        }
        lane.finish()?;
        let _sealed = batch.seal()?;
        store.refresh()
    }
}
