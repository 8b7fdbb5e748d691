//! The store: verified reads from all packs, and where to begin to write more.

use std::{
    collections::{HashMap, HashSet},
    io,
    sync::Arc,
};

use parking_lot::RwLock;

use crate::{
    BlockId, BlockRef, Error,
    cache::Frames,
    frame::Codec,
    objects::Objects,
    pack::{BlockEntry, Index},
    presence::{Presence, Trust},
    reader::{Place, Reader},
    writing::Batch,
};

/// Packs of blocks in object storage. Many processes may use one storage at once; each sees the others' packs when it
/// misses a block.
pub struct Store {
    objects: Arc<dyn Objects>,
    packs: RwLock<Packs>,
    frames: Frames,
    /// Blocks that were found damaged: they count as absent, so that storing their content again heals them.
    damaged: RwLock<HashSet<BlockId>>,
}

#[derive(Default)]
struct Packs {
    listed: bool,
    /// A number that is never used twice, so that a cached frame cannot be taken for another pack's.
    next: u64,
    open: Vec<(u64, Arc<Index>)>,
    /// Packs whose index could not be read, with the reason; asked again on every refresh.
    broken: HashMap<String, String>,
}

/// What the packs hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Number of packs.
    pub packs: u64,
    /// Bytes of all packs as stored.
    pub stored_bytes: u64,
    /// Blocks in all packs; one that two packs hold counts twice.
    pub blocks: u64,
    /// Bytes of those blocks before compression.
    pub raw_bytes: u64,
}

/// Something wrong in a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The pack.
    pub object: String,
    /// The block, when a single one is affected.
    pub block: Option<BlockId>,
    /// What does not fit.
    pub what: String,
}

impl Store {
    /// A store over `objects`. Nothing is read until a block is asked for.
    pub fn new(objects: Arc<dyn Objects>) -> Self {
        Self { objects, packs: RwLock::default(), frames: Frames::default(), damaged: RwLock::default() }
    }

    /// Gives back memory for a while in which little is read.
    pub fn release_memory(&self) {
        self.frames.clear();
    }

    pub(crate) fn objects(&self) -> &dyn Objects {
        &*self.objects
    }

    pub(crate) fn objects_handle(&self) -> Arc<dyn Objects> {
        self.objects.clone()
    }

    /// Reads one block, verified against its name.
    pub fn read(&self, id: &BlockId) -> Result<Vec<u8>, Error> {
        if let Some(found) = self.read_known(id)? {
            return Ok(found);
        }
        // Another process may have written it, or repacked it, since the folder was last listed.
        self.refresh()?;
        self.read_known(id)?.ok_or(Error::Missing(*id))
    }

    /// Reads one block from the packs seen so far; `None` when none of them holds it.
    pub fn read_known(&self, id: &BlockId) -> Result<Option<Vec<u8>>, Error> {
        self.ensure_listed()?;
        self.try_holders(id).transpose()
    }

    /// Begins to ask which blocks a write may leave out. The caller holds the writers' lock until it has committed.
    /// Packs that other processes wrote since the last look may be overlooked: then a block is stored twice, which
    /// costs room and nothing else.
    pub fn presence(&self, trust: Trust) -> Presence<'_> {
        Presence::new(self, trust)
    }

    pub(crate) fn is_damaged(&self, id: &BlockId) -> bool {
        self.damaged.read().contains(id)
    }

    /// The packs that hold a block, newest first.
    pub(crate) fn holders(&self, id: &BlockId) -> Result<Vec<(u64, Arc<Index>)>, Error> {
        self.ensure_listed()?;
        let packs = self.packs.read();
        Ok(packs.open.iter().rev().filter(|(_, pack)| pack.find(id).is_some()).cloned().collect())
    }

    /// Looks for new and vanished packs.
    pub fn refresh(&self) -> Result<(), Error> {
        let names = self.objects.list().map_err(|source| storage("list", "packs", source))?;
        let names: HashSet<String> = names.into_iter().filter(|name| name.ends_with(".pack")).collect();
        let mut packs = self.packs.write();
        packs.listed = true;
        packs.open.retain(|(_, pack)| names.contains(&pack.name));
        packs.broken.retain(|name, _| names.contains(name));
        let known: HashSet<String> = packs.open.iter().map(|(_, pack)| pack.name.clone()).collect();
        for name in names.difference(&known) {
            match Index::open(&*self.objects, name) {
                Ok(index) => packs.add(index),
                Err(Error::Storage { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    packs.broken.insert(name.clone(), error.to_string());
                }
            }
        }
        Ok(())
    }

    /// Starts a batch of writes that leaves out what packs hold.
    pub fn batch(&self, trust: Trust) -> Batch<'_> {
        Batch::new(self, trust)
    }

    /// Starts to read many blocks.
    pub fn reader(&self) -> Reader<'_> {
        Reader::new(self)
    }

    /// Where blocks lie, as far as this process knows; `None` for those in no pack it has seen.
    pub fn places(&self, ids: impl Iterator<Item = BlockId>) -> Result<Vec<Option<Place>>, Error> {
        self.ensure_listed()?;
        let packs = self.packs.read();
        // Blocks that are asked for together mostly lie together.
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

    /// Takes a pack that was just written into use.
    pub(crate) fn admit(&self, index: Index) {
        let mut packs = self.packs.write();
        // A pack of that name was damaged and has been written anew: what was read of it before is not believed.
        packs.open.retain(|(_, pack)| pack.name != index.name);
        packs.add(index);
    }

    /// What the packs hold.
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

    /// Reads every byte of every pack and compares every block with its name.
    pub fn verify(&self, mut each_pack: impl FnMut(usize, usize) -> bool) -> Result<Vec<Problem>, Error> {
        self.refresh()?;
        let (packs, broken) = {
            let packs = self.packs.read();
            (packs.open.iter().map(|(_, pack)| pack.clone()).collect::<Vec<_>>(), packs.broken.clone())
        };
        let mut problems: Vec<Problem> =
            broken.into_iter().map(|(object, what)| Problem { object, block: None, what }).collect();
        for (done, pack) in packs.iter().enumerate() {
            self.verify_pack(pack, &mut problems);
            if !each_pack(done + 1, packs.len()) {
                break;
            }
        }
        problems.sort_by(|a, b| a.object.cmp(&b.object));
        Ok(problems)
    }

    fn verify_pack(&self, pack: &Index, problems: &mut Vec<Problem>) {
        let mut note = |block, what| problems.push(Problem { object: pack.name.clone(), block, what });
        let mut dictionary = None;
        for copy in pack.dictionaries() {
            match pack.read_frame(&*self.objects, copy, None) {
                Ok(raw) => dictionary = Some(Arc::new(raw)),
                Err(error) => note(None, format!("a copy of its dictionary: {error}")),
            }
        }
        let mut by_frame: Vec<Vec<_>> = vec![Vec::new(); pack.frames.len()];
        for block in &pack.blocks {
            by_frame[block.frame as usize].push(block);
        }
        for (number, blocks) in by_frame.iter().enumerate().filter(|(_, blocks)| !blocks.is_empty()) {
            let frame = pack.read_frame(&*self.objects, number as u32, dictionary.as_ref());
            for block in blocks {
                let what = match &frame {
                    Err(error) => error.to_string(),
                    Ok(raw) if BlockId::of(cut_out(raw, block)) != block.id => {
                        "its bytes do not have its hash".into()
                    }
                    Ok(_) => continue,
                };
                note(Some(block.id), what);
            }
        }
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

    /// Tries every pack that holds the block: a second copy serves when the first is damaged.
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
                // Deleted by a collection in another process: look again.
                Err(Error::Storage { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                    self.forget(&pack.name);
                }
                Err(error) => last = Some(Err(error)),
            }
        }
        if last.is_some() {
            self.damaged.write().insert(*id);
        }
        last
    }

    fn heal(&self, id: &BlockId) {
        if !self.damaged.read().is_empty() {
            self.damaged.write().remove(id);
        }
    }

    /// Takes damaged packs out of use: what can still be read moves to a new pack, the damaged one is deleted. Gives
    /// the blocks that are lost.
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
        // What could all be read comes out as the very same pack, which has then replaced the damaged one.
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
        let frame = self.frame(number, pack, entry.frame)?;
        verified(pack, id, cut_out(&frame, entry)).map(<[u8]>::to_vec)
    }

    /// Reads a block from storage, whatever is kept in memory. `dictionary` gives the pack's, read from storage too.
    pub(crate) fn read_afresh(
        &self,
        pack: &Index,
        id: &BlockId,
        dictionary: impl FnOnce() -> Result<Arc<Vec<u8>>, Error>,
    ) -> Result<(), Error> {
        let entry = pack.find(id).ok_or(Error::Missing(*id))?;
        let needs_dictionary = pack.frames[entry.frame as usize].codec == Codec::Worded;
        let dictionary = if needs_dictionary { Some(dictionary()?) } else { None };
        let frame = pack.read_frame(&*self.objects, entry.frame, dictionary.as_ref())?;
        verified(pack, id, cut_out(&frame, entry)).map(drop)
    }

    fn frame(&self, number: u64, pack: &Index, frame: u32) -> Result<Arc<Vec<u8>>, Error> {
        if let Some(found) = self.frames.get((number, frame)) {
            return Ok(found);
        }
        let dictionary = self.dictionary_for(number, pack, frame)?;
        let raw = Arc::new(pack.read_frame(&*self.objects, frame, dictionary.as_ref())?);
        self.frames.keep((number, frame), &raw);
        Ok(raw)
    }

    /// The pack's dictionary, when the frame needs it. It is kept as frames are, under the number of its first copy.
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
        if let Some(found) = self.frames.get(key) {
            return Ok(Some(found));
        }
        let raw = Arc::new(pack.read_dictionary(&*self.objects)?);
        self.frames.keep(key, &raw);
        Ok(Some(raw))
    }
}

fn verified<'a>(pack: &Index, id: &BlockId, block: &'a [u8]) -> Result<&'a [u8], Error> {
    if BlockId::of(block) == *id {
        return Ok(block);
    }
    let what = format!("block {id} does not have its hash");
    Err(Error::damaged(format!("pack {}", pack.name), what))
}

fn cut_out<'a>(frame: &'a [u8], block: &BlockEntry) -> &'a [u8] {
    &frame[block.offset as usize..(block.offset + block.length) as usize]
}

pub(crate) fn storage(action: &'static str, object: &str, source: io::Error) -> Error {
    Error::Storage { action, object: object.to_owned(), source }
}

impl Packs {
    fn add(&mut self, index: Index) {
        let number = self.next;
        self.next += 1;
        self.open.push((number, Arc::new(index)));
    }
}
