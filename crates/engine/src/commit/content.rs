//! Cutting content into blocks: small content becomes blocks of the catalog's own transaction, larger content a pack.

use std::io::Read;

use shelf_base::Digest;
use shelf_blocks::{
    BlockId, BlockRef, Loose, Presence, Trust,
    cut::{self, Cut},
    patch,
};
use shelf_catalog::LooseBlock;

use super::Writing;
use crate::{Error, Listing, Result};

/// Content up to this size is stored in the catalog at first.
const SMALL: usize = 128 * 1_024;
/// The size of an earlier listing that a new one may refer to, at most: some 250,000 files.
const LISTING: u64 = 32 << 20;

/// The content of a document that is to be stored.
pub(crate) enum Content<'a> {
    /// Bytes in memory.
    Bytes(&'a [u8]),
    /// A stream of any length, which is read once and never held in memory.
    Stream {
        /// The bytes.
        reader: Box<dyn Read + 'a>,
        /// How many there are about, for progress.
        size: u64,
        /// What is read, for messages.
        name: &'a str,
    },
}

/// Content that has been stored.
pub(super) struct Stored {
    pub cut: Cut,
    /// Its beginning, from which its type is told.
    pub sample: Vec<u8>,
}

impl Writing<'_> {
    /// Stores content.
    pub(super) fn store(&mut self, content: Content<'_>) -> Result<Stored> {
        match content {
            Content::Bytes(bytes) => {
                let sample = bytes[..bytes.len().min(shelf_reading::SAMPLE)].to_vec();
                Ok(Stored { cut: self.store_bytes(bytes)?, sample })
            }
            Content::Stream { mut reader, size, name } => {
                let failed = |error| Error::reading(name, error);
                let mut head = Vec::new();
                (&mut reader).take(SMALL as u64 + 1).read_to_end(&mut head).map_err(failed)?;
                if head.len() <= SMALL {
                    return Ok(Stored { cut: self.store_bytes(&head)?, sample: head });
                }
                let cut = self.store_stream(head.as_slice().chain(reader), size);
                let cut = cut.map_err(|error| match error {
                    Error::Blocks(shelf_blocks::Error::Source(error)) => failed(error),
                    other => other,
                })?;
                Ok(Stored { cut, sample: head })
            }
        }
    }

    pub(super) fn store_bytes(&mut self, bytes: &[u8]) -> Result<Cut> {
        if bytes.len() <= SMALL {
            return self.store_inline(bytes);
        }
        let batch = self.blocks().batch(Trust::Bytes);
        let mut writer = batch.writer()?;
        let cut = cut::slice(bytes, |block, bytes| writer.put(block, bytes))?;
        writer.finish()?;
        let _sealed = batch.seal()?;
        Ok(cut)
    }

    /// Stores the listing of a snapshot: of one that is like an earlier one only the entries that are new.
    pub(super) fn store_listing(&mut self, bytes: &[u8], earlier: Option<Digest>) -> Result<Cut> {
        let batch = self.blocks().batch(Trust::Pack);
        let known = match &earlier {
            Some(hash) => {
                let holds = |id: &BlockId| batch.holds(id);
                self.library.blobs.earlier(self.call, hash, LISTING, holds)?
            }
            None => None,
        };
        let new = Digest::of(bytes);
        let (manifest, parts) = match known {
            Some((manifest, _)) if earlier == Some(new) => {
                return Ok(Cut { hash: new, size: bytes.len() as u64, manifest });
            }
            // One that the library has keeps what it consists of: another snapshot relies on it.
            Some((manifest, earlier)) if self.library.catalog.blob(&new)?.is_none() => {
                (manifest, Listing::parts(&earlier, bytes))
            }
            _ => return self.store_bytes(bytes),
        };
        let Some(parts) = parts else { return self.store_bytes(bytes) };
        let patched = if bytes.len() <= SMALL {
            let presence = self.library.blocks.presence(Trust::Bytes);
            let inline = &mut self.inline;
            patch::patch(&manifest, &parts, bytes, patch::LIST, |block, bytes| {
                keep_inline(&presence, inline, block, bytes)
            })?
        } else {
            let mut writer = batch.writer()?;
            let patched =
                patch::patch(&manifest, &parts, bytes, patch::LIST, |block, bytes| writer.put(block, bytes))?;
            writer.finish()?;
            let _sealed = batch.seal()?;
            patched
        };
        patched.map_or_else(|| self.store_bytes(bytes), Ok)
    }

    /// Cuts into inline blocks, without those that a pack holds. A single document may be sent again because its content
    /// was damaged, so a stored block is read before it is relied on. Blocks that the catalog already has are left out
    /// when the row is written.
    fn store_inline(&mut self, bytes: &[u8]) -> Result<Cut> {
        let presence = self.library.blocks.presence(Trust::Bytes);
        let inline = &mut self.inline;
        cut::slice(bytes, |block, bytes| keep_inline(&presence, inline, block, bytes))
    }

    fn store_stream(&self, stream: impl Read, total: u64) -> Result<Cut> {
        let batch = self.blocks().batch(Trust::Bytes);
        let mut writer = batch.writer()?;
        let (mut done, mut reported) = (0, 0);
        let cut = cut::stream::<Error>(stream, |block, bytes| {
            self.call.check()?;
            done += bytes.len() as u64;
            if done - reported >= 1 << 20 {
                reported = done;
                self.call.report(done, Some(total), "storing");
            }
            Ok(writer.put(block, bytes)?)
        })?;
        writer.finish()?;
        let _sealed = batch.seal()?;
        Ok(cut)
    }
}

/// Keeps a block for the next transaction, unless a pack or the transaction has it.
fn keep_inline(
    presence: &Presence<'_>,
    inline: &mut Vec<LooseBlock>,
    block: BlockRef,
    bytes: &[u8],
) -> Result<()> {
    let known = presence.holds(&block.id)? || inline.iter().any(|known| known.id == *block.id.as_bytes());
    if !known {
        let loose = Loose::encode(block.id, bytes)?;
        inline.push(LooseBlock { id: *block.id.as_bytes(), bytes: loose.bytes });
    }
    Ok(())
}
