//! The block store: verified reads from all packs, and the entry point for writing more.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    io,
    sync::Arc,
};

use parking_lot::{Mutex, RwLock};
use shelf_base::Recent;

use crate::{
    BlockId, BlockRef, Error,
    frame::Codec,
    objects::{self, ByteRange, Objects},
    pack::{BlockEntry, Index},
    presence::{Presence, Trust},
    reader::{Place, Reader},
    writing::Batch,
};

/// Raw bytes of frames that are read ahead at once, at most: the cache must still hold them when they are asked for.
const AHEAD: usize = 2 << 20;
/// Frames of a pack that are verified in one go: some megabytes.
const VERIFIED_AT_ONCE: usize = 64;
/// Bytes of decompressed frames that are kept.
const KEPT: usize = 8 << 20;

/// Packs of blocks in object storage. Several processes may share one storage; each discovers the others' packs when a
/// block is not found in the packs it has seen.
pub struct Store {
    objects: Arc<dyn Objects>,
    packs: RwLock<Packs>,
    /// Decompressed frames, by the numbers of pack and frame. Searches read the same documents again and again, and a small
    /// library fits in completely.
    frames: Recent<(u64, u32), Arc<Vec<u8>>>,
    /// Blocks that were found damaged. They count as absent, so that storing their content again repairs them.
    damaged: RwLock<HashSet<BlockId>>,
}

#[derive(Default)]
struct Packs {
    listed: bool,
    /// The next pack number. Numbers are never reused, so that a cached frame cannot be mistaken for another pack's.
    next: u64,
    open: Vec<(u64, Arc<Index>)>,
    /// Packs whose index could not be read, with the reason; retried on every refresh.
    broken: HashMap<String, String>,
}

/// Totals over all packs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Number of packs.
    pub packs: u64,
    /// Bytes of all packs as stored.
    pub stored_bytes: u64,
    /// Blocks in all packs; a block that is in two packs counts twice.
    pub blocks: u64,
    /// Bytes of those blocks before compression.
    pub raw_bytes: u64,
}

/// A defect found in a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The name of the pack.
    pub object: String,
    /// The affected block, if the defect concerns a single one.
    pub block: Option<BlockId>,
    /// What is wrong.
    pub what: String,
}

impl Store {
    /// A store over `objects`. Nothing is read until the first block is requested.
    pub fn new(objects: Arc<dyn Objects>) -> Self {
        Self { objects, packs: RwLock::default(), frames: Recent::new(KEPT), damaged: RwLock::default() }
    }

    /// Releases cached frames, to save memory while the store is idle.
    pub fn release_memory(&self) {
        self.frames.clear();
    }

    /// The storage of the packs.
    pub fn objects(&self) -> &dyn Objects {
        &*self.objects
    }

    pub(crate) fn objects_handle(&self) -> Arc<dyn Objects> {
        self.objects.clone()
    }

    /// Reads one block and verifies it against its hash.
    pub fn read(&self, id: &BlockId) -> Result<Vec<u8>, Error> {
        if let Some(found) = self.read_known(id)? {
            return Ok(found);
        }
        // Another process may have written or repacked it since the packs were last listed.
        self.refresh()?;
        self.read_known(id)?.ok_or(Error::Missing(*id))
    }

    /// Reads one block from the packs seen so far; `None` if none of them contains it.
    pub fn read_known(&self, id: &BlockId) -> Result<Option<Vec<u8>>, Error> {
        self.ensure_listed()?;
        self.try_holders(id).transpose()
    }

    /// Reads the frames of these blocks that are not in the cache, with one call for each pack. What cannot be read is
    /// left to whoever reads the block.
    pub fn read_ahead(&self, ids: &[BlockId]) {
        let mut room = AHEAD;
        for (number, (pack, frames)) in self.frames_of(ids) {
            let fits = |frame: &&u32| {
                let raw = pack.frames[**frame as usize].raw as usize;
                room = room.saturating_sub(raw);
                room > 0
            };
            let frames: Vec<u32> = frames.iter().take_while(fits).copied().collect();
            let ranges: Vec<ByteRange> = frames.iter().map(|frame| pack.range(*frame)).collect();
            // A single frame is read as well by whoever needs it.
            if frames.len() < 2 {
                continue;
            }
            let Ok(stored) = self.objects.read(&pack.name, &ranges) else { continue };
            for (frame, stored) in frames.into_iter().zip(stored) {
                if let Ok(dictionary) = self.dictionary_for(number, &pack, frame)
                    && let Ok(raw) = pack.unpack_frame(frame, &stored, dictionary.as_ref())
                {
                    let length = raw.len();
                    self.frames.keep((number, frame), Arc::new(raw), length);
                }
            }
        }
    }

    /// The frames of blocks that are not in the cache, by pack.
    fn frames_of(&self, ids: &[BlockId]) -> BTreeMap<u64, (Arc<Index>, BTreeSet<u32>)> {
        let mut wanted: BTreeMap<u64, (Arc<Index>, BTreeSet<u32>)> = BTreeMap::new();
        if self.ensure_listed().is_err() {
            return wanted;
        }
        let packs = self.packs.read();
        for id in ids {
            let found =
                packs.open.iter().rev().find_map(|(number, pack)| Some((number, pack, pack.find(id)?)));
            if let Some((number, pack, entry)) = found
                && !self.frames.contains(&(*number, entry.frame))
            {
                let of_pack = wanted.entry(*number).or_insert_with(|| (pack.clone(), BTreeSet::new()));
                of_pack.1.insert(entry.frame);
            }
        }
        wanted
    }

    /// Starts checking which blocks a write may omit. The caller holds the writers' lock until it has committed. Packs
    /// that other processes wrote since the last refresh may be missed: then a block is stored twice, which only costs
    /// space.
    pub fn presence(&self, trust: Trust) -> Presence<'_> {
        Presence::new(self, trust)
    }

    pub(crate) fn is_damaged(&self, id: &BlockId) -> bool {
        self.damaged.read().contains(id)
    }

    /// The packs that contain a block, newest first.
    pub(crate) fn holders(&self, id: &BlockId) -> Result<Vec<(u64, Arc<Index>)>, Error> {
        self.ensure_listed()?;
        let packs = self.packs.read();
        Ok(packs.open.iter().rev().filter(|(_, pack)| pack.find(id).is_some()).cloned().collect())
    }

    /// Picks up new packs and drops deleted ones.
    pub fn refresh(&self) -> Result<(), Error> {
        // A pack that is written while this lists is not dropped for being absent from the list.
        let known: HashSet<String> =
            self.packs.read().open.iter().map(|(_, pack)| pack.name.clone()).collect();
        let mut sizes: HashMap<String, u64> = HashMap::new();
        for page in objects::pages(&*self.objects) {
            let page = page.map_err(|source| storage("list", "packs", source))?.into_iter();
            sizes.extend(
                page.filter(|found| found.name.ends_with(".pack")).map(|found| (found.name, found.size)),
            );
        }
        // Readers go on while indexes are read, which may take long over a network.
        let unknown: HashMap<String, u64> = sizes
            .iter()
            .filter(|(name, _)| !known.contains(*name))
            .map(|(name, size)| (name.clone(), *size))
            .collect();
        let opened = self.open_indexes(&unknown);
        let mut packs = self.packs.write();
        packs.open.retain(|(_, pack)| sizes.contains_key(&pack.name) || !known.contains(&pack.name));
        packs.broken.retain(|name, _| sizes.contains_key(name));
        let present: HashSet<String> = packs.open.iter().map(|(_, pack)| pack.name.clone()).collect();
        let mut unreachable = None;
        for (name, opened) in opened {
            match opened {
                // Another thread may have been faster.
                Ok(_) if present.contains(name) => {}
                Ok(index) => packs.add(index),
                Err(Error::Storage { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                Err(error) if error.is_out_of_reach() => unreachable = Some(error),
                Err(error) => {
                    packs.broken.insert(name.to_owned(), error.to_string());
                }
            }
        }
        // What is in a pack that could not be reached must not be taken for missing.
        packs.listed = unreachable.is_none();
        unreachable.map_or(Ok(()), Err)
    }

    /// Reads the indexes of packs, as many at a time as the storage is good for.
    fn open_indexes<'s>(&self, sizes: &'s HashMap<String, u64>) -> Vec<(&'s str, Result<Index, Error>)> {
        let open =
            |(name, size): (&'s String, &u64)| (name.as_str(), Index::open(&*self.objects, name, *size));
        let threads = self.objects.parallel().min(sizes.len());
        if threads < 2 {
            return sizes.iter().map(open).collect();
        }
        let (left, opened) = (Mutex::new(sizes.iter()), Mutex::new(Vec::with_capacity(sizes.len())));
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(next) = { left.lock().next() } {
                        let done = open(next);
                        let is_out_of_reach = done.1.as_ref().is_err_and(Error::is_out_of_reach);
                        opened.lock().push(done);
                        // The others would fail as slowly as this one did.
                        if is_out_of_reach {
                            return;
                        }
                    }
                });
            }
        });
        opened.into_inner()
    }

    /// Starts a batch of writes; blocks that are already in a pack are omitted.
    pub fn batch(&self, trust: Trust) -> Batch<'_> {
        Batch::new(self, trust)
    }

    /// Creates a reader for many blocks.
    pub fn reader(&self) -> Reader<'_> {
        Reader::new(self)
    }

    /// The locations of blocks in the packs seen so far; `None` for blocks in none of them.
    pub fn places(&self, ids: impl Iterator<Item = BlockId>) -> Result<Vec<Option<Place>>, Error> {
        self.ensure_listed()?;
        let packs = self.packs.read();
        // Blocks that are requested together are mostly in the same pack.
        let mut last: Option<&(u64, Arc<Index>)> = None;
        let place = |id: BlockId| {
            let mut order = last.into_iter().chain(packs.open.iter().rev());
            let (found, entry) = order.find_map(|pack| Some((pack, pack.1.find(&id)?)))?;
            last = Some(found);
            Some(Place::new(found.0, entry))
        };
        Ok(ids.map(place).collect())
    }

    pub(crate) fn pack(&self, number: u64) -> Option<Arc<Index>> {
        let packs = self.packs.read();
        packs.open.iter().find(|(known, _)| *known == number).map(|(_, pack)| pack.clone())
    }

    /// Adds a pack that was just written.
    pub(crate) fn admit(&self, index: Index) {
        let mut packs = self.packs.write();
        // If a pack of that name exists, it was damaged and has been rewritten: discard the old index.
        packs.open.retain(|(_, pack)| pack.name != index.name);
        packs.add(index);
    }

    /// Totals over all packs.
    pub fn usage(&self) -> Result<Usage, Error> {
        self.refresh()?;
        let packs = self.packs.read();
        Ok(packs.open.iter().fold(Usage::default(), |sum, (_, pack)| Usage {
            packs: sum.packs + 1,
            stored_bytes: sum.stored_bytes + pack.length,
            blocks: sum.blocks + pack.blocks.len() as u64,
            raw_bytes: sum.raw_bytes + pack.blocks.iter().map(|block| u64::from(block.length)).sum::<u64>(),
        }))
    }

    /// Reads every pack in full and verifies every block against its hash.
    pub fn verify(&self, each_pack: impl FnMut(usize, usize) -> bool) -> Result<Vec<Problem>, Error> {
        self.verify_some(|_| true, each_pack)
    }

    /// Reads the packs with these names in full and verifies every block against its hash.
    pub fn verify_some(
        &self,
        is_wanted: impl Fn(&str) -> bool,
        mut each_pack: impl FnMut(usize, usize) -> bool,
    ) -> Result<Vec<Problem>, Error> {
        self.refresh()?;
        let (packs, broken) = {
            let packs = self.packs.read();
            let open = packs.open.iter().map(|(_, pack)| pack.clone());
            (open.filter(|pack| is_wanted(&pack.name)).collect::<Vec<_>>(), packs.broken.clone())
        };
        let mut problems: Vec<Problem> =
            broken.into_iter().map(|(object, what)| Problem { object, block: None, what }).collect();
        for (done, pack) in packs.iter().enumerate() {
            self.verify_pack(pack, &mut problems)?;
            if !each_pack(done + 1, packs.len()) {
                break;
            }
        }
        problems.sort_by(|a, b| a.object.cmp(&b.object));
        Ok(problems)
    }

    fn verify_pack(&self, pack: &Index, problems: &mut Vec<Problem>) -> Result<(), Error> {
        let mut note = |block, what| problems.push(Problem { object: pack.name.clone(), block, what });
        let mut dictionary = None;
        for copy in pack.dictionaries() {
            match pack.read_frame(self.truth(), copy, None) {
                Ok(raw) => dictionary = Some(Arc::new(raw)),
                Err(error) if error.is_out_of_reach() => return Err(error),
                Err(error) => note(None, format!("a copy of its dictionary: {error}")),
            }
        }
        let mut by_frame: Vec<Vec<_>> = vec![Vec::new(); pack.frames.len()];
        for block in &pack.blocks {
            by_frame[block.frame as usize].push(block);
        }
        let frames: Vec<u32> =
            (0..pack.frames.len() as u32).filter(|frame| !by_frame[*frame as usize].is_empty()).collect();
        for frames in frames.chunks(VERIFIED_AT_ONCE) {
            let ranges: Vec<ByteRange> = frames.iter().map(|frame| pack.range(*frame)).collect();
            let stored = self.truth().read(&pack.name, &ranges);
            for (at, number) in frames.iter().enumerate() {
                let frame = match &stored {
                    Ok(stored) => pack.unpack_frame(*number, &stored[at], dictionary.as_ref()),
                    // One range that cannot be read must not speak for the others.
                    Err(_) => pack.read_frame(self.truth(), *number, dictionary.as_ref()),
                };
                if let Err(error) = &frame
                    && error.is_out_of_reach()
                {
                    return frame.map(drop);
                }
                for block in &by_frame[*number as usize] {
                    let what = match &frame {
                        Err(error) => error.to_string(),
                        Ok(raw) if BlockId::of(cut_out(raw, block)) != block.id => {
                            "its bytes do not match its hash".into()
                        }
                        Ok(_) => continue,
                    };
                    note(Some(block.id), what);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn open_packs(&self) -> Vec<Arc<Index>> {
        self.packs.read().open.iter().map(|(_, pack)| pack.clone()).collect()
    }

    pub(crate) fn forget(&self, name: &str) {
        self.packs.write().open.retain(|(_, pack)| pack.name != name);
    }

    fn ensure_listed(&self) -> Result<(), Error> {
        if self.packs.read().listed { Ok(()) } else { self.refresh() }
    }

    /// Tries every pack that contains the block, so that a second copy is used if the first is damaged.
    fn try_holders(&self, id: &BlockId) -> Option<Result<Vec<u8>, Error>> {
        let holders = match self.holders(id) {
            Ok(holders) => holders,
            Err(error) => return Some(Err(error)),
        };
        let mut last = None;
        for (number, pack) in holders {
            match self.read_from(number, &pack, id) {
                Ok(bytes) => {
                    self.heal(id);
                    return Some(Ok(bytes));
                }
                // The pack was deleted by garbage collection in another process.
                Err(Error::Storage { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                    self.forget(&pack.name);
                }
                Err(error) => last = Some(error),
            }
        }
        // What could not be reached is not damaged.
        if last.as_ref().is_some_and(|error| !error.is_out_of_reach()) {
            self.damaged.write().insert(*id);
        }
        last.map(Err)
    }

    fn heal(&self, id: &BlockId) {
        if !self.damaged.read().is_empty() {
            self.damaged.write().remove(id);
        }
    }

    /// Takes damaged packs out of use: blocks that can still be read move to a new pack, and the damaged packs are
    /// deleted. Returns the blocks that are lost.
    pub fn salvage(&self, damaged: &[String]) -> Result<Vec<BlockId>, Error> {
        self.refresh()?;
        let packs: Vec<Arc<Index>> =
            self.open_packs().into_iter().filter(|pack| damaged.contains(&pack.name)).collect();
        let mut lost = Vec::new();
        let rest = Self::new(self.objects.clone());
        rest.refresh()?;
        damaged.iter().for_each(|name| rest.forget(name));
        let batch = rest.batch(Trust::Bytes);
        let mut writer = batch.writer()?;
        for block in packs.iter().flat_map(|pack| &pack.blocks) {
            match self.read(&block.id) {
                Ok(bytes) => writer.put_alone(BlockRef { id: block.id, length: block.length }, &bytes)?,
                Err(_) => lost.push(block.id),
            }
        }
        writer.finish()?;
        let _sealed = batch.seal()?;
        // If every block could be read, the new pack may have the damaged pack's name and has already replaced it.
        let written = batch.written();
        for name in damaged {
            self.forget(name);
            if !written.contains(name) {
                self.objects.delete(name).map_err(|source| storage("delete", name, source))?;
            }
        }
        self.refresh()?;
        Ok(lost)
    }

    fn read_from(&self, number: u64, pack: &Index, id: &BlockId) -> Result<Vec<u8>, Error> {
        let entry = pack.find(id).ok_or(Error::Missing(*id))?;
        let read = || {
            let frame = self.frame(number, pack, entry.frame)?;
            verified(pack, id, cut_out(&frame, entry)).map(<[u8]>::to_vec)
        };
        match read() {
            // Copies may be of a pack that was damaged and has been replaced since.
            Err(Error::Damaged { .. }) if self.objects.distrust(&pack.name) => {
                self.frames.clear();
                read()
            }
            outcome => outcome,
        }
    }

    /// The storage itself, without copies on this machine.
    pub fn truth(&self) -> &dyn Objects {
        self.objects.source().unwrap_or(&*self.objects)
    }

    /// Reads and verifies a block from storage, bypassing the cache. `dictionary` provides the pack's dictionary, which
    /// must come from storage too.
    pub(crate) fn read_afresh(
        &self,
        pack: &Index,
        id: &BlockId,
        dictionary: impl FnOnce() -> Result<Arc<Vec<u8>>, Error>,
    ) -> Result<(), Error> {
        let entry = pack.find(id).ok_or(Error::Missing(*id))?;
        let needs_dictionary = pack.frames[entry.frame as usize].codec == Codec::Worded;
        let dictionary = if needs_dictionary { Some(dictionary()?) } else { None };
        let frame = pack.read_frame(self.truth(), entry.frame, dictionary.as_ref())?;
        verified(pack, id, cut_out(&frame, entry)).map(drop)
    }

    fn frame(&self, number: u64, pack: &Index, frame: u32) -> Result<Arc<Vec<u8>>, Error> {
        if let Some(found) = self.frames.get(&(number, frame)) {
            return Ok(found);
        }
        let dictionary = self.dictionary_for(number, pack, frame)?;
        let raw = Arc::new(pack.read_frame(&*self.objects, frame, dictionary.as_ref())?);
        self.frames.keep((number, frame), raw.clone(), raw.len());
        Ok(raw)
    }

    /// The pack's dictionary, if the frame needs it. It is cached like a frame, under the number of its first copy.
    pub(crate) fn dictionary_for(
        &self,
        number: u64,
        pack: &Index,
        frame: u32,
    ) -> Result<Option<Arc<Vec<u8>>>, Error> {
        if pack.frames[frame as usize].codec != Codec::Worded {
            return Ok(None);
        }
        let key = (number, pack.dictionaries().next().unwrap_or(frame));
        if let Some(found) = self.frames.get(&key) {
            return Ok(Some(found));
        }
        let raw = Arc::new(pack.read_dictionary(&*self.objects)?);
        self.frames.keep(key, raw.clone(), raw.len());
        Ok(Some(raw))
    }
}

fn verified<'a>(pack: &Index, id: &BlockId, block: &'a [u8]) -> Result<&'a [u8], Error> {
    if BlockId::of(block) == *id {
        return Ok(block);
    }
    let what = format!("block {id} does not match its hash");
    Err(Error::damaged(format!("pack {}", pack.name), what))
}

fn cut_out<'a>(frame: &'a [u8], block: &BlockEntry) -> &'a [u8] {
    &frame[block.offset as usize..(block.offset + block.length) as usize]
}

pub(crate) fn storage(action: &'static str, object: &str, source: io::Error) -> Error {
    match source.kind() {
        // What is shorter than its index says is damaged, whichever read finds it.
        io::ErrorKind::UnexpectedEof => Error::damaged(object, "it ends too early"),
        _ => Error::Storage { action, object: object.to_owned(), source },
    }
}

impl Packs {
    fn add(&mut self, index: Index) {
        let number = self.next;
        self.next += 1;
        self.open.push((number, Arc::new(index)));
    }
}
