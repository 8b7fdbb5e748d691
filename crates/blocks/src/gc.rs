//! Garbage collection of packs: plan, copy, delete.
//!
//! The caller provides the set of live blocks. A pack without live blocks is deleted; a pack with few of them is
//! rewritten: its live blocks are first copied to a new pack. Copying does not interfere with other operations, so it
//! needs no lock and may take long. Deleting requires that no writer starts to rely on a pack meanwhile: the caller
//! locks out writers and plans again with the blocks that are live by then; only packs in that plan are deleted.

use std::collections::HashSet;

use crate::{BlockId, BlockRef, Error, Store, Trust};

/// A pack is rewritten when less than this share of its raw bytes is live.
const KEEP_ABOVE_PERCENT: u64 = 70;

/// What garbage collection will do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Packs to delete.
    pub delete: Vec<String>,
    /// Packs to delete after their live blocks have been copied to new packs.
    pub rewrite: Vec<String>,
    /// The number of packs that are kept.
    pub keep: u64,
    /// Stored bytes of the packs that are deleted or rewritten.
    pub touched_bytes: u64,
    /// Approximate number of stored bytes that will be freed.
    pub freed_bytes: u64,
}

impl Plan {
    /// Decides what to do with every pack, given the live blocks.
    pub fn make(store: &Store, live: &HashSet<BlockId>) -> Result<Self, Error> {
        Self::default().again(store, live)
    }

    /// Plans again after [`copy`](Self::copy), with the blocks that are live by now. A block that is also in another
    /// pack is not kept in a pack that this plan was going to rewrite.
    pub fn again(&self, store: &Store, live: &HashSet<BlockId>) -> Result<Self, Error> {
        store.refresh()?;
        let emptied: HashSet<&String> = self.rewrite.iter().collect();
        let mut plan = Self::default();
        // A block in two packs is needed in only one of them: the first that claims it.
        let mut claimed = HashSet::new();
        let mut packs = store.open_packs();
        let last = |name: &String| emptied.contains(name);
        packs.sort_by(|a, b| {
            last(&a.name).cmp(&last(&b.name)).then(b.length.cmp(&a.length)).then(a.name.cmp(&b.name))
        });
        for pack in packs {
            let total: u64 = pack.blocks.iter().map(|block| u64::from(block.length)).sum();
            let needed =
                pack.blocks.iter().filter(|block| live.contains(&block.id) && !claimed.contains(&block.id));
            let needed: Vec<_> = needed.collect();
            let kept: u64 = needed.iter().map(|block| u64::from(block.length)).sum();
            if needed.is_empty() {
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

    /// Copies the live blocks of the packs to be rewritten into new packs, and returns the names of the new packs.
    /// Copying stops early when `go_on`, which is called before every block, returns false.
    pub fn copy(
        &self,
        store: &Store,
        live: &HashSet<BlockId>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<HashSet<String>, Error> {
        let moves = self.moves(store, live);
        if moves.is_empty() {
            return Ok(HashSet::new());
        }
        // Read through the full store, and write through one that does not see the packs to be removed.
        let target = Store::new(store.objects_handle());
        target.refresh()?;
        for name in self.rewrite.iter().chain(&self.delete) {
            target.forget(name);
        }
        let batch = target.batch(Trust::Pack);
        let mut writer = batch.writer()?;
        for block in moves.iter().take_while(|_| go_on()) {
            writer.put_alone(*block, &store.read(&block.id)?)?;
        }
        writer.finish()?;
        let _sealed = batch.seal()?;
        store.refresh()?;
        Ok(batch.written())
    }

    /// Executes the plan. There must be no concurrent writers. New packs are durable before old ones are deleted, so an
    /// interruption at any point loses nothing.
    pub fn run(&self, store: &Store, live: &HashSet<BlockId>) -> Result<(), Error> {
        let written = self.copy(store, live, &mut || true)?;
        for name in self.rewrite.iter().chain(&self.delete).filter(|name| !written.contains(*name)) {
            let failed = |source| Error::Storage { action: "delete", object: name.clone(), source };
            store.objects().delete(name).map_err(failed)?;
            store.forget(name);
        }
        let failed = |source| Error::Storage { action: "sweep", object: "unfinished packs".into(), source };
        store.objects().sweep().map_err(failed)?;
        Ok(())
    }

    /// Live blocks of the packs to be rewritten that are in none of the packs that are kept.
    fn moves(&self, store: &Store, live: &HashSet<BlockId>) -> Vec<BlockRef> {
        let rewritten: HashSet<&String> = self.rewrite.iter().collect();
        let doomed: HashSet<&String> = self.rewrite.iter().chain(&self.delete).collect();
        let packs = store.open_packs();
        let mut moves: Vec<BlockRef> = Vec::new();
        let mut wanted = HashSet::new();
        for pack in packs.iter().filter(|pack| rewritten.contains(&pack.name)) {
            let living = pack.blocks.iter().filter(|block| live.contains(&block.id));
            let mut first: Vec<_> = living.filter(|block| wanted.insert(block.id)).collect();
            // In the order in which they were written: neighbours have most in common.
            first.sort_by_key(|block| (block.frame, block.offset));
            moves.extend(first.iter().map(|block| BlockRef { id: block.id, length: block.length }));
        }
        for pack in packs.iter().filter(|pack| !doomed.contains(&pack.name)) {
            for block in &pack.blocks {
                wanted.remove(&block.id);
            }
        }
        moves.retain(|block| wanted.contains(&block.id));
        moves
    }
}
