//! Reading blobs: from packs, from the catalog's loose blocks, always verified.

use std::{ops::Range, sync::Arc};

use shelf_base::{Call, Digest, DigestWriter};
use shelf_blocks::{BlockId, Loose, Manifest, Store};
use shelf_catalog::Catalog;

use crate::{Error, Result};

/// Reads content by its hash.
#[derive(Clone)]
pub(crate) struct Blobs {
    pub catalog: Arc<dyn Catalog>,
    pub blocks: Arc<Store>,
}

impl Blobs {
    /// Gives the whole content to `take`, piece by piece; the end is an error when the whole does not have its hash.
    pub(crate) fn stream_blob(
        &self,
        call: &Call,
        hash: &Digest,
        mut take: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<u64> {
        let mut digest = DigestWriter::new();
        let mut size = 0;
        for block in &self.manifest(hash)?.blocks {
            call.check()?;
            let bytes = self.block(&block.id)?;
            digest.update(&bytes);
            size += bytes.len() as u64;
            take(&bytes)?;
        }
        if digest.finish() == *hash { Ok(size) } else { Err(Error::WrongHash(*hash)) }
    }

    /// The whole content in memory.
    pub(crate) fn read_blob(&self, call: &Call, hash: &Digest) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.stream_blob(call, hash, |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(bytes)
    }

    /// A range of the content: only the blocks under it are read, each verified.
    pub(crate) fn read_range(&self, call: &Call, hash: &Digest, range: Range<u64>) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut start = 0;
        for block in &self.manifest(hash)?.blocks {
            let end = start + u64::from(block.length);
            if end > range.start && start < range.end {
                call.check()?;
                let content = self.block(&block.id)?;
                let from = range.start.saturating_sub(start) as usize;
                let to = (range.end.min(end) - start) as usize;
                bytes.extend_from_slice(&content[from..to]);
            }
            start = end;
        }
        Ok(bytes)
    }

    /// The whole content, verified block by block; for reading many documents in one go.
    pub(crate) fn read_blocks(&self, call: &Call, hash: &Digest, size: u64) -> Result<Vec<u8>> {
        self.read_range(call, hash, 0..size)
    }

    fn manifest(&self, hash: &Digest) -> Result<Manifest> {
        let row = self.catalog.blob(hash)?.ok_or_else(|| Error::missing("content", hash.to_string()))?;
        Ok(Manifest::decode(&row.manifest)?)
    }

    /// One block, from wherever it lies. A fold moves blocks from the catalog to a pack, and the pack is there before
    /// the row goes; so a look at both, in this order, finds every block.
    pub(crate) fn block(&self, id: &BlockId) -> Result<Vec<u8>> {
        if let Some(found) = self.blocks.read_known(id)? {
            return Ok(found);
        }
        if let Some(loose) = self.catalog.loose(&[*id.as_bytes()])?.pop() {
            return Ok(Loose { id: *id, bytes: loose.bytes }.decode()?);
        }
        Ok(self.blocks.read(id)?)
    }
}
