//! Folding: moving loose blocks from the catalog into a pack, in the background, when enough have gathered.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
};

use parking_lot::Mutex;
use shelf_blocks::{BlockId, BlockRef, Loose, Store};
use shelf_catalog::Catalog;

use crate::{House, Result, locks::Locks};

/// Loose bytes after which they are folded.
const DUE: u64 = 4 * 1_024 * 1_024;
/// Loose blocks that one fold takes at most.
const MOST: usize = 20_000;

/// What lies loose, as far as this process knows, and the fold that is under way.
#[derive(Default)]
pub(crate) struct Folding {
    /// Set from the catalog by the first add, so that many short runs fold as one long one does.
    bytes: OnceLock<AtomicU64>,
    running: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Folding {
    /// A short run must not cut its own fold off.
    fn drop(&mut self) {
        if let Some(running) = self.running.get_mut().take() {
            let _ = running.join();
        }
    }
}

impl House {
    /// Folds in the background when enough has gathered.
    pub(crate) fn fold_when_due(&self, loose_bytes: usize) {
        let found = || AtomicU64::new(self.catalog.loose_figures().map_or(0, |(_, bytes)| bytes));
        let bytes = self.folding.bytes.get_or_init(found);
        let now = bytes.fetch_add(loose_bytes as u64, Ordering::Relaxed) + loose_bytes as u64;
        let mut running = self.folding.running.lock();
        if now < DUE || running.as_ref().is_some_and(|running| !running.is_finished()) {
            return;
        }
        bytes.store(0, Ordering::Relaxed);
        let (catalog, blocks, locks) = (self.catalog.clone(), self.blocks.clone(), self.locks.clone());
        // A fold that fails leaves everything as it was; the next one tries again.
        let started =
            thread::Builder::new().name("fold".into()).spawn(move || drop(fold(&*catalog, &blocks, &locks)));
        *running = started.ok();
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
    let loose = catalog.some_loose(MOST)?;
    if loose.is_empty() {
        return Ok(0);
    }
    let batch = blocks.batch();
    let mut lane = batch.lane()?;
    for block in &loose {
        let id = BlockId::new(block.id);
        let bytes = Loose { id, bytes: block.bytes.clone() }.decode()?;
        lane.put_alone(BlockRef { id, length: bytes.len() as u32 }, &bytes)?;
    }
    lane.finish()?;
    let _sealed = batch.seal()?;
    let ids: Vec<[u8; 32]> = loose.iter().map(|block| block.id).collect();
    catalog.drop_loose(&ids)?;
    Ok(ids.len() as u64)
}
