//! Content-defined chunking: splits content into blocks (FastCDC, 2020).
//!
//! A cut depends only on the bytes near it, so an insertion moves only the cuts around it: the blocks after the edit
//! stay the same.

use std::io::Read;

use fastcdc::v2020;
use shelf_base::{Digest, DigestWriter};

use crate::{BlockId, BlockRef, Error, Manifest, Piece};

/// The minimum block length; only the last block of a blob may be shorter.
pub const MIN: usize = 4 * 1_024;
/// The target block length. Measured on five generations of a tree: 16 KiB stores less than 8 KiB (index overhead) and
/// less than 32 or 64 KiB (larger blocks around each edit).
pub const AVERAGE: usize = 16 * 1_024;
/// The maximum block length.
pub const MAX: usize = 64 * 1_024;

const WINDOW: usize = 4 * 1_024 * 1_024;

/// A blob that has been cut: its hash, its length and its blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// SHA-256 of the whole blob.
    pub hash: Digest,
    /// Length in bytes.
    pub size: u64,
    /// The blocks in order.
    pub manifest: Manifest,
}

/// Returns the end of the first block of `bytes`.
fn first_cut(bytes: &[u8]) -> usize {
    if bytes.len() <= MIN {
        return bytes.len();
    }
    let (short, long) = v2020::select_masks(AVERAGE, v2020::Normalization::Level1);
    v2020::cut(bytes, MIN, AVERAGE, MAX, short, long, short << 1, long << 1).1
}

/// Cuts bytes that are in memory and passes each block to `take`.
pub fn slice<E>(bytes: &[u8], take: impl FnMut(BlockRef, &[u8]) -> Result<(), E>) -> Result<Cut, E> {
    let manifest = blocks(bytes, take)?;
    Ok(Cut { hash: Digest::of(bytes), size: bytes.len() as u64, manifest })
}

/// The same without the hash of all.
pub(crate) fn blocks<E>(
    bytes: &[u8],
    mut take: impl FnMut(BlockRef, &[u8]) -> Result<(), E>,
) -> Result<Manifest, E> {
    let mut manifest = Manifest::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (block, after) = rest.split_at(first_cut(rest));
        take_block(&mut manifest, block, &mut take)?;
        rest = after;
    }
    Ok(manifest)
}

/// Cuts a stream of any length using a few megabytes of memory; the cuts are the same as those of [`slice()`].
pub fn stream<E: From<Error>>(
    mut source: impl Read,
    mut take: impl FnMut(BlockRef, &[u8]) -> Result<(), E>,
) -> Result<Cut, E> {
    let mut digest = DigestWriter::new();
    let mut manifest = Manifest::default();
    let mut window = vec![0; WINDOW];
    let (mut filled, mut size, mut at_end) = (0, 0_u64, false);
    loop {
        while !at_end && filled < window.len() {
            match source.read(&mut window[filled..]) {
                Ok(0) => at_end = true,
                Ok(count) => {
                    digest.update(&window[filled..filled + count]);
                    filled += count;
                    size += count as u64;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::Source(error).into()),
            }
        }
        let mut start = 0;
        // A cut is final only if the window held a maximum-length block or the end of the stream.
        while start < filled && (at_end || filled - start >= MAX) {
            let end = start + first_cut(&window[start..filled]);
            take_block(&mut manifest, &window[start..end], &mut take)?;
            start = end;
        }
        if at_end {
            return Ok(Cut { hash: digest.finish(), size, manifest });
        }
        window.copy_within(start..filled, 0);
        filled -= start;
    }
}

fn take_block<E>(
    manifest: &mut Manifest,
    block: &[u8],
    take: &mut impl FnMut(BlockRef, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let reference = BlockRef { id: BlockId::of(block), length: block.len() as u32 };
    take(reference, block)?;
    manifest.pieces.push(Piece::whole(reference));
    Ok(())
}
