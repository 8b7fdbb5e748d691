//! Packs: writer → sealed object → reader. `FORMAT.md` specifies the byte layout.

use std::sync::Arc;

use crate::{
    BlockId, Error,
    dictionary::{self, Dictionary},
    frame::{self, Codec},
    objects::{ByteRange, Objects},
    store::storage,
};

const MAGIC: &[u8; 8] = b"SHELFPK1";
/// The magic bytes of a pack with a wide dictionary.
const WIDE_MAGIC: &[u8; 8] = b"SHELFPK2";
const TRAILER: usize = 64;
const FRAME_ENTRY: usize = 20;
const BLOCK_ENTRY: usize = 44;

/// Stored bytes after which a pack is sealed: large enough to keep the number of objects low, small enough to hold in
/// memory and to send in one request.
pub const TARGET: usize = 24 * 1_024 * 1_024;

/// The location of a frame in its pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameEntry {
    pub offset: u64,
    pub stored: u32,
    pub raw: u32,
    pub codec: Codec,
}

/// The location of a block in its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockEntry {
    pub id: BlockId,
    pub frame: u32,
    pub offset: u32,
    pub length: u32,
}

/// A pack that is being built in memory.
#[derive(Default)]
pub(crate) struct Builder {
    body: Vec<u8>,
    frames: Vec<FrameEntry>,
    blocks: Vec<BlockEntry>,
    /// The dictionary used by this pack's frames.
    dictionary: Option<Arc<Dictionary>>,
}

/// A finished pack: its name and its bytes.
pub(crate) struct Finished {
    pub name: String,
    pub body: Vec<u8>,
    pub index: Vec<u8>,
}

impl Builder {
    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    pub(crate) fn stored(&self) -> usize {
        self.body.len()
    }

    /// Adds the dictionary to the pack unless it is already there.
    pub(crate) fn bring(&mut self, dictionary: &Arc<Dictionary>) {
        if self.dictionary.is_none() {
            self.push(Codec::Dictionary, dictionary.packed(), dictionary.raw().len(), &[]);
            self.dictionary = Some(dictionary.clone());
        }
    }

    /// Adds a compressed frame and the blocks it contains: `(id, offset in the frame, length)`.
    pub(crate) fn push(&mut self, codec: Codec, stored: &[u8], raw: usize, blocks: &[(BlockId, u32, u32)]) {
        if self.body.is_empty() {
            self.body.extend_from_slice(MAGIC);
        }
        let frame = self.frames.len() as u32;
        let offset = self.body.len() as u64;
        self.frames.push(FrameEntry { offset, stored: stored.len() as u32, raw: raw as u32, codec });
        self.body.extend_from_slice(stored);
        self.blocks.extend(blocks.iter().map(|&(id, offset, length)| BlockEntry {
            id,
            frame,
            offset,
            length,
        }));
    }

    /// Writes the index and trailer. The name is derived from the content, so equal packs have equal names.
    pub(crate) fn finish(mut self) -> Finished {
        // Most of a pack is unreadable without its dictionary, so a second copy is stored far from the first.
        if let Some(dictionary) = self.dictionary.take() {
            self.push(Codec::Dictionary, dictionary.packed(), dictionary.raw().len(), &[]);
        }
        let is_wide = self.frames.iter().any(|frame| frame.raw as usize > frame::RAW_MAX);
        let magic = if is_wide { WIDE_MAGIC } else { MAGIC };
        self.body[..MAGIC.len()].copy_from_slice(magic);
        self.blocks.sort_by_key(|block| block.id);
        let mut index =
            Vec::with_capacity(self.frames.len() * FRAME_ENTRY + self.blocks.len() * BLOCK_ENTRY + TRAILER);
        for frame in &self.frames {
            index.extend_from_slice(&frame.offset.to_le_bytes());
            index.extend_from_slice(&frame.stored.to_le_bytes());
            index.extend_from_slice(&frame.raw.to_le_bytes());
            index.extend_from_slice(&[frame.codec as u8, 0, 0, 0]);
        }
        for block in &self.blocks {
            index.extend_from_slice(block.id.as_bytes());
            index.extend_from_slice(&block.frame.to_le_bytes());
            index.extend_from_slice(&block.offset.to_le_bytes());
            index.extend_from_slice(&block.length.to_le_bytes());
        }
        let checksum = blake3::hash(&index);
        let index_length = index.len() as u64;
        index.extend_from_slice(&(self.frames.len() as u32).to_le_bytes());
        index.extend_from_slice(&(self.blocks.len() as u32).to_le_bytes());
        index.extend_from_slice(&(self.body.len() as u64).to_le_bytes());
        index.extend_from_slice(&index_length.to_le_bytes());
        index.extend_from_slice(checksum.as_bytes());
        index.extend_from_slice(magic);
        // The name also covers the body: two packs with the same index but different bytes must not share a name.
        let name = blake3::Hasher::new().update(&index).update(&self.body).finalize();
        Finished { name: format!("{}.pack", &name.to_hex()[..32]), body: self.body, index }
    }
}

/// The verified index of a sealed pack.
#[derive(Debug)]
pub(crate) struct Index {
    pub name: String,
    pub frames: Vec<FrameEntry>,
    /// Sorted by id.
    pub blocks: Vec<BlockEntry>,
    pub length: u64,
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

impl Index {
    /// Reads the trailer and index of the pack `name`, which has `length` bytes.
    pub(crate) fn open(objects: &dyn Objects, name: &str, length: u64) -> Result<Self, Error> {
        let storage = |source| storage("read the index of", name, source);
        let damaged = |what: &str| Error::damaged(format!("pack {name}"), what);
        let body_end = length.checked_sub(TRAILER as u64).ok_or_else(|| damaged("it is too short"))?;
        let read = |offset, length| {
            let read = objects.read(name, &[ByteRange { offset, length }]).map_err(storage)?;
            read.into_iter().next().ok_or_else(|| damaged("it could not be read"))
        };
        let trailer = read(body_end, TRAILER)?;
        if &trailer[56..] != MAGIC && &trailer[56..] != WIDE_MAGIC {
            return Err(damaged("it does not end with the magic bytes of a known version"));
        }
        let (frames, blocks) = (u32_at(&trailer, 0) as usize, u32_at(&trailer, 4) as usize);
        let (index_offset, index_length) = (u64_at(&trailer, 8), u64_at(&trailer, 16));
        let expected = (frames * FRAME_ENTRY + blocks * BLOCK_ENTRY) as u64;
        if index_length != expected || index_offset.checked_add(index_length) != Some(body_end) {
            return Err(damaged("its trailer does not match its length"));
        }
        let index = read(index_offset, index_length as usize)?;
        if blake3::hash(&index).as_bytes() != &trailer[24..56] {
            return Err(damaged("its index does not match its checksum"));
        }
        Self::parse(name, &index, frames, index_offset, length)
            .ok_or_else(|| damaged("its index is out of order or points outside the pack"))
    }

    fn parse(name: &str, index: &[u8], frame_count: usize, body_end: u64, length: u64) -> Option<Self> {
        let (frame_bytes, block_bytes) = index.split_at(frame_count * FRAME_ENTRY);
        let frames: Vec<FrameEntry> = frame_bytes
            .as_chunks::<FRAME_ENTRY>()
            .0
            .iter()
            .map(|bytes| parse_frame(bytes, body_end))
            .collect::<Option<_>>()?;
        let blocks = block_bytes.as_chunks::<BLOCK_ENTRY>().0.iter();
        let blocks = blocks.map(|bytes| parse_block(bytes, &frames)).collect::<Option<Vec<_>>>()?;
        blocks.is_sorted_by_key(|block| block.id).then(|| Self {
            name: name.to_owned(),
            frames,
            blocks,
            length,
        })
    }

    /// Finds a block by interpolation search. Ids are hashes and thus evenly distributed, so an entry's position can be
    /// estimated from its first bytes; this touches a few neighbouring entries instead of a dozen across the table.
    pub(crate) fn find(&self, id: &BlockId) -> Option<&BlockEntry> {
        let key = id.short() as u64;
        let guess = ((u128::from(key) * self.blocks.len() as u128) >> 64) as usize;
        let mut reach = 16;
        let (mut low, mut high) = (guess, guess);
        while low > 0 && self.blocks[low].id >= *id {
            low = low.saturating_sub(reach);
            reach *= 2;
        }
        reach = 16;
        while high < self.blocks.len() && self.blocks[high].id <= *id {
            high = high.saturating_add(reach).min(self.blocks.len());
            reach *= 2;
        }
        let near = &self.blocks[low..high];
        near.binary_search_by_key(id, |block| block.id).ok().map(|at| &near[at])
    }

    /// The frames that hold copies of the dictionary.
    pub(crate) fn dictionaries(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        let frames = self.frames.iter().enumerate();
        frames.filter(|(_, frame)| frame.codec == Codec::Dictionary).map(|(at, _)| at as u32)
    }

    /// Reads the dictionary from the first intact copy.
    pub(crate) fn read_dictionary(&self, objects: &dyn Objects) -> Result<Vec<u8>, Error> {
        let none = Err(Error::damaged(format!("pack {}", self.name), "it has no dictionary"));
        self.dictionaries()
            .fold(none, |found, frame| found.or_else(|_| self.read_frame(objects, frame, None)))
    }

    /// Where a frame is stored.
    pub(crate) fn range(&self, number: u32) -> ByteRange {
        let frame = self.frames[number as usize];
        ByteRange { offset: frame.offset, length: frame.stored as usize }
    }

    /// Whether it has a dictionary that is a part of a large document.
    pub(crate) fn is_wide(&self) -> bool {
        self.dictionaries().any(|frame| self.frames[frame as usize].raw as usize > frame::RAW_MAX)
    }

    /// Reads and decompresses one frame.
    pub(crate) fn read_frame(
        &self,
        objects: &dyn Objects,
        number: u32,
        dictionary: Option<&Arc<Vec<u8>>>,
    ) -> Result<Vec<u8>, Error> {
        let stored = objects.read(&self.name, &[self.range(number)]);
        let stored = stored.map_err(|source| storage("read", &self.name, source))?.pop();
        self.unpack_frame(number, &stored.unwrap_or_default(), dictionary)
    }

    /// Decompresses one frame from its stored bytes.
    pub(crate) fn unpack_frame(
        &self,
        number: u32,
        stored: &[u8],
        dictionary: Option<&Arc<Vec<u8>>>,
    ) -> Result<Vec<u8>, Error> {
        let frame = self.frames[number as usize];
        frame::unpack(frame.codec, dictionary, stored, frame.raw as usize)
            .map_err(|what| Error::damaged(format!("pack {}", self.name), what))
    }
}

fn parse_frame(bytes: &[u8; FRAME_ENTRY], body_end: u64) -> Option<FrameEntry> {
    let entry = FrameEntry {
        offset: u64_at(bytes, 0),
        stored: u32_at(bytes, 8),
        raw: u32_at(bytes, 12),
        codec: Codec::from_byte(bytes[16])?,
    };
    let end = entry.offset.checked_add(u64::from(entry.stored))?;
    let most = if entry.codec == Codec::Dictionary { dictionary::WIDE } else { frame::RAW_MAX };
    (end <= body_end && entry.raw as usize <= most).then_some(entry)
}

fn parse_block(bytes: &[u8; BLOCK_ENTRY], frames: &[FrameEntry]) -> Option<BlockEntry> {
    let mut id = [0; 32];
    id.copy_from_slice(&bytes[..32]);
    let entry = BlockEntry {
        id: BlockId::new(id),
        frame: u32_at(bytes, 32),
        offset: u32_at(bytes, 36),
        length: u32_at(bytes, 40),
    };
    let frame = frames.get(entry.frame as usize)?;
    let is_inside = entry.offset.checked_add(entry.length)? <= frame.raw;
    (is_inside && frame.codec != Codec::Dictionary).then_some(entry)
}
