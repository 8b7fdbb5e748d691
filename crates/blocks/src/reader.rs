//! Reading many blocks in one pass.
//!
//! A pattern search reads thousands of small documents. A reader keeps the packs it has opened, decompresses into its
//! own buffer, and returns blocks from that buffer without copying; consecutive reads from one frame decompress it
//! once. Every block is still verified against its hash.

use std::sync::Arc;

use crate::{
    BlockId, Error, Store,
    frame::Unpacker,
    objects::Object,
    pack::{BlockEntry, Index},
    store::storage,
};

/// The number of packs that a reader keeps open.
const OPEN: usize = 32;

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
    packs: Vec<Opened<'a>>,
    stored: Vec<u8>,
    unpacker: Unpacker,
    /// The pack and frame that the unpacker currently holds.
    present: Option<(u64, u32)>,
}

struct Opened<'a> {
    number: u64,
    index: Arc<Index>,
    object: Box<dyn Object + 'a>,
    dictionary: Option<Arc<Vec<u8>>>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(store: &'a Store) -> Self {
        Self { store, packs: Vec::new(), stored: Vec::new(), unpacker: Unpacker::default(), present: None }
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
        let pack = &mut self.packs[at];
        let entry = pack.index.frames[frame as usize];
        self.stored.resize(entry.stored as usize, 0);
        pack.object
            .read_at(entry.offset, &mut self.stored)
            .map_err(|source| storage("read", &pack.index.name, source))?;
        if pack.dictionary.is_none() {
            pack.dictionary = self.store.dictionary_for(number, &pack.index, frame)?;
        }
        self.unpacker
            .unpack(entry.codec, pack.dictionary.as_ref(), &self.stored, entry.raw as usize)
            .map(drop)
            .map_err(|what| Error::damaged(format!("pack {}", pack.index.name), what))
    }

    /// Returns the position of a pack among the open ones, opening it if necessary.
    fn open(&mut self, number: u64, id: &BlockId) -> Result<usize, Error> {
        if let Some(at) = self.packs.iter().position(|pack| pack.number == number) {
            return Ok(at);
        }
        let index = self.store.pack(number).ok_or(Error::Missing(*id))?;
        let object =
            self.store.objects().open(&index.name).map_err(|source| storage("open", &index.name, source))?;
        if self.packs.len() == OPEN {
            self.packs.remove(0);
        }
        self.packs.push(Opened { number, index, object, dictionary: None });
        Ok(self.packs.len() - 1)
    }
}
