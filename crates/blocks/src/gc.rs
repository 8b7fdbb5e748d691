//! Garbage collection of packs: plan, copy, delete.
//!
//! The caller provides the set of live blocks. A pack without live blocks is deleted; a pack with few of them is
//! rewritten: its live blocks are first copied to a new pack. Copying does not interfere with other operations, so it
//! needs no lock and may take long. Deleting requires that no writer starts to rely on a pack meanwhile: the caller
//! locks out writers and plans again with the blocks that are live by then; only packs in that plan are deleted.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use crate::{BlockId, BlockRef, Error, Store, Trust, frame::Codec, pack::Index};

/// A pack is rewritten when less than this share of its raw bytes is live.
const KEEP_ABOVE_PERCENT: u64 = 70;
/// A wide dictionary takes up to a megabyte of each pack, so it is kept for so many bytes at least.
const WORTHWHILE: u64 = 4 << 20;

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
    /// pack is not kept in a pack that this plan was going to rewrite or delete.
    pub fn again(&self, store: &Store, live: &HashSet<BlockId>) -> Result<Self, Error> {
        store.refresh()?;
        let emptied: HashSet<&String> = self.rewrite.iter().chain(&self.delete).collect();
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
        let mut written = HashSet::new();
        for moves in &moves {
            let batch = target.batch(Trust::Pack);
            let mut writer = batch.writer()?;
            if let Some(dictionary) = &moves.dictionary {
                writer.use_wide(dictionary.read_dictionary(store.objects())?)?;
            }
            for block in moves.blocks.iter().take_while(|_| go_on()) {
                let bytes = store.read(&block.id)?;
                match moves.dictionary {
                    // They are of one document, as far as anyone can tell.
                    Some(_) => writer.put(*block, &bytes)?,
                    None => writer.put_alone(*block, &bytes)?,
                }
            }
            writer.finish()?;
            let _sealed = batch.seal()?;
            written.extend(batch.written());
        }
        store.refresh()?;
        Ok(written)
    }

    /// Executes the plan. There must be no concurrent writers. New packs are durable before old ones are deleted, so an
    /// interruption at any point loses nothing.
    pub fn run(&self, store: &Store, live: &HashSet<BlockId>) -> Result<(), Error> {
        delete_all(store, &self.copy_rest(store, live)?)?;
        let failed = |source| Error::Storage { action: "sweep", object: "unfinished packs".into(), source };
        store.objects().sweep().map_err(failed)?;
        Ok(())
    }

    /// Copies what has to be kept of the packs that go; their names. There must be no concurrent writers.
    pub fn copy_rest(&self, store: &Store, live: &HashSet<BlockId>) -> Result<Vec<String>, Error> {
        let written = self.copy(store, live, &mut || true)?;
        let doomed = self.rewrite.iter().chain(&self.delete).filter(|name| !written.contains(*name));
        Ok(doomed.cloned().collect())
    }

    /// A plan for packs that were marked before: they go first, and what is also in another pack is kept there.
    pub fn with_retired(retired: Vec<String>) -> Self {
        Self { rewrite: retired, ..Self::default() }
    }

    /// Live blocks of the packs to be rewritten that are in none of the packs that are kept. Those of packs with the same
    /// wide dictionary stay together and keep it, provided that enough of what it was made for is left.
    fn moves(&self, store: &Store, live: &HashSet<BlockId>) -> Vec<Moves> {
        let rewritten: HashSet<&String> = self.rewrite.iter().collect();
        let doomed: HashSet<&String> = self.rewrite.iter().chain(&self.delete).collect();
        let packs = store.open_packs();
        let mut wanted: HashSet<BlockId> = HashSet::new();
        for pack in packs.iter().filter(|pack| rewritten.contains(&pack.name)) {
            wanted.extend(pack.blocks.iter().map(|block| block.id).filter(|id| live.contains(id)));
        }
        for block in packs.iter().filter(|pack| !doomed.contains(&pack.name)).flat_map(|pack| &pack.blocks) {
            wanted.remove(&block.id);
        }
        let mut by_dictionary: BTreeMap<Option<[u8; 32]>, Moves> = BTreeMap::new();
        for pack in packs.iter().filter(|pack| rewritten.contains(&pack.name)) {
            let mut own: Vec<_> = pack.blocks.iter().filter(|block| wanted.remove(&block.id)).collect();
            // In the order in which they were written: neighbours have most in common.
            own.sort_by_key(|block| (block.frame, block.offset));
            let worded = own.iter().filter(|block| pack.frames[block.frame as usize].codec == Codec::Worded);
            let worded: u64 = worded.map(|block| u64::from(block.length)).sum();
            let wide = pack.is_wide().then(|| pack.read_dictionary(store.objects()).ok()).flatten();
            let key = wide.as_ref().map(|raw| *blake3::hash(raw).as_bytes());
            let moves = by_dictionary.entry(key).or_default();
            moves.dictionary = wide.is_some().then(|| pack.clone());
            moves.worded += worded;
            moves.blocks.extend(own.iter().map(|block| BlockRef { id: block.id, length: block.length }));
        }
        let mut plain = Vec::new();
        let mut moves = Vec::new();
        for found in by_dictionary.into_values() {
            if found.dictionary.is_some() && found.worded >= WORTHWHILE {
                moves.push(found);
            } else {
                plain.extend(found.blocks);
            }
        }
        if !plain.is_empty() {
            moves.push(Moves { blocks: plain, ..Moves::default() });
        }
        moves
    }
}

/// The stored bytes of those of these packs that the store knows.
pub fn stored_bytes(store: &Store, names: &[String]) -> u64 {
    let names: HashSet<&String> = names.iter().collect();
    store.open_packs().iter().filter(|pack| names.contains(&pack.name)).map(|pack| pack.length).sum()
}

/// Deletes packs, as many at a time as the storage is good for.
pub fn delete_all(store: &Store, names: &[String]) -> Result<(), Error> {
    let delete = |name: &String| {
        let failed = |source| Error::Storage { action: "delete", object: name.clone(), source };
        store.objects().delete(name).map_err(failed)?;
        store.forget(name);
        Ok(())
    };
    let threads = store.objects().parallel().min(names.len()).max(1);
    if threads == 1 {
        return names.iter().try_for_each(&delete);
    }
    let share = names.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let delete = &delete;
        let running: Vec<_> =
            names.chunks(share).map(|names| scope.spawn(move || names.iter().try_for_each(delete))).collect();
        let gone = || Err(Error::damaged("garbage collection", "a thread of it ended early"));
        running.into_iter().try_for_each(|running| running.join().unwrap_or_else(|_| gone()))
    })
}

/// Blocks that move into the same new packs.
#[derive(Default)]
struct Moves {
    /// A pack with the wide dictionary that they keep.
    dictionary: Option<Arc<Index>>,
    blocks: Vec<BlockRef>,
    /// Bytes of the blocks that are compressed with the dictionary.
    worded: u64,
}
