//! Reading blobs: from packs, from the catalog's loose blocks, always verified.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    ops::Range,
    sync::Arc,
};

use shelf_base::{CallContext, Digest, DigestWriter};
use shelf_blocks::{BlockId, Loose, Manifest, Piece, Place, Reader, Store};
use shelf_catalog::Catalog;

use crate::{
    Error, Result,
    manifests::{Manifests, Pieces},
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
    manifests: HashMap<Digest, Pieces>,
    loose: HashMap<BlockId, Vec<u8>>,
}

/// Blocks that are read ahead at once: half a megabyte, on average.
const AHEAD: usize = 32;
/// Blocks that are held while a content is read: a content may go back and forth between parts of a few.
const HELD: usize = 4;

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
        let mut held = Held::default();
        for pieces in self.manifest(hash)?.pieces.chunks(AHEAD) {
            call.check()?;
            self.blocks.read_ahead(&pieces.iter().map(|piece| piece.block.id).collect::<Vec<_>>());
            for piece in pieces {
                call.check()?;
                let bytes = held.piece(piece, || self.block(&piece.block.id))?;
                digest.update(bytes);
                size += bytes.len() as u64;
                take(bytes)?;
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

    /// A range of the content: only the blocks under it are read, each verified. All of a content that consists of parts of
    /// blocks is verified by its hash as well.
    pub(crate) fn read_range(&self, call: &CallContext, hash: &Digest, range: Range<u64>) -> Result<Vec<u8>> {
        let manifest = self.manifest(hash)?;
        let is_all = range.start == 0 && range.end >= manifest.size();
        let bytes = self.read_pieces_under(call, &Fetched::default(), &manifest.pieces, range)?;
        if is_all && !is_right(hash, &manifest.pieces, &bytes) {
            return Err(Error::WrongHash(*hash));
        }
        Ok(bytes)
    }

    /// Reads the next blocks ahead, as far as the bytes that are wanted of them go.
    fn read_ahead(&self, pieces: &[Piece], mut wanted: u64) {
        let mut is_wanted = |piece: &&Piece| {
            let is_wanted = wanted > 0;
            wanted = wanted.saturating_sub(u64::from(piece.length));
            is_wanted
        };
        let next = pieces.iter().take(AHEAD).take_while(|piece| is_wanted(piece));
        self.blocks.read_ahead(&next.map(|piece| piece.block.id).collect::<Vec<_>>());
    }

    /// The same for one of several contents, for which the catalog was asked at once.
    pub(crate) fn read_fetched(
        &self,
        call: &CallContext,
        fetched: &Fetched,
        hash: &Digest,
        range: Range<u64>,
    ) -> Result<Vec<u8>> {
        if let Some(pieces) = fetched.manifests.get(hash) {
            match self.read_pieces_under(call, fetched, pieces.all(), range.clone()) {
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
        let pieces = self.pieces_of(&hashes)?;
        let known = hashes.into_iter().zip(pieces).filter_map(|(hash, pieces)| Some((hash, pieces?)));
        let manifests: HashMap<Digest, Pieces> = known.collect();
        let small = within(FETCHED_LOOSE, manifests.keys().map(|hash| (*hash, sizes[hash])));
        let blocks = small.iter().flat_map(|hash| manifests[hash].all()).map(|piece| piece.block.id);
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

    fn read_pieces_under(
        &self,
        call: &CallContext,
        fetched: &Fetched,
        pieces: &[Piece],
        range: Range<u64>,
    ) -> Result<Vec<u8>> {
        let (mut bytes, mut held) = (Vec::new(), Held::default());
        let mut start = 0;
        for (at, piece) in pieces.iter().enumerate() {
            let end = start + u64::from(piece.length);
            if end > range.start && start < range.end {
                call.check()?;
                if bytes.is_empty() || at % AHEAD == 0 {
                    self.read_ahead(&pieces[at..], range.end - start);
                }
                let id = &piece.block.id;
                let content = held.piece(piece, || fetched.block(id).map_or_else(|| self.block(id), Ok))?;
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
        let manifests = self.pieces_of(hashes)?;
        let pieces = |at: usize| manifests[at].as_ref().map_or(&[][..], Pieces::all);
        let ids = (0..hashes.len()).flat_map(pieces).map(|piece| piece.block.id);
        let places = self.blocks.places(ids)?;
        // Of each content, which of the places is its first piece's.
        let mut order: Vec<(usize, usize)> = Vec::with_capacity(hashes.len());
        let mut first = 0;
        for at in 0..hashes.len() {
            order.push((first, at));
            first += pieces(at).len();
        }
        order.sort_by_key(|(first, _)| places.get(*first));
        // Few blocks are loose at any time: a few megabytes of them are folded into a pack.
        let loose = (0..hashes.len()).flat_map(pieces).zip(&places).filter(|(_, place)| place.is_none());
        let loose = self.fetch_loose(loose.map(|(piece, _)| piece.block.id).collect())?;
        let fetched = Fetched { loose, ..Fetched::default() };
        let size = |at: usize| pieces(at).iter().map(|piece| u64::from(piece.length)).sum::<u64>();
        let read = order.iter().filter(|(_, at)| size(*at) <= WHOLE);
        let expected = read.flat_map(|(first, at)| distinct(pieces(*at), &places[*first..]));
        reader.expect(expected.filter_map(|(_, place)| place));
        let mut whole = Vec::new();
        for (first, at) in order {
            call.check()?;
            let pieces = pieces(at);
            if size(at) > WHOLE {
                take(at, Ok(Given::Large))?;
                continue;
            }
            if let ([piece], Some(place)) = (pieces, places.get(first).copied().flatten())
                && piece.is_whole()
                && let Ok(bytes) = reader.read(&piece.block.id, place)
            {
                take(at, Ok(Given::Whole(bytes)))?;
                continue;
            }
            whole.clear();
            let known = manifests[at].is_some()
                && gather(pieces, &places[first..], reader, &fetched, &mut whole)
                && is_right(&hashes[at], pieces, &whole);
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
        let pieces = self.manifest(hash)?.pieces.into_iter();
        Ok(BlobReader { blobs: self, call, pieces, held: Held::default(), present: None })
    }

    /// The first bytes of a content, or all of it.
    pub(crate) fn read_blocks(&self, call: &CallContext, hash: &Digest, size: u64) -> Result<Vec<u8>> {
        self.read_range(call, hash, 0..size)
    }

    /// An earlier version of what is to be stored, and what it consists of, so that the new one may refer to its blocks.
    /// `None` if it has more than `most` bytes, cannot be read, or has a block of which `holds` does not know that it stays.
    pub(crate) fn earlier(
        &self,
        call: &CallContext,
        hash: &Digest,
        most: u64,
        holds: impl Fn(&BlockId) -> Result<bool, shelf_blocks::Error>,
    ) -> Result<Option<(Manifest, Vec<u8>)>> {
        let Ok(manifest) = self.manifest(hash) else { return Ok(None) };
        if manifest.size() > most {
            return Ok(None);
        }
        for block in manifest.blocks().collect::<HashSet<_>>() {
            if !holds(&block.id)? {
                return Ok(None);
            }
        }
        match self.read_pieces_under(call, &Fetched::default(), &manifest.pieces, 0..manifest.size()) {
            Ok(bytes) => Ok((Digest::of(&bytes) == *hash).then_some((manifest, bytes))),
            Err(Error::Stopped(stopped)) => Err(stopped.into()),
            Err(_) => Ok(None),
        }
    }

    /// The pieces of each content; `None` when the catalog does not say.
    fn pieces_of(&self, hashes: &[Digest]) -> Result<Vec<Option<Pieces>>> {
        let mut found = self.manifests.get(hashes.iter());
        let unknown = hashes.iter().zip(&found).filter(|(_, found)| found.is_none());
        let unknown: Vec<Digest> = unknown.map(|(hash, _)| *hash).collect();
        if unknown.is_empty() {
            return Ok(found);
        }
        let mut read = HashMap::with_capacity(unknown.len());
        for (hash, row) in self.catalog.blobs(&unknown)? {
            if let Ok(manifest) = Manifest::decode(&row.manifest)
                && manifest.size() == row.size
            {
                let pieces = Pieces::of(&manifest.pieces);
                self.manifests.keep(hash, &pieces);
                read.insert(hash, pieces);
            }
        }
        for (found, hash) in found.iter_mut().zip(hashes).filter(|(found, _)| found.is_none()) {
            *found = read.get(hash).cloned();
        }
        Ok(found)
    }

    pub(crate) fn manifest(&self, hash: &Digest) -> Result<Manifest> {
        let row = self.catalog.blob(hash)?.ok_or_else(|| Error::missing("content", hash.to_string()))?;
        let manifest = Manifest::decode(&row.manifest)?;
        if manifest.size() == row.size { Ok(manifest) } else { Err(Error::WrongHash(*hash)) }
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

/// The blocks of a content and their places, each once where some are taken in parts: in the order of their places then,
/// so that reading goes through a pack once.
fn distinct(pieces: &[Piece], places: &[Option<Place>]) -> Vec<(BlockId, Option<Place>)> {
    let blocks = pieces.iter().zip(places).map(|(piece, place)| (piece.block.id, *place));
    let mut blocks: Vec<_> = blocks.collect();
    if !pieces.iter().all(Piece::is_whole) {
        let mut seen = HashSet::new();
        blocks.retain(|(id, _)| seen.insert(*id));
        blocks.sort_by_key(|(_, place)| *place);
    }
    blocks
}

/// Puts a content together from the places of its blocks and from what was fetched; whether everything was there.
fn gather(
    pieces: &[Piece],
    places: &[Option<Place>],
    reader: &mut Reader<'_>,
    fetched: &Fetched,
    whole: &mut Vec<u8>,
) -> bool {
    let is_whole = pieces.iter().all(Piece::is_whole);
    let mut read = HashMap::new();
    for (id, place) in distinct(pieces, places) {
        let packed = place.and_then(|place| reader.read(&id, place).ok());
        let loose = if packed.is_none() { fetched.block(&id) } else { None };
        let Some(bytes) = packed.or(loose.as_deref()) else { return false };
        if is_whole {
            whole.extend_from_slice(bytes);
        } else {
            read.insert(id, bytes.to_vec());
        }
    }
    if is_whole {
        return true;
    }
    pieces.iter().all(|piece| {
        let part = read.get(&piece.block.id).and_then(|block| piece.of(block).ok());
        part.map(|part| whole.extend_from_slice(part)).is_some()
    })
}

/// Whether these are the bytes of a content. Blocks were verified; which parts of them are taken is verified here.
fn is_right(hash: &Digest, pieces: &[Piece], bytes: &[u8]) -> bool {
    pieces.iter().all(Piece::is_whole) || Digest::of(bytes) == *hash
}

/// The contents that fit into so many bytes.
fn within(mut room: u64, contents: impl Iterator<Item = (Digest, u64)>) -> Vec<Digest> {
    let mut fits = |size: u64| room.checked_sub(size).map(|left| room = left).is_some();
    contents.filter(|(_, size)| fits(*size)).map(|(hash, _)| hash).collect()
}

/// Blocks that were read lately.
#[derive(Default)]
struct Held(VecDeque<(BlockId, Vec<u8>)>);

impl Held {
    /// The bytes of a piece; `read` reads its block if it is not held.
    fn piece(&mut self, piece: &Piece, read: impl FnOnce() -> Result<Vec<u8>>) -> Result<&[u8]> {
        let id = piece.block.id;
        let at = match self.0.iter().position(|(held, _)| *held == id) {
            Some(at) => at,
            None => {
                let bytes = read()?;
                if self.0.len() == HELD {
                    self.0.pop_front();
                }
                self.0.push_back((id, bytes));
                self.0.len() - 1
            }
        };
        Ok(piece.of(&self.0[at].1)?)
    }
}

/// A content that is read from its beginning to its end, a few blocks in memory at a time.
pub(crate) struct BlobReader<'a> {
    blobs: &'a Blobs,
    call: &'a CallContext,
    pieces: std::vec::IntoIter<Piece>,
    held: Held,
    /// What is left of the piece that is being read.
    present: Option<Piece>,
}

impl std::io::Read for BlobReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let Some(piece) = self.present.take().or_else(|| self.pieces.next()) else { return Ok(0) };
        self.call.check().map_err(std::io::Error::other)?;
        let bytes = self.held.piece(&piece, || self.blobs.block(&piece.block.id));
        let bytes = bytes.map_err(std::io::Error::other)?;
        let count = buffer.len().min(bytes.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        let (from, length) = (piece.from + count as u32, piece.length - count as u32);
        self.present = (length > 0).then_some(Piece { from, length, ..piece });
        Ok(count)
    }
}
