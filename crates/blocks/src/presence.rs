//! Whether a block may be left out of a write because the store has it already.
//!
//! A process remembers the packs it has seen, and that memory goes stale: another process may have deleted a pack
//! since, or somebody may have lost or damaged it. A write that leaves a block out refers to a pack for good, so it has
//! to know that the pack is still there. The caller holds the writers' lock, which keeps garbage collection away, from
//! before the first question until its transaction has committed; the answers hold for exactly that long.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use crate::{BlockId, Error, Store, pack::Index};

/// How closely a stored block is looked at before it is relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Its pack is there with its full length.
    Pack,
    /// Its bytes were read and have its hash.
    Bytes,
}

/// The answers of one write. Each pack is looked at once.
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

    /// Whether a pack that is there now holds the block.
    pub fn holds(&self, id: &BlockId) -> Result<bool, Error> {
        if self.store.is_damaged(id) {
            return Ok(false);
        }
        for (number, pack) in self.store.holders(id)? {
            let stands = *self.packs.lock().entry(number).or_insert_with(|| {
                self.store.objects().length(&pack.name).is_ok_and(|now| now == pack.length)
            });
            if !stands {
                self.store.forget(&pack.name);
            } else if self.trust == Trust::Pack || self.is_readable(number, &pack, id) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_readable(&self, number: u64, pack: &Index, id: &BlockId) -> bool {
        let dictionary = || {
            if let Some(known) = self.dictionaries.lock().get(&number) {
                return Ok(known.clone());
            }
            let read = Arc::new(pack.read_dictionary(self.store.objects())?);
            self.dictionaries.lock().insert(number, read.clone());
            Ok(read)
        };
        self.store.read_afresh(pack, id, dictionary).is_ok()
    }
}
