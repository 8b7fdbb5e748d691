//! Decides whether a block may be omitted from a write because the store already has it.
//!
//! A process remembers the packs it has seen, and that knowledge goes stale: another process may have deleted a pack
//! since, or a pack may have been lost or damaged. A write that omits a block refers to an existing pack permanently,
//! so it has to be sure that the pack is still there. The caller holds the writers' lock, which blocks garbage
//! collection, from before the first check until its transaction has committed; the answers are valid until then.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use crate::{BlockId, Error, Store, pack::Index, store::storage};

/// How thoroughly a stored block is checked before a write relies on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Its pack exists and has the expected length.
    Pack,
    /// Its bytes were read and match its hash.
    Bytes,
}

/// The checks made for one write. Each pack is checked once.
pub struct Presence<'a> {
    store: &'a Store,
    trust: Trust,
    packs: Mutex<HashMap<u64, bool>>,
    /// Dictionaries that were read from storage for this write.
    dictionaries: Mutex<HashMap<u64, Arc<Vec<u8>>>>,
}

impl<'a> Presence<'a> {
    pub(crate) fn new(store: &'a Store, trust: Trust) -> Self {
        Self { store, trust, packs: Mutex::default(), dictionaries: Mutex::default() }
    }

    /// Whether a pack that currently exists contains the block.
    pub fn holds(&self, id: &BlockId) -> Result<bool, Error> {
        if self.store.is_damaged(id) {
            return Ok(false);
        }
        for (number, pack) in self.store.holders(id)? {
            if self.store.objects().is_retired(&pack.name) {
                continue;
            }
            if !self.stands(number, &pack)? {
                self.store.forget(&pack.name);
            } else if self.trust == Trust::Pack || self.is_readable(number, &pack, id) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a pack exists with the expected length.
    fn stands(&self, number: u64, pack: &Index) -> Result<bool, Error> {
        let mut packs = self.packs.lock();
        if let Some(known) = packs.get(&number) {
            return Ok(*known);
        }
        let stands = match self.store.objects().length(&pack.name) {
            Ok(now) => now == pack.length,
            Err(source) => {
                let error = storage("look for", &pack.name, source);
                // Storing all that is already there would not help while the store is out of reach.
                if error.is_out_of_reach() {
                    return Err(error);
                }
                false
            }
        };
        packs.insert(number, stands);
        Ok(stands)
    }

    fn is_readable(&self, number: u64, pack: &Index, id: &BlockId) -> bool {
        let dictionary = || {
            if let Some(known) = self.dictionaries.lock().get(&number) {
                return Ok(known.clone());
            }
            let read = Arc::new(pack.read_dictionary(self.store.truth())?);
            self.dictionaries.lock().insert(number, read.clone());
            Ok(read)
        };
        self.store.read_afresh(pack, id, dictionary).is_ok()
    }
}
