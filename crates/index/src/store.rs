//! The index of a library: sealed segments on disk, and a tail in memory for what has been written since.
//!
//! The segments on disk cover the journal up to a sequence number. A process that needs later records indexes them into
//! its own *tail*, a few small segments in memory; that takes a few milliseconds and no lock. When the tail has grown,
//! the process that gets the **lease** (an inter-process lock) writes it out as a segment, and the other processes drop
//! the part of their tail that the segment covers. Large batches of new documents are written directly to disk. The
//! holder of the lease also merges small segments.

use std::{
    collections::HashMap,
    fs::{self, File},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use shelf_base::{Coordination, Held, LockMode};

use crate::{
    Error, Result, View,
    bits::Bits,
    manifest::{FileStamp, Manifest, SegmentNote, Stamp},
    segment::{Built, Segment, archive::Archive, merge},
    sharing::SharedSegment,
    view::Placed,
};

/// The name of the lock that is the lease.
const LEASE: &str = "index";
/// A tail with more segments than this is merged in memory.
const TAIL_SEGMENTS: usize = 8;
/// The number of documents at which a tail is written out.
const TAIL_DOCUMENTS: usize = 512;
/// The number of bytes of text at which a tail is written out.
const TAIL_BYTES: u64 = 8 << 20;
/// How much larger a tail may grow on a machine that leaves writing it out to another.
const OVERDUE: usize = 4;
/// The minimum number of segments of similar size that are merged into one.
const MERGE_SEGMENTS: usize = 6;
/// Segments up to this many bytes of text are merged as soon as enough of them have a similar size.
const SMALL_BYTES: u64 = 12 << 20;
/// Larger segments are merged only when there are more segments than this, which would slow searches down.
const MANY_SEGMENTS: usize = 24;
/// The maximum number of bytes of text in a merged segment.
const MERGED_BYTES: u64 = 192 << 20;
/// Files that the manifest does not list are removed once they are this old; younger ones may still be being written by
/// another process.
const ORPHAN_AGE: Duration = Duration::from_secs(15 * 60);

/// How far an index has followed a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// The last record that is covered; 0 for none.
    pub sequence: u64,
    /// The journal's own mark of that record, which no other journal has.
    pub mark: String,
}

/// A change to the index that covers a range of journal records.
pub struct Change {
    /// The journal record after which the change starts.
    pub from: u64,
    /// The last record it covers.
    pub to: Followed,
    /// New documents, in one or several segments.
    pub built: Vec<Built>,
    /// Numbers of all changed documents, including new ones: their rows in older segments are obsolete.
    pub touched: Vec<i64>,
}

/// A segment that has been written to disk but is not yet part of the index.
pub struct Staged(SegmentNote);

/// The right to write the index, held by one process at a time.
pub struct Lease {
    _held: Held,
}

/// A section of the tail.
struct Stretch {
    to: Followed,
    segments: Vec<Arc<Segment>>,
    touched: Vec<i64>,
    documents: usize,
    text_bytes: u64,
}

impl Stretch {
    fn of(change: Change) -> Result<Self> {
        let (mut documents, mut text_bytes, mut segments) = (0, 0, Vec::new());
        for built in change.built {
            documents += built.documents as usize;
            text_bytes += built.text_bytes;
            segments.push(Arc::new(built.in_memory()?));
        }
        Ok(Self { to: change.to, segments, touched: change.touched, documents, text_bytes })
    }
}

#[derive(Default)]
struct State {
    stamp: Option<Stamp>,
    manifest: Manifest,
    base: Vec<Placed>,
    tail: Vec<Stretch>,
    view: Arc<View>,
}

/// The index of a library.
pub struct Index {
    folder: PathBuf,
    model: &'static str,
    reader: u32,
    coordination: Arc<dyn Coordination>,
    state: Mutex<State>,
    /// Segments on disk that were described for other machines, or fetched from them, by the names of their files.
    pub(crate) described: Mutex<HashMap<String, SharedSegment>>,
}

impl Index {
    /// The index in `folder`, with vectors of `model`. Who may write it is decided by the lock `index` of `coordination`.
    /// Nothing is read yet.
    pub fn new(folder: PathBuf, model: &'static str, coordination: Arc<dyn Coordination>) -> Self {
        Self { folder, model, reader: 0, coordination, state: Mutex::default(), described: Mutex::default() }
    }

    /// The same index with facts of this version of their readers; segments with others are rebuilt.
    pub fn with_reader(self, reader: u32) -> Self {
        Self { reader, ..self }
    }

    /// The current view: what is on disk now, and this process's tail.
    pub fn view(&self) -> Result<Arc<View>> {
        let mut state = self.state.lock();
        self.refresh(&mut state)?;
        Ok(state.view.clone())
    }

    /// Releases the resident pages of mapped files while the index is idle; they are cheap to map again.
    pub fn release_pages(&self) {
        let view = self.state.lock().view.clone();
        view.segments.iter().for_each(|placed| placed.segment.release_pages());
    }

    /// Drops the in-memory vocabularies used by pattern searches; they are rebuilt on demand.
    pub fn forget_words(&self) {
        let view = self.state.lock().view.clone();
        view.segments.iter().for_each(|placed| placed.segment.forget_words());
    }

    /// Drops all in-memory state, because the journal that it followed has been replaced.
    pub fn forget_memory(&self) {
        *self.state.lock() = State::default();
    }

    /// The last record that the segments on disk cover.
    pub fn written(&self) -> Result<Followed> {
        let mut state = self.state.lock();
        self.refresh(&mut state)?;
        Ok(state.manifest.followed())
    }

    /// The last record according to the manifest on disk, whether or not the manifest is valid for this journal.
    pub fn noted_sequence(&self) -> Option<u64> {
        Manifest::read(&self.folder).ok().map(|manifest| manifest.sequence)
    }

    /// Takes the lease, unless another process holds it.
    pub fn try_lease(&self) -> Result<Option<Lease>> {
        Ok(self.coordination.attempt(LEASE, LockMode::Exclusive)?.map(|held| Lease { _held: held }))
    }

    /// Appends a change to this process's tail; returns `false` if it does not start where the index ends.
    pub fn append(&self, change: Change) -> Result<bool> {
        let (from, stretch) = (change.from, Stretch::of(change)?);
        let mut state = self.state.lock();
        self.refresh(&mut state)?;
        if state.view.sequence != from {
            return Ok(false);
        }
        state.tail.push(stretch);
        rebuild_view(&mut state);
        drop(state);
        self.fold_tail()?;
        Ok(true)
    }

    /// Merges a tail with many segments into one stretch, in memory. Readers are not blocked meanwhile.
    fn fold_tail(&self) -> Result<()> {
        let (ends, placed) = {
            let state = self.state.lock();
            if state.tail.iter().map(|stretch| stretch.segments.len()).sum::<usize>() <= TAIL_SEGMENTS {
                return Ok(());
            }
            (
                state.tail.iter().map(|stretch| stretch.to.sequence).collect::<Vec<_>>(),
                place_tail(&state.tail),
            )
        };
        let merged = self.merge_placed(&placed)?;
        let documents = merged.as_ref().map_or(0, |built| built.documents as usize);
        let segments = merged.map(Built::in_memory).transpose()?.map(Arc::new).into_iter().collect();
        let mut state = self.state.lock();
        // Give up if the start of the tail has been written out in the meantime.
        if !state.tail.iter().map(|stretch| stretch.to.sequence).take(ends.len()).eq(ends.iter().copied()) {
            return Ok(());
        }
        let folded = state.tail.drain(..ends.len());
        let (mut to, mut touched, mut text_bytes) = (Followed::default(), Vec::new(), 0);
        for stretch in folded {
            to = stretch.to;
            touched.extend(stretch.touched);
            text_bytes += stretch.text_bytes;
        }
        touched.sort_unstable();
        touched.dedup();
        state.tail.insert(0, Stretch { to, segments, touched, documents, text_bytes });
        rebuild_view(&mut state);
        Ok(())
    }

    fn merge_placed(&self, placed: &[Placed]) -> Result<Option<Built>> {
        let parts: Vec<(&Segment, &Bits)> =
            placed.iter().map(|placed| (&*placed.segment, &*placed.live)).collect();
        merge(&parts, &self.folder)
    }

    /// Whether the tail is large enough to be written out.
    pub fn tail_is_due(&self) -> bool {
        self.tail_is_above(1)
    }

    /// Whether the tail is so large that it is written out although another machine is expected to do so.
    pub fn tail_is_overdue(&self) -> bool {
        self.tail_is_above(OVERDUE)
    }

    fn tail_is_above(&self, times: usize) -> bool {
        let state = self.state.lock();
        let documents: usize =
            state.tail.iter().map(|stretch| stretch.documents + stretch.touched.len() / 2).sum();
        let bytes: u64 = state.tail.iter().map(|stretch| stretch.text_bytes).sum();
        documents >= times * TAIL_DOCUMENTS || bytes >= times as u64 * TAIL_BYTES
    }

    /// Writes the tail out as a segment.
    pub fn flush(&self, lease: &Lease) -> Result<()> {
        let (from, to, touched, placed) = {
            let mut state = self.state.lock();
            self.refresh(&mut state)?;
            let Some(to) = state.tail.last().map(|stretch| stretch.to.clone()) else { return Ok(()) };
            let touched: Vec<i64> =
                state.tail.iter().flat_map(|stretch| stretch.touched.iter().copied()).collect();
            (state.manifest.sequence, to, touched, place_tail(&state.tail))
        };
        let staged = self.merge_placed(&placed)?.map(|built| self.stage(lease, built)).transpose()?;
        self.commit(lease, from, &to, staged.into_iter().collect(), &touched)
    }

    /// Writes a segment to be added by a later [`commit`](Self::commit).
    pub fn stage(&self, _lease: &Lease, built: Built) -> Result<Staged> {
        Ok(Staged(self.write_segment(built)?))
    }

    /// Makes staged segments part of the index: they cover the journal after `from` up to `to`, and the rows of the
    /// `touched` documents in older segments become obsolete.
    pub fn commit(
        &self,
        lease: &Lease,
        from: u64,
        to: &Followed,
        staged: Vec<Staged>,
        touched: &[i64],
    ) -> Result<()> {
        let mut state = self.state.lock();
        self.refresh(&mut state)?;
        if state.manifest.sequence != from {
            return Ok(());
        }
        let before = state.manifest.clone();
        let mut manifest = before.clone();
        for (placed, note) in state.base.iter().zip(&mut manifest.segments) {
            let mut placed = placed.clone();
            if placed.bury(touched) {
                note.dead = dead_rows(&placed.live);
            }
        }
        manifest.segments.retain(|note| note.dead.len() < note.documents as usize);
        manifest.segments.extend(staged.into_iter().map(|staged| staged.0));
        drop(state);
        manifest.sequence = to.sequence;
        manifest.mark.clone_from(&to.mark);
        self.replace(lease, &before, manifest)
    }

    /// Replaces the manifest and removes the files it no longer lists. Readers that have those files open can keep
    /// using them; a reader that is about to open one rereads the manifest. The lease excludes other writers.
    pub(crate) fn replace(&self, _lease: &Lease, before: &Manifest, mut manifest: Manifest) -> Result<()> {
        manifest.write(&self.folder)?;
        self.refresh(&mut self.state.lock())?;
        let is_gone = |name: &String| manifest.segments.iter().all(|note| note.name != *name);
        for name in before.segments.iter().map(|note| &note.name).filter(|name| is_gone(name)) {
            let _ = fs::remove_file(self.folder.join(name));
        }
        self.remove_orphans(&manifest);
        Ok(())
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn model(&self) -> &'static str {
        self.model
    }

    pub(crate) fn reader(&self) -> u32 {
        self.reader
    }

    /// The manifest, and its segments in their order.
    pub(crate) fn on_disk(&self) -> Result<(Manifest, Vec<Arc<Segment>>)> {
        let mut state = self.state.lock();
        self.refresh(&mut state)?;
        Ok((state.manifest.clone(), state.base.iter().map(|placed| placed.segment.clone()).collect()))
    }

    pub(crate) fn write_segment(&self, built: Built) -> Result<SegmentNote> {
        make_folder(&self.folder)?;
        let unique = tempfile::Builder::new().prefix("segment-").suffix(".part").tempfile_in(&self.folder)?;
        let name =
            unique.path().file_stem().map(|stem| format!("{}.seg", stem.display())).unwrap_or_default();
        let path = self.folder.join(&name);
        let length = Archive::write(&path, &built.parts)?;
        File::open(&self.folder)?.sync_all()?;
        Ok(SegmentNote {
            name,
            length,
            documents: built.documents,
            text_bytes: built.text_bytes,
            model: self.model.to_owned(),
            reader: self.reader,
            dead: Vec::new(),
            stamp: FileStamp::of(&path).ok(),
        })
    }

    /// Merges one group of similar segments, if there is one; returns whether it did.
    pub fn merge(&self, lease: &Lease) -> Result<bool> {
        let (names, placed) = {
            let mut state = self.state.lock();
            self.refresh(&mut state)?;
            let chosen = choose_merge(&state.manifest.segments);
            let names: Vec<String> =
                chosen.iter().map(|at| state.manifest.segments[*at].name.clone()).collect();
            (names, chosen.iter().map(|at| state.base[*at].clone()).collect::<Vec<_>>())
        };
        if placed.is_empty() {
            return Ok(false);
        }
        let note = self.merge_placed(&placed)?.map(|built| self.write_segment(built)).transpose()?;
        let before = Manifest::read(&self.folder)?;
        if !names.iter().all(|name| before.segments.iter().any(|note| note.name == *name)) {
            return Ok(false);
        }
        let mut manifest = before.clone();
        manifest.segments.retain(|note| !names.contains(&note.name));
        manifest.segments.extend(note);
        self.replace(lease, &before, manifest)?;
        Ok(true)
    }

    /// Deletes the index; the next reader rebuilds it.
    pub fn wipe(&self, _lease: &Lease) -> Result<()> {
        let mut state = self.state.lock();
        Manifest::remove(&self.folder)?;
        *state = State::default();
        for entry in fs::read_dir(&self.folder)?.flatten() {
            if entry.file_name().to_string_lossy().ends_with(".seg") {
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }

    /// Verifies everything on disk against its hashes.
    pub fn check(&self) -> Result<()> {
        let mut state = self.state.lock();
        state.stamp = None;
        self.refresh(&mut state)?;
        let view = state.view.clone();
        drop(state);
        view.verify()
    }

    /// Picks up what other processes have written.
    fn refresh(&self, state: &mut State) -> Result<()> {
        let mut attempts = 0;
        loop {
            let stamp = Manifest::stamp(&self.folder)?;
            if state.stamp == Some(stamp) {
                return Ok(());
            }
            let mut manifest = Manifest::read(&self.folder)?;
            if manifest.segments.iter().any(|note| note.model != self.model || note.reader != self.reader) {
                // Vectors of a different model or facts of other readers: rebuild everything.
                manifest = Manifest::default();
            }
            match self.open_all(&manifest, state) {
                Ok(base) => {
                    take(state, manifest, base, stamp);
                    return Ok(());
                }
                // Another process may have replaced the manifest and removed files after we read it.
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::NotFound && attempts < 3 => {
                    attempts += 1
                }
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(Error::damaged("segment", "a file is missing"));
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn open_all(&self, manifest: &Manifest, state: &State) -> Result<Vec<Placed>> {
        let open = |note: &SegmentNote| {
            let known = state.manifest.segments.iter().position(|known| known.name == note.name);
            let segment = match known.and_then(|at| state.base.get(at)) {
                Some(placed) => placed.segment.clone(),
                None => {
                    let stamp = FileStamp::of(&self.folder.join(&note.name))?;
                    let archive = Archive::open(&self.folder, &note.name, note.length)?;
                    // The file has been written to since, or it is a copy.
                    if note.stamp != Some(stamp) {
                        archive.verify()?;
                    }
                    Arc::new(Segment::open(archive)?)
                }
            };
            if segment.documents() != note.documents as usize {
                return Err(Error::damaged(&note.name, "its number of documents differs from the manifest"));
            }
            let mut live = Bits::all(segment.documents());
            note.dead.iter().for_each(|row| live.clear(*row as usize));
            Ok(Placed { segment, live: Arc::new(live) })
        };
        manifest.segments.iter().map(open).collect()
    }

    /// Removes files that the manifest does not list and that no process can still be writing.
    fn remove_orphans(&self, manifest: &Manifest) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let ours =
                name.starts_with("segment-") || name.starts_with("merge-") || name.starts_with("manifest-");
            if !ours || manifest.segments.iter().any(|note| note.name == name) {
                continue;
            }
            let modified = entry.metadata().and_then(|facts| facts.modified());
            let age =
                modified.ok().and_then(|at| SystemTime::now().duration_since(at).ok()).unwrap_or_default();
            if age < ORPHAN_AGE {
                continue;
            }
            let _ = if entry.path().is_dir() {
                fs::remove_dir_all(entry.path())
            } else {
                fs::remove_file(entry.path())
            };
        }
    }
}

pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Installs a new base under the tail. A tail that does not continue from it is dropped and indexed again when needed.
fn take(state: &mut State, manifest: Manifest, base: Vec<Placed>, stamp: Stamp) {
    let before = state.manifest.sequence;
    let sequence = manifest.sequence;
    if sequence != before {
        let kept = state.tail.iter().position(|stretch| stretch.to.sequence == sequence).map(|at| at + 1);
        match kept {
            Some(kept) => drop(state.tail.drain(..kept)),
            None => state.tail.clear(),
        }
    }
    state.manifest = manifest;
    state.base = base;
    state.stamp = Some(stamp);
    rebuild_view(state);
}

fn rebuild_view(state: &mut State) {
    let mut segments = state.base.clone();
    let touched: Vec<i64> = state.tail.iter().flat_map(|stretch| stretch.touched.iter().copied()).collect();
    for placed in &mut segments {
        placed.bury(&touched);
    }
    segments.extend(place_tail(&state.tail));
    let sequence = state.tail.last().map_or(state.manifest.sequence, |stretch| stretch.to.sequence);
    state.view = Arc::new(View { sequence, written: state.manifest.followed(), segments });
}

/// The segments of a tail; documents that a later stretch changed are dead in earlier ones.
fn place_tail(tail: &[Stretch]) -> Vec<Placed> {
    let mut placed: Vec<Placed> = Vec::new();
    for stretch in tail {
        for placed in &mut placed {
            placed.bury(&stretch.touched);
        }
        placed.extend(stretch.segments.iter().map(|segment| Placed {
            segment: segment.clone(),
            live: Arc::new(Bits::all(segment.documents())),
        }));
    }
    placed
}

fn dead_rows(live: &Bits) -> Vec<u32> {
    (0..live.length()).filter(|row| !live.has(*row)).map(|row| row as u32).collect()
}

/// Chooses segments to merge: a group of similar size, or a single segment with mostly dead documents.
fn choose_merge(notes: &[SegmentNote]) -> Vec<usize> {
    if let Some(at) = notes.iter().position(|note| 2 * note.dead.len() > note.documents as usize) {
        return vec![at];
    }
    let class = |note: &SegmentNote| (note.text_bytes / (1 << 20) + 1).ilog(4);
    let most = if notes.len() > MANY_SEGMENTS { MERGED_BYTES / 2 } else { SMALL_BYTES };
    for size in 0..=(most >> 20).ilog(4) + 1 {
        let fits = |at: &usize| class(&notes[*at]) == size && notes[*at].text_bytes <= most;
        let group: Vec<usize> = (0..notes.len()).filter(fits).collect();
        if group.len() >= MERGE_SEGMENTS {
            let mut sum = 0;
            let fits = |at: &usize| {
                sum += notes[*at].text_bytes;
                sum <= MERGED_BYTES
            };
            return group.into_iter().take_while(fits).collect();
        }
    }
    Vec::new()
}
