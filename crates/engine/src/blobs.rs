//! Reading blobs: from packs, from the catalog's loose blocks, always verified.

use std::{collections::HashMap, ops::Range, sync::Arc};

use shelf_base::{CallContext, Digest, DigestWriter};
use shelf_blocks::{BlockId, BlockRef, Loose, Manifest, Reader, Store};
use shelf_catalog::Catalog;

use crate::{
    Error, Result,
    manifests::{Blocks, Manifests},
    readings::Readings,
    texts::{Breadth, Known, Texts},
};

/// Contents up to this size are given whole to whoever reads many; larger ones are left to be streamed.
pub(crate) const WHOLE: u64 = 32 << 20;

/// A content as it is given to whoever reads many.
pub(crate) enum Given<'a> {
    /// All of it, verified.
    Whole(&'a [u8]),
    /// It is too large for that.
    Large,
}

/// What the catalog was asked for at once: manifests, and loose blocks.
#[derive(Default)]
pub(crate) struct Fetched {
    manifests: HashMap<Digest, Blocks>,
    loose: HashMap<BlockId, Vec<u8>>,
}

/// Blocks that are read ahead at once: half a megabyte, on average.
const AHEAD: usize = 32;

/// Bytes of all contents whose manifests are fetched together at most, and of those whose loose blocks are.
const FETCHED_MANIFESTS: u64 = 256 << 20;
const FETCHED_LOOSE: u64 = 4 << 20;

/// Reads content by its hash.
#[derive(Clone)]
pub(crate) struct Blobs {
    pub catalog: Arc<dyn Catalog>,
    pub blocks: Arc<Store>,
    pub manifests: Arc<Manifests>,
    pub texts: Arc<Texts>,
    pub readings: Arc<Readings>,
}

impl Blobs {
    /// Gives the whole content to `take`, piece by piece; the end is an error when the whole does not have its hash.
    pub(crate) fn stream_blob(
        &self,
        call: &CallContext,
        hash: &Digest,
        mut take: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<u64> {
        let mut digest = DigestWriter::new();
        let mut size = 0;
        for blocks in self.manifest(hash)?.blocks.chunks(AHEAD) {
            call.check()?;
            self.blocks.read_ahead(&blocks.iter().map(|block| block.id).collect::<Vec<_>>());
            for block in blocks {
                call.check()?;
                let bytes = self.block(&block.id)?;
                digest.update(&bytes);
                size += bytes.len() as u64;
                take(&bytes)?;
            }
        }
        if digest.finish() == *hash { Ok(size) } else { Err(Error::WrongHash(*hash)) }
    }

    /// The whole content in memory.
    pub(crate) fn read_blob(&self, call: &CallContext, hash: &Digest) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.stream_blob(call, hash, |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(bytes)
    }

    /// A range of the content: only the blocks under it are read, each verified.
    pub(crate) fn read_range(&self, call: &CallContext, hash: &Digest, range: Range<u64>) -> Result<Vec<u8>> {
        self.read_blocks_under(call, &Fetched::default(), &self.manifest(hash)?.blocks, range)
    }

    /// Reads the next blocks ahead, as far as the bytes that are wanted of them go.
    fn read_ahead(&self, blocks: &[BlockRef], mut wanted: u64) {
        let mut is_wanted = |block: &&BlockRef| {
            let is_wanted = wanted > 0;
            wanted = wanted.saturating_sub(u64::from(block.length));
            is_wanted
        };
        let next = blocks.iter().take(AHEAD).take_while(|block| is_wanted(block));
        self.blocks.read_ahead(&next.map(|block| block.id).collect::<Vec<_>>());
    }

    /// The same for one of several contents, for which the catalog was asked at once.
    pub(crate) fn read_fetched(
        &self,
        call: &CallContext,
        fetched: &Fetched,
        hash: &Digest,
        range: Range<u64>,
    ) -> Result<Vec<u8>> {
        if let Some(blocks) = fetched.manifests.get(hash) {
            match self.read_blocks_under(call, fetched, blocks.all(), range.clone()) {
                // It may have been collected and stored anew, cut in another way.
                Err(error) if !matches!(error, Error::Stopped(_)) => self.manifests.forget(hash),
                read => return read,
            }
        }
        self.read_range(call, hash, range)
    }

    /// Asks the catalog at once for what reading these contents needs of it, each given with its size.
    pub(crate) fn fetch(&self, contents: impl Iterator<Item = (Digest, u64)>) -> Result<Fetched> {
        let sizes: HashMap<Digest, u64> = contents.collect();
        let hashes = within(FETCHED_MANIFESTS, sizes.iter().map(|(hash, size)| (*hash, *size)));
        let blocks = self.blocks_of(&hashes)?;
        let known = hashes.into_iter().zip(blocks).filter_map(|(hash, blocks)| Some((hash, blocks?)));
        let manifests: HashMap<Digest, Blocks> = known.collect();
        let small = within(FETCHED_LOOSE, manifests.keys().map(|hash| (*hash, sizes[hash])));
        let blocks = small.iter().flat_map(|hash| manifests[hash].all()).map(|block| block.id);
        let loose = self.fetch_loose(blocks.collect())?;
        Ok(Fetched { manifests, loose })
    }

    /// Those of the blocks that are loose and in no pack that is known.
    fn fetch_loose(&self, ids: Vec<BlockId>) -> Result<HashMap<BlockId, Vec<u8>>> {
        let places = self.blocks.places(ids.iter().copied())?;
        let wanted = ids.iter().zip(&places).filter(|(_, place)| place.is_none());
        let wanted: HashMap<[u8; 32], BlockId> = wanted.map(|(id, _)| (*id.as_bytes(), *id)).collect();
        if wanted.is_empty() {
            return Ok(HashMap::new());
        }
        let loose = self.catalog.loose(&wanted.keys().copied().collect::<Vec<_>>())?.into_iter();
        Ok(loose.filter_map(|loose| Some((*wanted.get(&loose.id)?, loose.bytes))).collect())
    }

    fn read_blocks_under(
        &self,
        call: &CallContext,
        fetched: &Fetched,
        blocks: &[BlockRef],
        range: Range<u64>,
    ) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut start = 0;
        for (at, block) in blocks.iter().enumerate() {
            let end = start + u64::from(block.length);
            if end > range.start && start < range.end {
                call.check()?;
                if bytes.is_empty() || at % AHEAD == 0 {
                    self.read_ahead(&blocks[at..], range.end - start);
                }
                let content = match fetched.block(&block.id) {
                    Some(content) => content,
                    None => self.block(&block.id)?,
                };
                let from = range.start.saturating_sub(start) as usize;
                let to = (range.end.min(end) - start) as usize;
                bytes.extend_from_slice(&content[from..to]);
            }
            start = end;
        }
        Ok(bytes)
    }

    /// Reads many contents, each whole and verified block by block, in the order in which they lie; `take` is told
    /// which of `hashes` it gets.
    pub(crate) fn read_each(
        &self,
        call: &CallContext,
        reader: &mut Reader<'_>,
        (hashes, breadth): (&[Digest], Breadth),
        mut take: impl FnMut(usize, Result<Given<'_>>) -> Result<()>,
    ) -> Result<()> {
        let mut stored = Vec::with_capacity(hashes.len());
        for (at, known) in self.texts.ask(hashes, breadth).into_iter().enumerate() {
            match known {
                Known::Text(text) => {
                    call.check()?;
                    take(at, Ok(Given::Whole(&text)))?;
                }
                Known::Wanted => stored.push((at, hashes[at], true)),
                Known::Unwanted => stored.push((at, hashes[at], false)),
            }
        }
        if stored.is_empty() {
            return Ok(());
        }
        let only: Vec<Digest> = stored.iter().map(|(_, hash, _)| *hash).collect();
        self.read_stored(call, reader, &only, |at, bytes| {
            let (at, hash, wanted) = stored[at];
            if wanted && let Ok(Given::Whole(bytes)) = &bytes {
                self.texts.keep(hash, bytes);
            }
            take(at, bytes)
        })
    }

    /// The same from packs and catalog.
    fn read_stored(
        &self,
        call: &CallContext,
        reader: &mut Reader<'_>,
        hashes: &[Digest],
        mut take: impl FnMut(usize, Result<Given<'_>>) -> Result<()>,
    ) -> Result<()> {
        let manifests = self.blocks_of(hashes)?;
        let blocks = |at: usize| manifests[at].as_ref().map_or(&[][..], Blocks::all);
        let ids = (0..hashes.len()).flat_map(blocks).map(|block| block.id);
        let places = self.blocks.places(ids)?;
        // Of each content, which of the places is its first block's.
        let mut order: Vec<(usize, usize)> = Vec::with_capacity(hashes.len());
        let mut first = 0;
        for at in 0..hashes.len() {
            order.push((first, at));
            first += blocks(at).len();
        }
        order.sort_by_key(|(first, _)| places.get(*first));
        // Few blocks are loose at any time: a few megabytes of them are folded into a pack.
        let loose = (0..hashes.len()).flat_map(blocks).zip(&places).filter(|(_, place)| place.is_none());
        let loose = self.fetch_loose(loose.map(|(block, _)| block.id).collect())?;
        let fetched = Fetched { loose, ..Fetched::default() };
        let size = |at: usize| blocks(at).iter().map(|block| u64::from(block.length)).sum::<u64>();
        let read = order.iter().filter(|(_, at)| size(*at) <= WHOLE);
        reader.expect(
            read.flat_map(|(first, at)| places[*first..].iter().take(blocks(*at).len())).flatten().copied(),
        );
        let mut whole = Vec::new();
        for (first, at) in order {
            call.check()?;
            let blocks = blocks(at);
            if size(at) > WHOLE {
                take(at, Ok(Given::Large))?;
                continue;
            }
            if let ([block], Some(place)) = (blocks, places.get(first).copied().flatten())
                && let Ok(bytes) = reader.read(&block.id, place)
            {
                take(at, Ok(Given::Whole(bytes)))?;
                continue;
            }
            whole.clear();
            let known = manifests[at].is_some()
                && blocks.iter().zip(&places[first..]).all(|(block, place)| {
                    if let Some(bytes) = place.and_then(|place| reader.read(&block.id, place).ok()) {
                        whole.extend_from_slice(bytes);
                        return true;
                    }
                    let loose = fetched.block(&block.id);
                    loose.map(|bytes| whole.extend_from_slice(&bytes)).is_some()
                });
            let read = if known { Ok(true) } else { self.read_anew(call, &hashes[at], &mut whole) };
            take(at, read.map(|is_whole| if is_whole { Given::Whole(&whole) } else { Given::Large }))?;
        }
        Ok(())
    }

    /// Reads a content that the packs did not give at once: it may lie loose, or in a pack that is not known yet; it may
    /// be damaged here and whole elsewhere; or it was collected and stored anew since its manifest was read.
    /// Whether it was small enough to be read whole.
    fn read_anew(&self, call: &CallContext, hash: &Digest, whole: &mut Vec<u8>) -> Result<bool> {
        self.manifests.forget(hash);
        if self.manifest(hash)?.size() > WHOLE {
            return Ok(false);
        }
        *whole = self.read_blocks(call, hash, u64::MAX)?;
        Ok(true)
    }

    /// The content as a stream, verified block by block.
    pub(crate) fn open<'a>(&'a self, call: &'a CallContext, hash: &Digest) -> Result<BlobReader<'a>> {
        let blocks = self.manifest(hash)?.blocks.into_iter();
        Ok(BlobReader { blobs: self, call, blocks, block: Vec::new(), at: 0 })
    }

    /// The whole content, verified block by block.
    pub(crate) fn read_blocks(&self, call: &CallContext, hash: &Digest, size: u64) -> Result<Vec<u8>> {
        self.read_range(call, hash, 0..size)
    }

    /// The blocks of each content; `None` when the catalog does not say.
    fn blocks_of(&self, hashes: &[Digest]) -> Result<Vec<Option<Blocks>>> {
        let mut found = self.manifests.get(hashes.iter());
        let unknown = hashes.iter().zip(&found).filter(|(_, found)| found.is_none());
        let unknown: Vec<Digest> = unknown.map(|(hash, _)| *hash).collect();
        if unknown.is_empty() {
            return Ok(found);
        }
        let mut read = HashMap::with_capacity(unknown.len());
        for (hash, row) in self.catalog.blobs(&unknown)? {
            if let Ok(manifest) = Manifest::decode(&row.manifest) {
                let blocks = Blocks::of(&manifest.blocks);
                self.manifests.keep(hash, &blocks);
                read.insert(hash, blocks);
            }
        }
        for (found, hash) in found.iter_mut().zip(hashes).filter(|(found, _)| found.is_none()) {
            *found = read.get(hash).cloned();
        }
        Ok(found)
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
        let loose = self.catalog.loose(&[*id.as_bytes()])?.pop();
        match loose.map(|loose| Loose { id: *id, bytes: loose.bytes }.decode()) {
            Some(Ok(found)) => Ok(found),
            // A pack may have it all the same.
            Some(Err(damaged)) => self.blocks.read(id).map_err(|_| damaged.into()),
            None => Ok(self.blocks.read(id)?),
        }
    }
}

impl Fetched {
    /// A block that was fetched and is whole.
    fn block(&self, id: &BlockId) -> Option<Vec<u8>> {
        let bytes = self.loose.get(id)?.clone();
        Loose { id: *id, bytes }.decode().ok()
    }
}

/// The contents that fit into so many bytes.
fn within(mut room: u64, contents: impl Iterator<Item = (Digest, u64)>) -> Vec<Digest> {
    let mut fits = |size: u64| room.checked_sub(size).map(|left| room = left).is_some();
    contents.filter(|(_, size)| fits(*size)).map(|(hash, _)| hash).collect()
}

/// A content that is read from its beginning to its end, one block in memory at a time.
pub(crate) struct BlobReader<'a> {
    blobs: &'a Blobs,
    call: &'a CallContext,
    blocks: std::vec::IntoIter<BlockRef>,
    block: Vec<u8>,
    at: usize,
}

impl std::io::Read for BlobReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.block.len() {
            let Some(next) = self.blocks.next() else { return Ok(0) };
            self.call.check().map_err(std::io::Error::other)?;
            self.block = self.blobs.block(&next.id).map_err(std::io::Error::other)?;
            self.at = 0;
        }
        let count = buffer.len().min(self.block.len() - self.at);
        buffer[..count].copy_from_slice(&self.block[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}
