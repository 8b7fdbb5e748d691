//! Writing: batches of packs, and the per-thread writers that fill them.

use std::{collections::HashSet, io, sync::Arc};

use parking_lot::Mutex;

use crate::{
    BlockId, BlockRef, Error, Store,
    dictionary::{Dictionary, WIDE},
    frame::{self, Codec, Packer},
    pack::{self, Builder, Index},
    presence::{Presence, Trust},
    store::storage,
};

/// The minimum number of documents for a dictionary: fewer have little in common.
const DOCUMENTS: usize = 4;
/// The minimum number of samples from which a dictionary is chosen.
const SAMPLES: usize = 16;

/// A document that is longer than this is tested for repetition over long distances. The test takes a few milliseconds.
const LARGE: u64 = 8 << 20;
/// Bytes of a document after which a test that failed is repeated.
const TEST_AGAIN: u64 = 64 << 20;

/// Proof that every block put into a batch is durable.
#[derive(Debug)]
#[must_use = "blocks may be referred to only after sealing"]
pub struct Sealed(());

/// A dictionary that was chosen from samples of what will be written. A batch that is not given one makes it of its first
/// documents; choosing is worth its time for tens of megabytes.
pub struct Chosen(Arc<Dictionary>);

impl Chosen {
    /// From samples of small documents; `None` if few of them are compressible.
    pub fn for_documents(samples: Vec<Vec<u8>>) -> Result<Option<Self>, Error> {
        Self::of(samples, false)
    }

    /// From samples of a large one.
    pub fn for_large(samples: Vec<Vec<u8>>) -> Result<Option<Self>, Error> {
        Self::of(samples, true)
    }

    fn of(mut samples: Vec<Vec<u8>>, serves_long: bool) -> Result<Option<Self>, Error> {
        let mut packer = Packer::new().map_err(compressing)?;
        samples.retain(|sample| !sample.is_empty() && packer.shrinks(sample).unwrap_or(false));
        if samples.len() < SAMPLES {
            return Ok(None);
        }
        let chosen = Dictionary::chosen(&samples, serves_long).map_err(compressing)?;
        Ok(chosen.map(|chosen| Self(Arc::new(chosen))))
    }
}

/// A batch of writes, shared by any number of [`PackWriter`]s.
pub struct Batch<'a> {
    store: &'a Store,
    presence: Presence<'a>,
    open: Mutex<Builder>,
    seen: Mutex<HashSet<BlockId>>,
    /// Names of the packs written so far.
    written: Mutex<HashSet<String>>,
    /// Built from the first documents; a batch with only a few documents has none.
    dictionary: Mutex<Option<Arc<Dictionary>>>,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(store: &'a Store, trust: Trust) -> Self {
        let presence = store.presence(trust);
        Batch {
            store,
            presence,
            open: Mutex::default(),
            seen: Mutex::default(),
            written: Mutex::default(),
            dictionary: Mutex::default(),
        }
    }

    /// Creates a writer for one thread. Consecutive blocks of a writer are compressed together.
    pub fn writer(&self) -> Result<PackWriter<'_, 'a>, Error> {
        let packer = Packer::new().map_err(compressing)?;
        let (raw, blocks, ends, lookback) = (Vec::new(), Vec::new(), Vec::new(), Lookback::default());
        Ok(PackWriter { batch: self, packer, raw, blocks, ends, lookback })
    }

    /// Compresses all documents of the batch with a dictionary.
    pub fn use_dictionary(&self, chosen: &Chosen) {
        *self.dictionary.lock() = Some(chosen.0.clone());
    }

    /// Writes the remaining data and makes it durable. All writers must have been finished.
    pub fn seal(&self) -> Result<Sealed, Error> {
        let builder = std::mem::take(&mut *self.open.lock());
        self.write(builder)?;
        Ok(Sealed(()))
    }

    /// Whether a pack that currently exists contains the block, so that what is written may refer to it.
    pub fn holds(&self, id: &BlockId) -> Result<bool, Error> {
        self.presence.holds(id)
    }

    /// The packs written so far. One of them may have the name of an older pack that was going to be deleted.
    pub(crate) fn written(&self) -> HashSet<String> {
        self.written.lock().clone()
    }

    fn is_new(&self, id: BlockId) -> Result<bool, Error> {
        Ok(!self.seen.lock().contains(&id) && !self.presence.holds(&id)? && self.seen.lock().insert(id))
    }

    fn take_frame(
        &self,
        codec: Codec,
        stored: &[u8],
        raw: usize,
        blocks: &[(BlockId, u32, u32)],
    ) -> Result<(), Error> {
        let mut open = self.open.lock();
        if codec == Codec::Worded
            && let Some(dictionary) = &*self.dictionary.lock()
        {
            open.bring(dictionary);
        }
        open.push(codec, stored, raw, blocks);
        if open.stored() < pack::TARGET {
            return Ok(());
        }
        let full = std::mem::take(&mut *open);
        drop(open);
        self.write(full)
    }

    fn write(&self, builder: Builder) -> Result<(), Error> {
        if builder.is_empty() {
            return Ok(());
        }
        let finished = builder.finish();
        let objects = self.store.objects();
        objects
            .put(&finished.name, &[&finished.body, &finished.index])
            .map_err(|source| storage("write", &finished.name, source))?;
        let length = (finished.body.len() + finished.index.len()) as u64;
        self.store.admit(Index::open(objects, &finished.name, length)?);
        self.written.lock().insert(finished.name);
        Ok(())
    }
}

/// Adds blocks to a batch from one thread.
pub struct PackWriter<'b, 'a> {
    batch: &'b Batch<'a>,
    packer: Packer,
    raw: Vec<u8>,
    blocks: Vec<(BlockId, u32, u32)>,
    /// The number of blocks after which each document ends.
    ends: Vec<usize>,
    lookback: Lookback,
}

/// The latest part of a large document, with which its later parts may be compressed.
struct Lookback {
    /// Bytes of the present document so far.
    document: u64,
    /// How long it must be for the next test.
    next_test: u64,
    /// The bytes before the present frame, gathered shortly before a test.
    recent: Vec<u8>,
}

impl Default for Lookback {
    fn default() -> Self {
        Self { document: 0, next_test: LARGE, recent: Vec::new() }
    }
}

impl Lookback {
    /// Takes a frame of the document; what precedes the next frame is gathered when a test is near.
    fn take(&mut self, frame: &[u8]) {
        if self.document + (2 * WIDE) as u64 >= self.next_test && self.recent.len() < WIDE {
            let room = WIDE - self.recent.len();
            self.recent.extend_from_slice(&frame[..frame.len().min(room)]);
        }
    }

    fn is_test_due(&self) -> bool {
        self.document >= self.next_test && self.recent.len() == WIDE
    }

    fn put_off(&mut self) {
        self.next_test = self.document + TEST_AGAIN;
        self.recent = Vec::new();
    }
}

impl PackWriter<'_, '_> {
    /// Adds a block unless the store already has it.
    pub fn put(&mut self, block: BlockRef, bytes: &[u8]) -> Result<(), Error> {
        if !self.batch.is_new(block.id)? {
            return Ok(());
        }
        self.blocks.push((block.id, self.raw.len() as u32, block.length));
        self.raw.extend_from_slice(bytes);
        self.lookback.document += bytes.len() as u64;
        if self.raw.len() < frame::TARGET {
            return Ok(());
        }
        if self.lookback.is_test_due() && !self.packer.knows_dictionary() {
            self.widen().map_err(compressing)?;
        }
        self.lookback.take(&self.raw);
        self.flush()
    }

    /// Compresses all that follows with a wide dictionary from another pack, which becomes the batch's.
    pub(crate) fn use_wide(&mut self, raw: Vec<u8>) -> Result<(), Error> {
        let dictionary = Arc::new(Dictionary::from_raw(raw).map_err(compressing)?);
        self.packer.learn_wide(&dictionary).map_err(compressing)?;
        *self.batch.dictionary.lock() = Some(dictionary);
        Ok(())
    }

    /// Adds a block whose document is unknown, as a document of its own.
    pub fn put_alone(&mut self, block: BlockRef, bytes: &[u8]) -> Result<(), Error> {
        self.put(block, bytes)?;
        self.end_document()
    }

    /// Marks the end of a document, so that the next one may start a new frame.
    pub fn end_document(&mut self) -> Result<(), Error> {
        if self.ends.last().copied().unwrap_or(0) < self.blocks.len() {
            self.ends.push(self.blocks.len());
        }
        self.lookback = Lookback::default();
        let long_enough = self.raw.len() >= frame::DOCUMENT;
        if long_enough && self.learn().map_err(compressing)? { self.flush() } else { Ok(()) }
    }

    /// Passes the remaining blocks to the batch.
    pub fn finish(mut self) -> Result<(), Error> {
        self.flush()
    }

    /// Picks up the batch's dictionary if there is one; returns whether the packer has it.
    fn learn(&mut self) -> io::Result<bool> {
        if !self.packer.knows_dictionary()
            && let Some(dictionary) = &*self.batch.dictionary.lock()
        {
            self.packer.learn(dictionary)?;
        }
        Ok(self.packer.knows_dictionary())
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.pack().map_err(compressing)??;
        self.raw.clear();
        self.blocks.clear();
        self.ends.clear();
        Ok(())
    }

    fn pack(&mut self) -> io::Result<Result<(), Error>> {
        if !self.learn()? && self.raw.len() >= frame::TARGET && self.ends.len() >= DOCUMENTS {
            self.make_dictionary()?;
        }
        let mut ends = std::mem::take(&mut self.ends);
        if !self.packer.knows_dictionary() {
            ends.clear();
        }
        ends.push(self.blocks.len());
        let (mut from, mut start) = (0, 0);
        for to in ends {
            let end = self.blocks.get(to).map_or(self.raw.len(), |(_, offset, _)| *offset as usize);
            let is_last = to == self.blocks.len();
            if to == from || (end - start < frame::DOCUMENT && !is_last) {
                continue;
            }
            let (codec, stored) = self.packer.pack(&self.raw[start..end])?;
            let blocks = &mut self.blocks[from..to];
            blocks.iter_mut().for_each(|(_, offset, _)| *offset -= start as u32);
            if let Err(error) = self.batch.take_frame(codec, &stored, end - start, blocks) {
                return Ok(Err(error));
            }
            (from, start) = (to, end);
        }
        Ok(Ok(()))
    }

    /// Makes an earlier part of a large document the batch's dictionary, if that helps with the present frame.
    fn widen(&mut self) -> io::Result<()> {
        let mut present = self.batch.dictionary.lock();
        if present.is_none() && self.packer.profits(&self.lookback.recent, &self.raw)? {
            let made = Arc::new(Dictionary::from_raw(std::mem::take(&mut self.lookback.recent))?);
            self.packer.learn_wide(&made)?;
            *present = Some(made);
        }
        drop(present);
        self.lookback.put_off();
        Ok(())
    }

    /// Builds the batch's dictionary from the buffered documents, if they are compressible.
    fn make_dictionary(&mut self) -> io::Result<()> {
        if !self.packer.shrinks(&self.raw)? {
            return Ok(());
        }
        let offset =
            |end: usize| self.blocks.get(end).map_or(self.raw.len(), |(_, offset, _)| *offset as usize);
        let starts = std::iter::once(0).chain(self.ends.iter().map(|end| offset(*end)));
        let documents = starts.zip(self.ends.iter().map(|end| offset(*end)));
        let mut present = self.batch.dictionary.lock();
        if present.is_none() {
            let made = Dictionary::of(documents.map(|(start, end)| &self.raw[start..end]))?;
            *present = Some(Arc::new(made));
        }
        drop(present);
        self.learn().map(drop)
    }
}

fn compressing(source: io::Error) -> Error {
    storage("compress", "a frame", source)
}
