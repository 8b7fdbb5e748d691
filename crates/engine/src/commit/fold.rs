//! Folding: moving loose blocks from the catalog into a pack, in the background, when enough have gathered.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use parking_lot::Mutex;
use shelf_base::CallContext;
use shelf_blocks::{BlockId, BlockRef, Loose, Store, Trust};
use shelf_catalog::{Catalog, LooseBlock};

use crate::{Library, Result, locks::Locks};

/// Loose bytes after which they are folded.
const DUE: u64 = 4 * 1_024 * 1_024;
/// Loose blocks that one fold takes at most.
const MOST: usize = 20_000;
/// How long a fold waits for a garbage collection.
const PATIENCE: Duration = Duration::from_secs(60);

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

impl Library {
    /// Folds in the background when enough has gathered.
    pub(crate) fn fold_when_due(&self, loose_bytes: usize) {
        self.reserve.wrote();
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
        let started = thread::Builder::new()
            .name("fold".into())
            .spawn(move || drop(fold_all(&*catalog, &blocks, &locks)));
        *running = started.ok();
    }

    /// Folds every loose block now; the number of blocks moved.
    pub fn fold_now(&self) -> Result<u64> {
        fold_all(&*self.catalog, &self.blocks, &self.locks)
    }
}

fn fold_all(catalog: &dyn Catalog, blocks: &Store, locks: &Locks) -> Result<u64> {
    let Some(_alone) = locks.try_alone("fold")? else { return Ok(0) };
    let (mut moved, mut after) = (0, None);
    loop {
        let loose = catalog.loose_after(after, MOST)?;
        let Some(last) = loose.last() else { return Ok(moved) };
        after = Some(last.id);
        moved += fold(catalog, blocks, locks, &loose)?;
    }
}

/// One fold: the pack is durable before the rows go. A block that does not decode stays where it is: `check` names it,
/// and whoever sends its content again heals it.
fn fold(catalog: &dyn Catalog, blocks: &Store, locks: &Locks, loose: &[LooseBlock]) -> Result<u64> {
    let writing = locks.write(&CallContext::new().within(PATIENCE))?;
    // The row is the good copy as long as the pack's has not been read.
    let batch = blocks.batch(Trust::Bytes);
    let mut writer = batch.writer()?;
    let mut folded = Vec::with_capacity(loose.len());
    for block in loose {
        let id = BlockId::new(block.id);
        match (Loose { id, bytes: block.bytes.clone() }).decode() {
            Ok(bytes) => {
                writer.put_alone(BlockRef { id, length: bytes.len() as u32 }, &bytes)?;
                folded.push(block.id);
            }
            Err(error) => tracing::warn!(%error, "a block was left out of a fold"),
        }
    }
    writer.finish()?;
    let _sealed = batch.seal()?;
    catalog.drop_loose(&folded, writing.fence())?;
    Ok(folded.len() as u64)
}
