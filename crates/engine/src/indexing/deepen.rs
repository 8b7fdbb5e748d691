//! Deepening: vectors of the built-in table are replaced by those of the deep model, which finds more.
//!
//! A write never waits for the deep model: passages are indexed with vectors of the table, and one process at a time
//! replaces them later, segment by segment. Each vector that was made is kept under the hash of what was read, so that
//! work that is stopped goes on where it was, and the same passage is never read twice: not after a rebuild of the
//! index, nor in another version or copy of its document.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use shelf_base::{CallContext, LockMode};
use shelf_embed::{Cached, DIMENSIONS, Deep, Embedder};
use shelf_index::{Depth, Filter, Missing, ShallowPassage, ShallowSegment, View};

use super::{Deepen, Indexing, prepare::is_damage};
use crate::{Caller, Error, Library, Result};

/// The lock that one process holds while it deepens.
const LOCK: &str = "deepen";
/// Passages whose texts are in memory at once.
const WINDOW: usize = 512;
/// Passages of similar length that are encoded before anybody is asked whether to go on.
const BATCH: usize = 4;
/// New vectors after which a segment is written again, although others of its passages have none yet.
const WRITE_AFTER: usize = 8_192;
/// Vectors that are kept beyond twice the passages of the library: those of passages that are gone may be needed again.
const KEPT: u64 = 65_536;
/// What encoding a passage takes, as long as it has not been measured.
const EXPECTED: Duration = Duration::from_millis(25);

/// How far a library has been deepened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeepenFigures {
    /// Passages with text.
    pub passages: u64,
    /// Those with vectors of the deep model.
    pub deep: u64,
    /// How long the rest takes on one processor.
    pub remaining: Duration,
}

/// How to deepen.
pub(super) struct Pace<'a> {
    /// Whether to go on; asked every few passages.
    pub go_on: &'a (dyn Fn() -> bool + Sync),
    /// How many passages to encode at most.
    pub most: u64,
    /// How many threads encode.
    pub threads: usize,
}

type Vectors = BTreeMap<u32, [f32; DIMENSIONS]>;

/// One run of deepening.
struct Run<'a> {
    indexing: &'a Indexing,
    model: Cached<Arc<Deep>>,
    pace: Pace<'a>,
    /// Passages that have got deep vectors, and passages that lack them at the beginning.
    made: u64,
    of: u64,
}

impl Indexing {
    /// Gives deep vectors to passages within the filter; returns how many got one. Everything that is written has been
    /// written to disk before.
    pub(super) fn deepen(&self, filter: &Filter, pace: Pace<'_>, call: &CallContext) -> Result<u64> {
        let Some(deep) = &self.deep else {
            return Err(Error::Unavailable {
                what: "the deep model is switched off".into(),
                hint: "set embedding.deepen to idle or always in shelf.toml".into(),
            });
        };
        if !self.leads() {
            return Err(Error::Busy(
                "another machine writes the index segments of this library, and deepens them".into(),
            ));
        }
        let held = self.coordination.attempt(LOCK, LockMode::Exclusive).map_err(Error::Lock)?;
        let Some(_held) = held else {
            return Err(Error::Busy("another process is deepening this library".into()));
        };
        let model = Cached::open_small(&self.folder, deep.clone())?;
        let view = self.index.view()?;
        let depth = view.depth(filter);
        model.trim(KEPT.saturating_add(2 * view.depth(&Filter::default()).passages))?;
        let mut run = Run { indexing: self, model, pace, made: 0, of: depth.passages - depth.deep };
        let mut done = HashSet::new();
        let mut view = view;
        while (run.pace.go_on)() && run.made < run.pace.most {
            let Some(segment) = view.shallow(filter, &done) else { break };
            done.extend(run.segment(&view, segment, call)?);
            view = self.index.view()?;
        }
        if run.made > 0 {
            self.publish(call);
        }
        Ok(run.made)
    }

    /// How long one passage takes.
    fn pace_of_passage(&self) -> Duration {
        self.passage_time.lock().unwrap_or(EXPECTED)
    }

    pub(super) fn deepen_figures(&self, depth: Depth) -> DeepenFigures {
        let left = u32::try_from(depth.passages - depth.deep).unwrap_or(u32::MAX);
        let remaining = self.pace_of_passage().saturating_mul(left);
        DeepenFigures { passages: depth.passages, deep: depth.deep, remaining }
    }
}

impl Run<'_> {
    /// Deepens one segment; returns the names under which it should not be looked at again.
    fn segment(&mut self, view: &View, segment: ShallowSegment, call: &CallContext) -> Result<Vec<String>> {
        let mut names = vec![segment.name];
        let mut vectors = Vectors::new();
        for window in segment.passages.chunks(WINDOW) {
            let left = self.pace.most.saturating_sub(self.made);
            let window = &window[..window.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
            let made = self.window(view, window, call)?;
            self.made += made.len() as u64;
            vectors.extend(made);
            let is_stopped = !(self.pace.go_on)() || self.made >= self.pace.most;
            if vectors.len() >= WRITE_AFTER || (is_stopped && vectors.len() >= WRITE_AFTER / 4) {
                let Some(name) = self.write(&names, &mut vectors, call)? else { return Ok(names) };
                names.push(name);
            }
            if is_stopped {
                break;
            }
        }
        if (self.pace.go_on)() {
            names.extend(self.write(&names, &mut vectors, call)?);
        }
        Ok(names)
    }

    /// Writes a segment anew under its last name; `None` when it has been merged into another meanwhile.
    fn write(&self, names: &[String], vectors: &mut Vectors, call: &CallContext) -> Result<Option<String>> {
        let vectors = std::mem::take(vectors);
        let Some(name) = names.last().filter(|_| !vectors.is_empty()) else { return Ok(None) };
        let lease = self.indexing.wait_for_lease(call)?;
        Ok(self.indexing.index.set_vectors(&lease, name, &vectors)?)
    }

    /// Encodes some passages, those of similar length together.
    fn window(&self, view: &View, passages: &[ShallowPassage], call: &CallContext) -> Result<Vectors> {
        let texts = self.indexing.texts_to_read(view, passages, call)?;
        let mut order: Vec<usize> = (0..passages.len()).collect();
        order.sort_by_key(|at| (passages[*at].tokens, *at));
        let batches: Vec<&[usize]> = order.chunks(BATCH).collect();
        let (next, made) = (AtomicUsize::new(0), Mutex::new(Vectors::new()));
        let begun = Instant::now();
        let work = || -> Result<()> {
            while (self.pace.go_on)() {
                call.check()?;
                let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                let read: Vec<&str> = batch.iter().map(|at| texts[*at].as_str()).collect();
                let vectors = self.model.embed(&read, call)?;
                let mut made = made.lock();
                for (at, vector) in batch.iter().zip(vectors) {
                    let vector = <[f32; DIMENSIONS]>::try_from(vector).unwrap_or([0.0; DIMENSIONS]);
                    made.insert(passages[*at].row, vector);
                }
                call.report(self.made + made.len() as u64, Some(self.of), "deepening");
            }
            Ok(())
        };
        let threads = self.pace.threads.clamp(1, 16);
        thread::scope(|scope| {
            let workers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let own = work();
            let others = workers
                .into_iter()
                .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            others.fold(own, Result::and)
        })?;
        let made = made.into_inner();
        if made.len() >= BATCH {
            let each = begun.elapsed() * threads as u32 / made.len() as u32;
            *self.indexing.passage_time.lock() = Some(each);
        }
        Ok(made)
    }
}

impl Indexing {
    /// What the deep model reads of each passage: its lead and its text.
    fn texts_to_read(
        &self,
        view: &View,
        passages: &[ShallowPassage],
        call: &CallContext,
    ) -> Result<Vec<String>> {
        let mut texts = Vec::with_capacity(passages.len());
        for same in passages.chunk_by(|one, other| one.text.place == other.text.place) {
            call.check()?;
            let (Some(first), Some(last)) = (same.first(), same.last()) else { continue };
            let end = same.iter().map(|passage| passage.text.bytes.1).max().unwrap_or(last.text.bytes.1);
            let (start, text) = self.text_between(view, &first.text, end, call)?;
            texts.extend(same.iter().map(|passage| {
                let (from, to) = passage.text.bytes;
                let own = text.get((from - start) as usize..(to - start) as usize).unwrap_or_default();
                if passage.lead.is_empty() { own.to_owned() } else { format!("{}\n{own}", passage.lead) }
            }));
        }
        Ok(texts)
    }

    /// The text of a document from the beginning of a passage to `end`, and where what is returned begins.
    fn text_between(
        &self,
        view: &View,
        first: &Missing,
        end: u32,
        call: &CallContext,
    ) -> Result<(u32, String)> {
        if let Some(key) = view.text_key_at(first.place) {
            return Ok((0, self.converted(first, &key, call)?.to_string()));
        }
        let range = u64::from(first.bytes.0)..u64::from(end);
        match self.blobs.read_range(call, &first.hash, range) {
            Ok(bytes) => Ok((first.bytes.0, String::from_utf8_lossy(&bytes).into_owned())),
            // Damaged content is for `check` to report; an empty text has a vector that is near nothing.
            Err(error) if is_damage(&error) => Ok((first.bytes.0, String::new())),
            Err(error) => Err(error),
        }
    }
}

impl Library {
    /// Gives passages of the caller's documents, or of one collection, the vectors of the deep model; returns how many
    /// got one. `most` bounds them.
    pub fn deepen(
        &self,
        caller: &Caller,
        collection: Option<&str>,
        most: Option<u64>,
        call: &CallContext,
    ) -> Result<u64> {
        caller.must_write()?;
        if let Some(name) = collection {
            self.known_collection(caller, name)?;
        }
        self.indexing.view(call)?;
        self.indexing.write_tail(call)?;
        let filter = shelf_catalog::Filter { collection: collection.map(Into::into), ..Default::default() };
        let filter = self.index_filter(caller, &*self.indexing.index.view()?, &filter, &[])?;
        let pace = Pace {
            go_on: &|| true,
            most: most.unwrap_or(u64::MAX),
            threads: thread::available_parallelism().map_or(1, usize::from),
        };
        let made = self.indexing.deepen(&filter, pace, call);
        self.indexing.questions.release_memory();
        made
    }

    /// Deepens everything at the lowest priority, as long as `go_on` says so; whether nothing is left to do. It is meant
    /// for a thread of its own, whose priority it lowers.
    pub fn deepen_quietly(&self, go_on: &(dyn Fn() -> bool + Sync), call: &CallContext) -> Result<bool> {
        if self.indexing.deep.is_none() {
            return Ok(true);
        }
        // Where the system does not allow it, the work goes on with the usual priority. Elsewhere than on Linux this would
        // be the priority of the whole process.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::setpriority_process(None, LOWEST);
        let sequence = self.catalog.sequence()?;
        if self.indexing.deepened.load(Ordering::Relaxed) == sequence {
            return Ok(true);
        }
        if !self.indexing.leads() {
            return Ok(false);
        }
        self.indexing.view(call)?;
        self.indexing.write_tail(call)?;
        let filter = Filter::default();
        match self.indexing.deepen(&filter, Pace { go_on, most: u64::MAX, threads: 1 }, call) {
            Ok(_) => {}
            Err(Error::Busy(_)) => return Ok(false),
            Err(error) => return Err(error),
        }
        let is_done = go_on();
        if is_done {
            self.indexing.deepened.store(sequence, Ordering::Relaxed);
        }
        Ok(is_done)
    }

    /// When the library is to be deepened.
    pub const fn deepen_when(&self) -> Deepen {
        self.options.deepen
    }

    /// How far the caller's documents have been deepened; `None` when the deep model is off.
    pub fn deepen_figures(&self, caller: &Caller) -> Result<Option<DeepenFigures>> {
        if self.indexing.deep.is_none() {
            return Ok(None);
        }
        let view = self.indexing.index.view()?;
        let filter = self.index_filter(caller, &view, &shelf_catalog::Filter::default(), &[])?;
        Ok(Some(self.indexing.deepen_figures(view.depth(&filter))))
    }
}

/// The lowest priority of a thread.
#[cfg(target_os = "linux")]
const LOWEST: i32 = 19;
