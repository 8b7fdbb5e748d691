//! Folding: moving loose blocks from the catalog into a pack, in the background, when enough have gathered.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use shelf_blocks::{BlockId, BlockRef, Loose, Store};
use shelf_catalog::Catalog;

use crate::{House, Result, locks::Locks};

/// Loose bytes after which they are folded.
const DUE: u64 = 4 * 1_024 * 1_024;
/// Loose blocks that one fold takes at most.
const MOST: usize = 20_000;

/// Counts what this process has left loose since its last fold.
#[derive(Default)]
pub(crate) struct Folding {
    bytes: Arc<AtomicU64>,
}

impl House {
    /// Folds in the background when enough has gathered.
    pub(super) fn fold_when_due(&self, loose_bytes: usize) {
        let before = self.folding.bytes.fetch_add(loose_bytes as u64, Ordering::Relaxed);
        if before + (loose_bytes as u64) < DUE {
            return;
        }
        self.folding.bytes.store(0, Ordering::Relaxed);
        let (catalog, blocks, locks) = (self.catalog.clone(), self.blocks.clone(), self.locks.clone());
        // A fold that fails leaves everything as it was; the next one tries again.
        let _ = thread::Builder::new().name("fold".into()).spawn(move || fold(&*catalog, &blocks, &locks));
    }

    /// Folds every loose block now; the number of blocks moved.
    pub fn fold_now(&self) -> Result<u64> {
        let mut moved = 0;
        loop {
            match fold(&*self.catalog, &self.blocks, &self.locks)? {
                0 => return Ok(moved),
                more => moved += more,
            }
        }
    }
}

/// One fold: the pack is durable before the rows go.
fn fold(catalog: &dyn Catalog, blocks: &Store, locks: &Locks) -> Result<u64> {
    let Some(_alone) = locks.try_alone("fold").map_err(crate::Error::Lock)? else { return Ok(0) };
    let _writing = locks.write().map_err(crate::Error::Lock)?;
    let loose = catalog.oldest_loose(MOST)?;
    if loose.is_empty() {
        return Ok(0);
    }
    let batch = blocks.batch();
    let mut lane = batch.lane()?;
    for block in &loose {
        let id = BlockId::new(block.id);
        let bytes = Loose { id, bytes: block.bytes.clone() }.decode()?;
        lane.put(BlockRef { id, length: bytes.len() as u32 }, &bytes)?;
    }
    lane.finish()?;
    let _sealed = batch.seal()?;
    let ids: Vec<[u8; 32]> = loose.iter().map(|block| block.id).collect();
    catalog.drop_loose(&ids)?;
    Ok(ids.len() as u64)
}
