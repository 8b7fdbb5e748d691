//! Manifests that were read lately, in memory.
//!
//! A manifest belongs to a hash and does not change; asking the catalog for it costs as much as reading a small
//! document. Kept are those of documents of a few pieces.

use std::sync::Arc;

use shelf_base::{Digest, Recent};
use shelf_blocks::Piece;

/// Manifests that are kept: they take about 11 MB.
const KEPT: usize = 65_536;
/// Pieces that a kept manifest has at most; a larger document takes long to read anyway.
const PIECES: usize = 8;

/// What a document consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pieces {
    /// A single one, as most documents have.
    One(Piece),
    /// None, or several.
    Several(Arc<[Piece]>),
}

impl Pieces {
    pub(crate) fn of(pieces: &[Piece]) -> Self {
        match pieces {
            [one] => Self::One(*one),
            several => Self::Several(several.into()),
        }
    }

    pub(crate) fn all(&self) -> &[Piece] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Several(several) => several,
        }
    }
}

/// Manifests by hash.
pub(crate) struct Manifests(Recent<Digest, Pieces>);

impl Default for Manifests {
    fn default() -> Self {
        Self(Recent::new(KEPT))
    }
}

impl Manifests {
    /// What is known of each of these.
    pub(crate) fn get<'a>(&self, hashes: impl Iterator<Item = &'a Digest>) -> Vec<Option<Pieces>> {
        hashes.map(|hash| self.0.get(hash)).collect()
    }

    /// Lets all go.
    pub(crate) fn clear(&self) {
        self.0.clear();
    }

    pub(crate) fn keep(&self, hash: Digest, pieces: &Pieces) {
        if pieces.all().len() <= PIECES {
            self.0.keep(hash, pieces.clone(), 1);
        }
    }

    /// Forgets one that did not lead to its blocks: its content may have been collected and stored anew.
    pub(crate) fn forget(&self, hash: &Digest) {
        self.0.forget(hash);
    }
}

#[cfg(test)]
mod tests {
    use shelf_blocks::{BlockId, BlockRef};

    use super::*;

    fn number(number: u32) -> (Digest, Pieces) {
        let bytes = number.to_le_bytes();
        let block = BlockRef { id: BlockId::of(&bytes), length: number };
        (Digest::of(&bytes), Pieces::One(Piece::whole(block)))
    }

    #[test]
    fn what_is_asked_for_stays_and_the_rest_goes() {
        let manifests = Manifests::default();
        let get = |hash: Digest| manifests.get(std::iter::once(&hash)).remove(0);
        let (first, second) = (number(0), number(1));
        manifests.keep(first.0, &first.1);
        manifests.keep(second.0, &second.1);
        for more in 2..KEPT as u32 + 1 {
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
        let piece = Piece::whole(BlockRef { id: BlockId::of(b""), length: 0 });
        manifests.keep(hash, &Pieces::of(&vec![piece; PIECES + 1]));
        assert_eq!(manifests.get(std::iter::once(&hash)), [None]);
    }
}
