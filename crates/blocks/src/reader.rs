//! Reading many blocks in one pass.
//!
//! A pattern search reads thousands of small documents. A reader fetches many frames of a pack with one call, as far as
//! it was told what will be read, decompresses into its own buffer, and returns blocks from that buffer without copying;
//! consecutive reads from one frame decompress it once. Every block is still verified against its hash.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use crate::{
    BlockId, Error, Store,
    frame::Unpacker,
    objects::ByteRange,
    pack::{BlockEntry, Index},
    store::storage,
};

/// The number of packs whose index and dictionary a reader remembers.
const OPEN: usize = 32;
/// Stored bytes that are fetched ahead with one call.
const AHEAD: usize = 256 << 10;

/// The location of a block. Reading places in sorted order is faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pack: u64,
    frame: u32,
    offset: u32,
    length: u32,
}

impl Place {
    pub(crate) const fn new(pack: u64, entry: &BlockEntry) -> Self {
        Self { pack, frame: entry.frame, offset: entry.offset, length: entry.length }
    }
}

/// Reads blocks by their location.
pub struct Reader<'a> {
    store: &'a Store,
    packs: Vec<Opened>,
    /// Frames that will be read, in this order.
    expected: VecDeque<(u64, u32)>,
    /// Stored bytes of frames that were fetched and not yet read.
    fetched: HashMap<(u64, u32), Vec<u8>>,
    unpacker: Unpacker,
    /// The pack and frame that the unpacker currently holds.
    present: Option<(u64, u32)>,
}

struct Opened {
    number: u64,
    index: Arc<Index>,
    dictionary: Option<Arc<Vec<u8>>>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(store: &'a Store) -> Self {
        Self {
            store,
            packs: Vec::new(),
            expected: VecDeque::new(),
            fetched: HashMap::new(),
            unpacker: Unpacker::default(),
            present: None,
        }
    }

    /// Tells which places will be read next, and in which order.
    pub fn expect(&mut self, places: impl Iterator<Item = Place>) {
        self.fetched.clear();
        self.expected.clear();
        for place in places {
            let frame = (place.pack, place.frame);
            if self.expected.back() != Some(&frame) {
                self.expected.push_back(frame);
            }
        }
    }

    /// Reads the block at a place and verifies it against its hash. This fails if the pack has been deleted meanwhile
    /// or is damaged; [`Store::read`] then finds the block in another pack, if there is one.
    pub fn read(&mut self, id: &BlockId, place: Place) -> Result<&[u8], Error> {
        let frame = (place.pack, place.frame);
        if self.present != Some(frame) {
            self.present = None;
            self.unpack(place.pack, place.frame, id)?;
            self.present = Some(frame);
        }
        let block = &self.unpacker.last()[place.offset as usize..(place.offset + place.length) as usize];
        if BlockId::of(block) == *id {
            Ok(block)
        } else {
            Err(Error::damaged(format!("block {id}"), "its bytes do not match its hash"))
        }
    }

    fn unpack(&mut self, number: u64, frame: u32, id: &BlockId) -> Result<(), Error> {
        let at = self.open(number, id)?;
        let stored = match self.fetched.remove(&(number, frame)) {
            Some(stored) => stored,
            None => self.fetch(at, frame)?,
        };
        let pack = &mut self.packs[at];
        let entry = pack.index.frames[frame as usize];
        if pack.dictionary.is_none() {
            pack.dictionary = self.store.dictionary_for(number, &pack.index, frame)?;
        }
        self.unpacker
            .unpack(entry.codec, pack.dictionary.as_ref(), &stored, entry.raw as usize)
            .map(drop)
            .map_err(|what| Error::damaged(format!("pack {}", pack.index.name), what))
    }

    /// Fetches a frame, together with those of the same pack that are expected after it.
    fn fetch(&mut self, at: usize, frame: u32) -> Result<Vec<u8>, Error> {
        let Opened { number, index, .. } = &self.packs[at];
        // What was expected before it and was not read will not be.
        if let Some(found) = self.expected.iter().position(|expected| *expected == (*number, frame)) {
            self.expected.drain(..=found);
        }
        let mut frames = vec![frame];
        let mut ranges = vec![index.range(frame)];
        let mut length = ranges[0].length;
        while let Some((pack, next)) = self.expected.front().copied().filter(|(pack, _)| pack == number) {
            let range = index.range(next);
            length += range.length;
            if length > AHEAD {
                break;
            }
            self.expected.pop_front();
            if !frames.contains(&next) && !self.fetched.contains_key(&(pack, next)) {
                frames.push(next);
                ranges.push(range);
            }
        }
        let read = |ranges: &[ByteRange]| self.store.objects().read(&index.name, ranges);
        // One range that cannot be read must not keep the frame itself from being read.
        let fetched = read(&ranges).or_else(|_| read(&ranges[..1]));
        let mut fetched = fetched.map_err(|source| storage("read", &index.name, source))?.into_iter();
        let first = fetched.next().unwrap_or_default();
        let rest = frames[1..].iter().map(|frame| (*number, *frame));
        self.fetched.extend(rest.zip(fetched));
        Ok(first)
    }

    /// Returns the position of a pack among the open ones, opening it if necessary.
    fn open(&mut self, number: u64, id: &BlockId) -> Result<usize, Error> {
        if let Some(at) = self.packs.iter().position(|pack| pack.number == number) {
            return Ok(at);
        }
        let index = self.store.pack(number).ok_or(Error::Missing(*id))?;
        if self.packs.len() == OPEN {
            self.packs.remove(0);
        }
        self.packs.push(Opened { number, index, dictionary: None });
        Ok(self.packs.len() - 1)
    }
}
