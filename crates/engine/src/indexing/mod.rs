//! Keeping the search index in step with the journal.
//!
//! A reader names the sequence number it must see. A small gap is indexed into this process's own tail, without any
//! lock; a large one is written out as segments by whoever gets the lease, with as many threads as there are processors.
//! After larger writes a background thread does the same before anybody asks. An index that is damaged, or that has
//! followed another journal, is thrown away and built anew.

mod deepen;
mod lead;
mod meaning;
mod prepare;
mod remote;
mod sharing;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

pub use deepen::DeepenFigures;
pub use meaning::Deepen;
pub(crate) use meaning::KnownWords;
use meaning::Questions;
use parking_lot::Mutex;
use prepare::Preparing;
pub(crate) use prepare::{Measured, measure};
pub use remote::EndpointSettings;
pub(crate) use remote::Meant;
use remote::OtherModel;
use sharing::Sharing;
use shelf_base::{CallContext, Coordination, ErrorInfo, Kind};
use shelf_catalog::Changed;
use shelf_embed::{BUILT_IN, Deep};
use shelf_index::{Builder, Change, Filter, Followed, Index, Lease, Sizes, Staged, View};
use shelf_reading::facts::FACTS_VERSION;

use crate::{Error, Idle, Library, Result, blobs::Blobs, follow::Follower};

/// Journal records that a tail takes at once; a larger gap is written out.
const TAIL_RECORDS: u64 = 256;
/// The same in bytes.
const TAIL_BYTES: u64 = 8 << 20;
/// Bytes that a tail takes at once while the disk is full and nothing else can be done with them.
const FULL_DISK_BYTES: u64 = 64 << 20;
/// Journal records that one commit of a bulk covers.
const BULK_RECORDS: u64 = 65_536;
/// Documents of a segment that is being built, before its size is looked at.
const LOOK_EVERY: usize = 64;
/// Single writes after which the background thread is woken.
const WAKE_EVERY: u64 = 128;
/// Segments up to which a machine leaves those alone that it has fetched from another one.
const MOST_FETCHED: usize = 48;
/// How often a waiting caller looks whether it may go on.
const PATIENCE: Duration = Duration::from_millis(10);

/// What the search index holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexFigures {
    /// Documents.
    pub documents: u64,
    /// Their passages.
    pub passages: u64,
    /// Segments, those in memory included.
    pub segments: u64,
    /// The last journal record that it covers.
    pub sequence: u64,
    /// Bytes by part.
    pub sizes: Sizes,
    /// How far the passages have vectors of the deep model; `None` when it is off.
    pub deepening: Option<DeepenFigures>,
}

/// The index of an open library and what follows the journal for it.
pub(crate) struct Indexing {
    index: Index,
    blobs: Blobs,
    /// The model that is configured beside the built-in one.
    other: Option<OtherModel>,
    pub(crate) questions: Questions,
    deep: Option<Arc<Deep>>,
    /// The journal record up to which everything has deep vectors; 0 before the first time.
    deepened: AtomicU64,
    /// What encoding a passage took when it was last measured.
    passage_time: Mutex<Option<Duration>>,
    folder: PathBuf,
    coordination: Arc<dyn Coordination>,
    catching: Mutex<()>,
    /// What the index on disk was last found to have followed: this journal.
    verified: Mutex<Followed>,
    writes: AtomicU64,
    /// Of the catalog, when it was last followed.
    incarnation: AtomicU64,
    background: Mutex<Option<(JoinHandle<()>, CallContext)>>,
    /// Where segments are shared with other machines, if they are.
    sharing: OnceLock<Sharing>,
}

impl Indexing {
    pub(crate) fn new(
        folder: PathBuf,
        blobs: Blobs,
        model: Option<EndpointSettings>,
        deepen: Deepen,
        coordination: Arc<dyn Coordination>,
    ) -> Result<Self> {
        let deep = (deepen != Deepen::Off).then(|| Arc::new(Deep::new()));
        Ok(Self {
            questions: Questions::new(deep.clone()),
            deep,
            deepened: AtomicU64::new(0),
            passage_time: Mutex::default(),
            folder: folder.clone(),
            coordination: coordination.clone(),
            other: remote::open_other(&folder, model)?,
            index: Index::new(folder, BUILT_IN, coordination).with_reader(FACTS_VERSION),
            blobs,
            catching: Mutex::default(),
            verified: Mutex::default(),
            writes: AtomicU64::new(0),
            incarnation: AtomicU64::new(0),
            background: Mutex::default(),
            sharing: OnceLock::new(),
        })
    }

    /// A view that covers everything acknowledged before this call.
    pub(crate) fn view(self: &Arc<Self>, call: &CallContext) -> Result<Arc<View>> {
        let target = self.blobs.catalog.sequence()?;
        let incarnation = self.blobs.catalog.incarnation();
        if self.incarnation.swap(incarnation, Ordering::Relaxed) != incarnation {
            self.index.forget_memory();
            *self.verified.lock() = Followed::default();
        }
        let view = self.whole_view(call)?;
        metrics::gauge!("shelf_index_lag_records").set(target.saturating_sub(view.sequence()) as f64);
        if view.sequence() >= target {
            return Ok(view);
        }
        let is_far_behind = target - view.sequence() > TAIL_RECORDS;
        self.index_up_to(target, call)?;
        if self.index.tail_is_due() || (is_far_behind && self.sharing.get().is_some()) {
            self.start_background();
        }
        self.whole_view(call)
    }

    /// The present view; a damaged index is removed, so that it is built anew.
    fn whole_view(&self, call: &CallContext) -> Result<Arc<View>> {
        match self.own_view() {
            Err(Error::Index(error)) if error.kind() == Kind::Corrupt => {
                tracing::warn!(%error, "the search index is damaged and is built anew");
                self.rebuild_from_nothing(call)
            }
            outcome => outcome,
        }
    }

    /// The present view, if the index has followed this journal and no other.
    fn own_view(&self) -> Result<Arc<View>> {
        let view = self.index.view()?;
        self.must_be_ours(view.written())?;
        Ok(view)
    }

    fn must_be_ours(&self, written: &Followed) -> Result<()> {
        if written.sequence == 0 || *self.verified.lock() == *written {
            return Ok(());
        }
        if self.followed_to(written.sequence)? != *written {
            let what = "it has followed another journal".to_owned();
            return Err(Error::Index(shelf_index::Error::Damaged { file: "manifest".into(), what }));
        }
        self.verified.lock().clone_from(written);
        Ok(())
    }

    /// A journal record with its seal, which no other journal has.
    fn followed_to(&self, sequence: u64) -> Result<Followed> {
        let records = self.blobs.catalog.journal(sequence.saturating_sub(1), 1)?;
        let record = records.into_iter().find(|record| record.sequence == sequence);
        Ok(Followed { sequence, mark: record.map(|record| record.seal.to_string()).unwrap_or_default() })
    }

    fn rebuild_from_nothing(&self, call: &CallContext) -> Result<Arc<View>> {
        let lease = self.wait_for_lease(call)?;
        // Another process may have done it while this one waited.
        if let Ok(view) = self.own_view() {
            return Ok(view);
        }
        self.index.wipe(&lease)?;
        Ok(self.index.view()?)
    }

    /// How far the index on disk says it has followed the journal, when the journal does not reach that far.
    pub(crate) fn is_ahead(&self) -> Result<Option<u64>> {
        let end = self.blobs.catalog.sequence()?;
        Ok(self.index.noted_sequence().filter(|followed| *followed > end))
    }

    /// What the index holds at this moment, without bringing it up to date.
    pub(crate) fn figures(&self) -> Result<IndexFigures> {
        let view = self.index.view()?;
        Ok(IndexFigures {
            documents: view.documents(),
            passages: view.passages(),
            segments: view.segments() as u64,
            sequence: view.sequence(),
            sizes: view.sizes(),
            deepening: self.deep.as_ref().map(|_| self.deepen_figures(view.depth(&Filter::default()))),
        })
    }

    /// Indexes up to `target`.
    fn index_up_to(&self, target: u64, call: &CallContext) -> Result<()> {
        let _one_at_a_time = self.one_at_a_time(call)?;
        // Whoever waits behind this call wants to see what was written meanwhile: all of it at once is cheaper.
        let target = target.max(self.blobs.catalog.sequence()?);
        loop {
            call.check()?;
            let view = self.whole_view(call)?;
            let from = view.sequence();
            if from >= target {
                return Ok(());
            }
            if target - from <= TAIL_RECORDS && self.extend_tail(&view, target, TAIL_BYTES, call)? {
                continue;
            }
            match self.write_gap(target, call) {
                // Reading must go on when nothing can be written, as far as memory allows.
                Err(error) if error.kind() == Kind::StorageFull => {
                    if !self.extend_tail(&view, target.min(from + TAIL_RECORDS), FULL_DISK_BYTES, call)? {
                        return Err(error);
                    }
                }
                outcome => outcome?,
            }
        }
    }

    /// Writes a gap to disk, together with what is in memory.
    fn write_gap(&self, target: u64, call: &CallContext) -> Result<()> {
        let lease = self.wait_for_lease(call)?;
        if self.adopt_published(&lease, call)? {
            return Ok(());
        }
        self.index.flush(&lease)?;
        let written = self.index.written()?.sequence;
        if written < target {
            self.write_bulk(&lease, written, target, call)?;
        }
        Ok(())
    }

    /// Waits for another thread of this process without becoming deaf to cancellation.
    fn one_at_a_time(&self, call: &CallContext) -> Result<parking_lot::MutexGuard<'_, ()>> {
        loop {
            if let Some(guard) = self.catching.try_lock_for(PATIENCE) {
                return Ok(guard);
            }
            call.check()?;
        }
    }

    fn wait_for_lease(&self, call: &CallContext) -> Result<Lease> {
        loop {
            if let Some(lease) = self.index.try_lease()? {
                return Ok(lease);
            }
            call.check()?;
            call.report(0, None, "waiting for another process that is indexing");
            thread::sleep(PATIENCE);
        }
    }

    /// Indexes a small gap in memory; `false` when it has more than `most` bytes.
    fn extend_tail(&self, view: &View, target: u64, most: u64, call: &CallContext) -> Result<bool> {
        let changes = self.blobs.catalog.changes(view.sequence(), target)?;
        let fresh = fresh(view, &changes.documents);
        if fresh.iter().map(|document| document.size).sum::<u64>() > most {
            return Ok(false);
        }
        let mut built = Vec::new();
        let living: Vec<&&Changed> = fresh.iter().filter(|document| document.is_live).collect();
        if !living.is_empty() {
            let (mut builder, mut preparing) = (Builder::new()?, Preparing::default());
            for document in living {
                preparing.add(&self.blobs, document, &mut builder, &mut |_| Ok(()), call)?;
            }
            built.push(builder.finish()?);
        }
        let touched = touched(&fresh, changes.buried);
        let to = self.followed_to(target)?;
        self.index.append(Change { from: view.sequence(), to, built, touched })?;
        Ok(true)
    }

    /// Writes a large gap out as segments.
    fn write_bulk(&self, lease: &Lease, mut from: u64, target: u64, call: &CallContext) -> Result<()> {
        let first = from;
        while from < target {
            let to = target.min(from + BULK_RECORDS);
            let changes = self.blobs.catalog.changes(from, to)?;
            let view = self.index.view()?;
            let fresh = fresh(&view, &changes.documents);
            drop(view);
            let done = |documents: usize, of: usize| {
                let share = if of == 0 { 0 } else { (to - from) * documents as u64 / of as u64 };
                call.report(from - first + share, Some(target - first), "indexing");
            };
            let staged = self.build(lease, &fresh, call, &done)?;
            let touched = touched(&fresh, changes.buried);
            self.index.commit(lease, from, &self.followed_to(to)?, staged, &touched)?;
            from = to;
        }
        Ok(())
    }

    /// Builds segments with several threads, and writes each as soon as it is large enough.
    fn build(
        &self,
        lease: &Lease,
        documents: &[&Changed],
        call: &CallContext,
        done: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Vec<Staged>> {
        let living: Vec<&&Changed> = documents.iter().filter(|document| document.is_live).collect();
        let (next, staged) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = || -> Result<()> {
            let (mut builder, mut preparing) = (Builder::new()?, Preparing::default());
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(document) = living.get(at) else { break };
                if at.is_multiple_of(LOOK_EVERY) {
                    call.check()?;
                    done(at, living.len());
                }
                let mut write_when_full = |builder: &mut Builder| -> Result<()> {
                    if builder.is_full() {
                        let full = std::mem::replace(builder, Builder::new()?);
                        staged.lock().push(self.index.stage(lease, full.finish()?)?);
                    }
                    Ok(())
                };
                let read = preparing.add(&self.blobs, document, &mut builder, &mut write_when_full, call)?;
                if read > 1 << 20 || builder.documents().is_multiple_of(LOOK_EVERY) {
                    write_when_full(&mut builder)?;
                }
            }
            if builder.documents() > 0 {
                staged.lock().push(self.index.stage(lease, builder.finish()?)?);
            }
            Ok(())
        };
        let threads = thread::available_parallelism()
            .map_or(1, usize::from)
            .min(living.len().div_ceil(256))
            .clamp(1, 8);
        thread::scope(|scope| {
            let workers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let own = work();
            let others = workers
                .into_iter()
                .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            others.fold(own, Result::and)
        })?;
        Ok(staged.into_inner())
    }

    /// Writes what this process has indexed in memory to disk.
    fn write_tail(&self, call: &CallContext) -> Result<()> {
        let lease = self.wait_for_lease(call)?;
        Ok(self.index.flush(&lease)?)
    }

    /// Writes what is in memory to disk, unless another process is at it.
    fn keep(&self) -> Result<()> {
        if let Some(lease) = self.index.try_lease()? {
            self.index.flush(&lease)?;
            self.index.merge(&lease)?;
        }
        Ok(())
    }

    /// Starts the background thread unless it runs.
    fn start_background(self: &Arc<Self>) {
        let mut background = self.background.lock();
        if background.as_ref().is_some_and(|(thread, _)| !thread.is_finished()) {
            return;
        }
        let (weak, call) = (Arc::downgrade(self), CallContext::new());
        let own_call = call.clone();
        let work = move || {
            // A failure here is met again, and reported, by the next search.
            if let Some(indexing) = weak.upgrade() {
                let _ = catch_unwind(AssertUnwindSafe(|| indexing.tidy(&own_call)));
            }
        };
        let started = thread::Builder::new().name("index".into()).spawn(work);
        *background = started.ok().map(|thread| (thread, call));
    }

    /// Catches up, writes the tail out when it is large, and merges small segments; leaves it to others who are at it.
    fn tidy(&self, call: &CallContext) -> Result<()> {
        let target = self.blobs.catalog.sequence()?;
        self.index_up_to(target, call)?;
        let leads = self.leads();
        if let Some(lease) = self.index.try_lease()? {
            if self.index.tail_is_due() {
                self.adopt_published(&lease, call)?;
            }
            if if leads { self.index.tail_is_due() } else { self.index.tail_is_overdue() } {
                self.index.flush(&lease)?;
            }
            // Merged segments are no longer those that were fetched: the next view would bring all of them again.
            let may_merge = leads || self.index.view()?.segments() > MOST_FETCHED;
            while may_merge && call.check().is_ok() && self.index.merge(&lease)? {}
        }
        if leads {
            self.publish(call);
        }
        if self.other.is_some() {
            self.embed_missing(&*self.index.view()?, call)?;
        }
        Ok(())
    }
}

impl Follower for Arc<Indexing> {
    fn name(&self) -> &'static str {
        "search index"
    }

    fn position(&self) -> u64 {
        let written = self.index.written().unwrap_or_default();
        if self.must_be_ours(&written).is_ok() { written.sequence } else { 0 }
    }

    fn catch_up(&self, target: u64, call: &CallContext) -> Result<()> {
        self.index_up_to(target, call)
    }

    fn discard(&self, call: &CallContext) -> Result<()> {
        let lease = self.wait_for_lease(call)?;
        Ok(self.index.wipe(&lease)?)
    }

    fn damage(&self) -> Option<String> {
        let checked = self.index.check().map_err(Error::from).and_then(|()| self.own_view().map(drop));
        checked.err().map(|error| error.to_string())
    }

    /// Now and then the background thread takes what has gathered.
    fn wake(&self, documents: u64) {
        let before = self.writes.fetch_add(documents, Ordering::Relaxed);
        if before / WAKE_EVERY != (before + documents) / WAKE_EVERY || self.other.is_some() {
            self.start_background();
        }
    }

    fn release_memory(&self, idle: Idle) {
        self.index.release_pages();
        if idle == Idle::Long {
            self.index.forget_words();
            self.questions.release_memory();
        }
    }

    /// What the background thread had not written out is indexed again when it is needed.
    fn stop(&self) {
        let running = self.background.lock().take();
        if let Some((thread, call)) = running {
            call.cancel();
            let _ = thread.join();
        }
    }
}

/// What the view does not have yet.
fn fresh<'a>(view: &View, changed: &'a [Changed]) -> Vec<&'a Changed> {
    changed
        .iter()
        .filter(|document| {
            !document.is_live || document.is_renamed || !view.holds(document.number, &document.hash)
        })
        .collect()
}

/// The numbers of all documents of which older segments are wrong.
fn touched(fresh: &[&Changed], buried: Vec<i64>) -> Vec<i64> {
    fresh.iter().map(|document| document.number).chain(buried).collect()
}

impl Library {
    /// Brings everything that follows the journal up to now, with progress.
    pub fn index_now(&self, call: &CallContext) -> Result<()> {
        let target = self.catalog.sequence()?;
        self.followers().try_for_each(|follower| follower.catch_up(target, call))
    }

    /// Throws the search index away and builds it anew; how many documents it has then.
    pub fn reindex(&self, call: &CallContext) -> Result<u64> {
        self.indexing.discard(call)?;
        let documents = self.indexing.view(call)?.documents();
        self.indexing.write_tail(call)?;
        Ok(documents)
    }

    /// Writes to disk what this process has indexed in memory, so that the next one need not index it again: for a process
    /// that ends after one command. Who may only read the library has nothing to keep.
    pub fn keep_index(&self) {
        if let Err(error) = self.indexing.keep() {
            tracing::debug!(%error, "what was indexed in memory was not written to disk");
        }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        self.followers().for_each(Follower::stop);
        self.copy_when_due();
    }
}
