//! Garbage collection of packs: plan, copy, delete.
//!
//! The caller says which blocks are needed. A pack of which nothing is needed is deleted; one of which little is needed
//! is rewritten: its living blocks go into a new pack first. Copying disturbs nobody, so it needs no lock and may take
//! its time. Deleting needs the certainty that nobody relies on a pack meanwhile: the caller keeps writers out, plans
//! again with what is needed by then, and only what that plan still names is deleted.

use std::collections::HashSet;

use crate::{BlockId, BlockRef, Error, Store, Trust};

/// A pack is rewritten when less than this share of its raw bytes is needed.
const KEEP_ABOVE_PERCENT: u64 = 70;

/// What garbage collection will do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Packs that go away whole.
    pub delete: Vec<String>,
    /// Packs whose living blocks move to new packs.
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
        Self::default().again(store, live)
    }

    /// Decides once more, after [`copy`](Self::copy) and with what is needed by now. Packs that this plan wanted to
    /// empty are not relied on where another pack has the block.
    pub fn again(&self, store: &Store, live: &HashSet<BlockId>) -> Result<Self, Error> {
        store.refresh()?;
        let emptied: HashSet<&String> = self.rewrite.iter().collect();
        let mut plan = Self::default();
        // A block in two packs is needed in one of them: the first that claims it.
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

    /// Copies the living blocks of packs that are to be rewritten into new packs, whose names it gives. `go_on` is asked
    /// now and then.
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
        // Read through the full store, write through one that does not know the packs that go.
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

    /// Carries the plan out, while nobody writes. New packs are durable before old ones go, so a stop at any point
    /// loses nothing.
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

    /// Living blocks of packs that are to be rewritten, as far as no pack that stays has them.
    fn moves(&self, store: &Store, live: &HashSet<BlockId>) -> Vec<BlockRef> {
        let rewritten: HashSet<&String> = self.rewrite.iter().collect();
        let doomed: HashSet<&String> = self.rewrite.iter().chain(&self.delete).collect();
        let packs = store.open_packs();
        let mut moves: Vec<BlockRef> = Vec::new();
        let mut wanted = HashSet::new();
        for pack in packs.iter().filter(|pack| rewritten.contains(&pack.name)) {
            let living = pack.blocks.iter().filter(|block| live.contains(&block.id));
            let first = living.filter(|block| wanted.insert(block.id));
            moves.extend(first.map(|block| BlockRef { id: block.id, length: block.length }));
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
