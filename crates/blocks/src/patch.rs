//! New versions of a blob that consist of parts of an earlier version's blocks, and of what is new.
//!
//! Content-defined blocks are 16 KiB on average, so that a changed sentence stores a whole small document again. If the
//! earlier version is at hand, the parts that stayed need not be stored at all.

use std::{collections::HashSet, ops::Range};

use shelf_base::Digest;

use crate::{
    BlockRef, Manifest, Piece,
    cut::{self, Cut},
};

/// A part of the new version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// These bytes of the earlier version.
    Kept(Range<usize>),
    /// These bytes of the new version.
    New(Range<usize>),
}

/// Bytes that two versions must have in common for a part of its own: describing it takes about as many.
const KEPT: usize = 64;
/// The manifest of a document with parts is at most this fraction of its length.
pub const DOCUMENT: usize = 8;
/// The same of a list of many records, of which there may be very many versions.
pub const LIST: usize = 32;
/// Encoded bytes of a block in a manifest, and of a piece, about.
const BLOCK: usize = 36;
const PIECE: usize = 7;

/// The beginning and the end that two versions have in common, and what is new between them.
pub fn around_an_edit(earlier: &[u8], new: &[u8]) -> Vec<Part> {
    let head = common(earlier.iter().zip(new));
    let tail = common(earlier[head..].iter().rev().zip(new[head..].iter().rev()));
    let head = if head < KEPT { 0 } else { head };
    let tail = if tail < KEPT { 0 } else { tail };
    let parts = [
        Part::Kept(0..head),
        Part::New(head..new.len() - tail),
        Part::Kept(earlier.len() - tail..earlier.len()),
    ];
    parts.into_iter().filter(|part| !part.range().is_empty()).collect()
}

fn common<'b>(pairs: impl Iterator<Item = (&'b u8, &'b u8)>) -> usize {
    pairs.take_while(|(one, other)| one == other).count()
}

/// Makes the new version of these parts and passes the blocks that must be stored to `take`. `None`, and nothing is taken,
/// if storing it in full is better: most of it is new, or it would be scattered over too much.
///
/// The caller has to be sure that the earlier version's blocks exist, as with any block that a write omits. `fraction` bounds
/// the manifest: [`DOCUMENT`] or [`LIST`]. Parts that are kept come in any order; where they ascend, each takes little time.
pub fn patch<E>(
    earlier: &Manifest,
    parts: &[Part],
    new: &[u8],
    fraction: usize,
    mut take: impl FnMut(BlockRef, &[u8]) -> Result<(), E>,
) -> Result<Option<Cut>, E> {
    let literal: Vec<u8> = parts.iter().filter_map(|part| part.literal(new)).flatten().copied().collect();
    let placed = Placed::new(earlier);
    let kept: Vec<Vec<Piece>> = parts.iter().map(|part| part.pieces(&placed)).collect();
    if !is_worthwhile(&kept, &literal, new.len(), fraction) {
        return Ok(None);
    }
    let literal = cut::blocks(&literal, &mut take)?;
    let literal = Placed::new(&literal);
    let (mut pieces, mut used) = (Vec::new(), 0);
    for (part, kept) in parts.iter().zip(kept) {
        let found = match part {
            Part::Kept(_) => kept,
            Part::New(range) => {
                used += range.len();
                literal.under(used - range.len()..used)
            }
        };
        found.into_iter().for_each(|piece| push(&mut pieces, piece));
    }
    Ok(Some(Cut { hash: Digest::of(new), size: new.len() as u64, manifest: Manifest { pieces } }))
}

/// At most half is new; the description is short; and reading it takes at most twice as much as is wanted.
fn is_worthwhile(kept: &[Vec<Piece>], literal: &[u8], size: usize, fraction: usize) -> bool {
    let pieces = kept.iter().flatten();
    let blocks: HashSet<BlockRef> = pieces.clone().map(|piece| piece.block).collect();
    let blocks_length: usize = blocks.iter().map(|block| block.length as usize).sum();
    let described =
        (blocks.len() + literal.len().div_ceil(cut::AVERAGE)) * BLOCK + (pieces.count() + kept.len()) * PIECE;
    literal.len() <= size / 2 && described <= size / fraction && blocks_length + literal.len() <= 2 * size
}

impl Part {
    fn range(&self) -> &Range<usize> {
        match self {
            Self::Kept(range) | Self::New(range) => range,
        }
    }

    fn literal<'b>(&self, new: &'b [u8]) -> Option<&'b [u8]> {
        match self {
            Self::New(range) => Some(&new[range.clone()]),
            Self::Kept(_) => None,
        }
    }

    fn pieces(&self, earlier: &Placed<'_>) -> Vec<Piece> {
        match self {
            Self::Kept(range) => earlier.under(range.clone()),
            Self::New(_) => Vec::new(),
        }
    }
}

/// The pieces of a blob and where each begins.
struct Placed<'m> {
    pieces: &'m [Piece],
    starts: Vec<usize>,
}

impl<'m> Placed<'m> {
    fn new(manifest: &'m Manifest) -> Self {
        let starts = manifest.pieces.iter().scan(0, |end, piece| {
            let start = *end;
            *end += piece.length as usize;
            Some(start)
        });
        Self { pieces: &manifest.pieces, starts: starts.collect() }
    }

    /// The pieces under a range of the blob.
    fn under(&self, range: Range<usize>) -> Vec<Piece> {
        let first = self.starts.partition_point(|start| *start <= range.start).saturating_sub(1);
        let places = self.pieces.iter().zip(&self.starts).skip(first);
        let mut found = Vec::new();
        for (piece, start) in places.take_while(|(_, start)| **start < range.end) {
            let end = start + piece.length as usize;
            let (from, to) = (range.start.max(*start), range.end.min(end));
            if from < to {
                let skipped = (from - start) as u32;
                found.push(Piece { from: piece.from + skipped, length: (to - from) as u32, ..*piece });
            }
        }
        found
    }
}

/// Adds a piece, as one with the last one if that ends where this one begins.
fn push(pieces: &mut Vec<Piece>, piece: Piece) {
    match pieces.last_mut() {
        Some(last) if last.block == piece.block && last.from + last.length == piece.from => {
            last.length += piece.length;
        }
        _ => pieces.push(piece),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_insertion_is_one_part() {
        let earlier: Vec<u8> = (0..1_000_u32).flat_map(u32::to_le_bytes).collect();
        let new = [&earlier[..1_001], b"something else", &earlier[1_001..]].concat();
        let parts = around_an_edit(&earlier, &new);
        let [Part::Kept(head), Part::New(middle), Part::Kept(tail)] = &parts[..] else {
            panic!("{parts:?}");
        };
        assert_eq!((head.start, head.end, tail.end), (0, 1_001, 4_000));
        assert_eq!((middle.clone(), tail.start), (1_001..1_015, 1_001));
    }

    #[test]
    fn versions_with_little_in_common_are_all_new() {
        let (earlier, new) = (b"the same start, another end", b"the same start, no more");
        assert_eq!(around_an_edit(earlier, new), [Part::New(0..new.len())]);
        assert_eq!(around_an_edit(b"", b""), []);
    }

    #[test]
    fn repetition_at_the_edit_is_not_counted_twice() {
        // The common beginning and the common end would overlap.
        let (earlier, new) = (vec![b'a'; 300], vec![b'a'; 200]);
        let parts = around_an_edit(&earlier, &new);
        assert_eq!(parts, [Part::Kept(0..200)]);
    }
}
