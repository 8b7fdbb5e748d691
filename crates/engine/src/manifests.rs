//! Manifests that were read lately, in memory.
//!
//! A manifest belongs to a hash and does not change; asking the catalog for it costs as much as reading a small
//! document. Kept are those of documents of a few blocks, in two generations: when the young one is full it becomes the
//! old one, and what is asked for again becomes young again.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use shelf_base::Digest;
use shelf_blocks::BlockRef;

/// Manifests of one generation: two of them take about 12 MB.
const GENERATION: usize = 1 << 16;
/// Blocks that a kept manifest has at most; a larger document takes long to read anyway.
const BLOCKS: usize = 8;

/// The blocks of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Blocks {
    /// A single one, as most documents have.
    One(BlockRef),
    /// None, or several.
    Several(Arc<[BlockRef]>),
}

impl Blocks {
    pub(crate) fn of(blocks: &[BlockRef]) -> Self {
        match blocks {
            [one] => Self::One(*one),
            several => Self::Several(several.into()),
        }
    }

    pub(crate) fn all(&self) -> &[BlockRef] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Several(several) => several,
        }
    }
}

/// Manifests by hash.
#[derive(Default)]
pub(crate) struct Manifests(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    young: HashMap<Digest, Blocks>,
    old: HashMap<Digest, Blocks>,
}

impl Manifests {
    /// What is known of each of these.
    pub(crate) fn get<'a>(&self, hashes: impl Iterator<Item = &'a Digest>) -> Vec<Option<Blocks>> {
        let mut kept = self.0.lock();
        hashes.map(|hash| kept.get(hash)).collect()
    }

    /// Lets all go.
    pub(crate) fn clear(&self) {
        *self.0.lock() = Kept::default();
    }

    pub(crate) fn keep(&self, hash: Digest, blocks: &Blocks) {
        if blocks.all().len() <= BLOCKS {
            self.0.lock().keep(hash, blocks.clone());
        }
    }

    /// Forgets one that did not lead to its blocks: its content may have been collected and stored anew.
    pub(crate) fn forget(&self, hash: &Digest) {
        let mut kept = self.0.lock();
        kept.young.remove(hash);
        kept.old.remove(hash);
    }
}

impl Kept {
    fn get(&mut self, hash: &Digest) -> Option<Blocks> {
        if let Some(found) = self.young.get(hash) {
            return Some(found.clone());
        }
        let found = self.old.remove(hash)?;
        self.keep(*hash, found.clone());
        Some(found)
    }

    fn keep(&mut self, hash: Digest, blocks: Blocks) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(hash, blocks);
    }
}

#[cfg(test)]
mod tests {
    use shelf_blocks::BlockId;

    use super::*;

    fn number(number: u32) -> (Digest, Blocks) {
        let bytes = number.to_le_bytes();
        (Digest::of(&bytes), Blocks::One(BlockRef { id: BlockId::of(&bytes), length: number }))
    }

    #[test]
    fn what_is_asked_for_stays_and_the_rest_goes() {
        let manifests = Manifests::default();
        let get = |hash: Digest| manifests.get(std::iter::once(&hash)).remove(0);
        let (first, second) = (number(0), number(1));
        manifests.keep(first.0, &first.1);
        manifests.keep(second.0, &second.1);
        for more in 2..2 * GENERATION as u32 {
            let (hash, blocks) = number(more);
            manifests.keep(hash, &blocks);
            assert_eq!(get(first.0).as_ref(), Some(&first.1));
        }
        assert!(get(second.0).is_none());
        manifests.forget(&first.0);
        assert!(get(first.0).is_none());
    }

    #[test]
    fn long_ones_are_not_kept() {
        let manifests = Manifests::default();
        let hash = Digest::of(b"long");
        manifests.keep(hash, &Blocks::of(&vec![BlockRef { id: BlockId::of(b""), length: 0 }; BLOCKS + 1]));
        assert_eq!(manifests.get(std::iter::once(&hash)), [None]);
    }
}
