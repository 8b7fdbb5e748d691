//! Machines that share a catalog and a bucket share their index: one writes segments, the others fetch them.
//!
//! The machine that holds the lease `index-lead` publishes what it has on disk: pieces of segments, each an object named by
//! its hash, and a **view**, a small object that says which pieces make up the index and how far it has followed the journal.
//! Views are numbered, and a number can be taken only once. A machine that has much to catch up with takes the newest view
//! over and indexes only what was written since, for itself and in memory. Whatever is missing, damaged or out of reach costs
//! time: the machine then indexes from the journal as if there were no others.
//!
//! What a new view no longer needs is noted in it with the time, and is deleted when a later view finds it unneeded for
//! longer than anybody could take to fetch it. `crates/index/FORMAT.md` gives the bytes.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    io,
    sync::{Arc, Weak},
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use shelf_base::{CallContext, Clock, Coordination, Held, LockMode, SystemClock};
use shelf_blocks::objects::{ByteRange, Objects, pages};
use shelf_index::{Lease, SharedIndex};

use super::Indexing;
use crate::{Error, Library, Result};

/// The lock that one machine holds for as long as it writes segments for all.
const LEAD: &str = "index-lead";
/// How long an object stays that no view needs any more: longer than fetching or publishing may take.
const GRACE: Duration = Duration::from_secs(60 * 60);
/// A view that nobody has renewed for so long is that of a version of the program that nobody runs any more.
const FORGOTTEN: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Bytes of a view at most.
const MOST_VIEW_BYTES: u64 = 256 << 20;
/// How often a machine looks whether others have written much.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Journal records that others may have written before they are indexed although nobody asks.
const FOLLOW_RECORDS: u64 = 512;

/// What is published: the content of a view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Published {
    /// The number of the view.
    generation: u64,
    /// The fencing number of the lease under which it was made.
    fence: u64,
    /// When, in microseconds since 1970.
    at: i64,
    index: SharedIndex,
    /// Objects that no view needs any more, each with the time since when.
    retired: BTreeMap<String, i64>,
}

/// Where segments are shared.
pub(super) struct Sharing {
    objects: Arc<dyn Objects>,
    coordination: Arc<dyn Coordination>,
    /// What the views of this version of the program are called.
    variant: String,
    /// The lease, while this process has it.
    lead: Mutex<Option<Held>>,
    /// The newest view that was seen.
    latest: Mutex<Option<Arc<Published>>>,
}

impl Sharing {
    fn new(objects: Arc<dyn Objects>, coordination: Arc<dyn Coordination>, variant: String) -> Self {
        Self { objects, coordination, variant, lead: Mutex::default(), latest: Mutex::default() }
    }

    /// The fencing number of the lease if this process has it, or gets it now.
    fn lead(&self) -> Option<u64> {
        let mut lead = self.lead.lock();
        if lead.as_ref().is_none_or(|held| !held.is_current()) {
            // What was lost must be given up before it is taken again.
            *lead = None;
            *lead = self.coordination.attempt(LEAD, LockMode::Exclusive).ok().flatten();
        }
        let number = lead.as_ref().map(|held| held.fence().map_or(0, |fence| fence.number));
        metrics::gauge!("shelf_lease_held", "lease" => LEAD).set(if number.is_some() { 1.0 } else { 0.0 });
        number
    }

    fn view_name(&self, generation: u64) -> String {
        format!("view-{}-{generation:020}", self.variant)
    }

    /// The number of the newest view, and the view itself if it is whole.
    fn latest(&self) -> io::Result<(u64, Option<Arc<Published>>)> {
        let known = self.latest.lock().clone();
        let prefix = format!("view-{}-", self.variant);
        let mut after =
            known.as_ref().map_or_else(|| prefix.clone(), |known| self.view_name(known.generation));
        let mut newest = known.as_ref().map_or(0, |known| known.generation);
        loop {
            let page = self.objects.list(&after)?;
            let own = page.iter().map_while(|found| found.name.strip_prefix(&prefix)?.parse::<u64>().ok());
            let own: Vec<u64> = own.collect();
            newest = own.iter().copied().fold(newest, u64::max);
            match page.last() {
                Some(last) if own.len() == page.len() => after.clone_from(&last.name),
                _ => break,
            }
        }
        if newest == 0 || known.as_ref().is_some_and(|known| known.generation == newest) {
            return Ok((newest, known));
        }
        let view =
            self.read_view(&self.view_name(newest))?.filter(|view| view.generation == newest).map(Arc::new);
        *self.latest.lock() = view.clone();
        Ok((newest, view))
    }

    /// A view; `None` when it is damaged or gone.
    fn read_view(&self, name: &str) -> io::Result<Option<Published>> {
        let gone =
            |error: io::Error| if error.kind() == io::ErrorKind::NotFound { Ok(None) } else { Err(error) };
        let length = match self.objects.length(name) {
            Ok(length) if length <= MOST_VIEW_BYTES => length as usize,
            Ok(_) => return Ok(None),
            Err(error) => return gone(error),
        };
        let bytes = match self.objects.read(name, &[ByteRange { offset: 0, length }]) {
            Ok(mut found) => found.pop().unwrap_or_default(),
            Err(error) => return gone(error),
        };
        let view = decode(&bytes);
        if view.is_none() {
            tracing::warn!(name, "a published view of the index is damaged and is not used");
        }
        Ok(view)
    }

    /// Pieces and views of other versions of the program that are still in use.
    fn needed_by_others(&self, names: &BTreeSet<String>, now: i64) -> io::Result<HashSet<String>> {
        let own = format!("view-{}-", self.variant);
        let views = names.iter().filter(|name| name.starts_with("view-") && !name.starts_with(&own));
        // The last one in the order of names is the newest of its variant.
        let newest: BTreeMap<&str, &String> =
            views.filter_map(|name| Some((name.rsplit_once('-')?.0, name))).collect();
        let mut needed = HashSet::new();
        for name in newest.into_values() {
            let Some(view) = self.read_view(name)? else { continue };
            if now - view.at < micros(FORGOTTEN) {
                needed.extend(view.index.pieces().map(piece_name));
                needed.insert(name.clone());
            }
        }
        Ok(needed)
    }
}

fn piece_name(hash: &str) -> String {
    format!("piece-{hash}")
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

fn encode(view: &Published) -> io::Result<Vec<u8>> {
    let body = serde_json::to_string(view).map_err(io::Error::other)?;
    Ok(format!("{}\n{body}", blake3::hash(body.as_bytes()).to_hex()).into_bytes())
}

fn decode(bytes: &[u8]) -> Option<Published> {
    let (hash, body) = std::str::from_utf8(bytes).ok()?.split_once('\n')?;
    let is_whole = blake3::hash(body.as_bytes()).to_hex().as_str() == hash;
    serde_json::from_str(body).ok().filter(|_| is_whole)
}

impl Indexing {
    /// Shares segments through `objects` from now on, and follows what other machines write.
    pub(crate) fn share(self: &Arc<Self>, objects: Arc<dyn Objects>) {
        let sharing = Sharing::new(objects, self.coordination.clone(), self.index.variant());
        if self.sharing.set(sharing).is_ok() {
            let weak = Arc::downgrade(self);
            let _ = thread::Builder::new().name("index-follow".into()).spawn(move || follow(&weak));
        }
    }

    /// Begins the counters of what is shared at zero, if anything is.
    pub(crate) fn begin_counters(&self) {
        if self.sharing.get().is_some() {
            metrics::counter!("shelf_index_fetched_bytes_total").increment(0);
            metrics::counter!("shelf_index_published_bytes_total").increment(0);
            metrics::counter!("shelf_index_fetch_failures_total").increment(0);
        }
    }

    /// Whether this process writes segments: for all machines, if several share them.
    pub(super) fn leads(&self) -> bool {
        self.sharing.get().is_none_or(|sharing| sharing.lead().is_some())
    }

    /// Starts the background thread when others have written much.
    fn follow_others(self: &Arc<Self>) -> Result<()> {
        let behind = self.blobs.catalog.sequence()?.saturating_sub(self.index.written()?.sequence);
        metrics::gauge!("shelf_index_unwritten_records").set(behind as f64);
        if behind >= FOLLOW_RECORDS {
            self.start_background();
        }
        Ok(())
    }

    /// Takes over what another machine has published, if that is ahead of what is here; whether it was.
    pub(super) fn adopt_published(&self, lease: &Lease, call: &CallContext) -> Result<bool> {
        let Some(sharing) = self.sharing.get() else { return Ok(false) };
        // A view that was replaced while its pieces were fetched may lack some of them.
        for is_last in [false, true] {
            match self.adopt_from(sharing, lease, call) {
                Ok(adopted) => return Ok(adopted),
                Err(error) => {
                    call.check()?;
                    tracing::warn!(%error, "published index segments cannot be used; the journal is indexed instead");
                    metrics::counter!("shelf_index_fetch_failures_total").increment(1);
                    let known = sharing.latest.lock().take();
                    let is_same = sharing.latest().ok().is_none_or(|(newest, _)| {
                        known.as_ref().is_none_or(|known| known.generation == newest)
                    });
                    if is_last || is_same {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(false)
    }

    fn adopt_from(&self, sharing: &Sharing, lease: &Lease, call: &CallContext) -> Result<bool> {
        let (_, Some(view)) = sharing.latest().map_err(unreachable)? else { return Ok(false) };
        if view.index.sequence <= self.index.written()?.sequence {
            return Ok(false);
        }
        // A database that was restored from a backup has another journal.
        if self.followed_to(view.index.sequence)? != view.index.followed() {
            tracing::warn!(view.generation, "a published index has followed another journal and is not used");
            return Ok(false);
        }
        let (begun, mut fetched) = (Instant::now(), 0_u64);
        let adopted = self.index.adopt(lease, &view.index, &mut |piece, length| {
            call.check().map_err(io::Error::other)?;
            let whole = [ByteRange { offset: 0, length }];
            let bytes = sharing.objects.read(&piece_name(piece), &whole)?.pop().unwrap_or_default();
            fetched += bytes.len() as u64;
            metrics::counter!("shelf_index_fetched_bytes_total").increment(bytes.len() as u64);
            Ok(bytes)
        })?;
        let (generation, milliseconds) = (view.generation, begun.elapsed().as_millis() as u64);
        tracing::info!(
            generation,
            fetched,
            milliseconds,
            "index segments of another machine were taken over"
        );
        Ok(adopted)
    }

    /// Publishes what is on disk, if this process has the lease and there is something new. A failure costs others time.
    pub(super) fn publish(&self, call: &CallContext) {
        let Some(sharing) = self.sharing.get() else { return };
        let Some(fence) = sharing.lead() else { return };
        if let Err(error) = self.publish_as(sharing, fence, call) {
            tracing::warn!(%error, "index segments could not be published");
            sharing.latest.lock().take();
        }
    }

    fn publish_as(&self, sharing: &Sharing, fence: u64, call: &CallContext) -> Result<()> {
        let begun = Instant::now();
        let (newest, latest) = sharing.latest().map_err(unreachable)?;
        let written = self.index.written()?;
        let is_behind = latest.as_ref().is_some_and(|latest| latest.index.sequence > written.sequence);
        if written.sequence == 0 || is_behind {
            return Ok(());
        }
        let names = names(&*sharing.objects).map_err(unreachable)?;
        let mut sent = 0_u64;
        let index = self.index.share(&|piece| names.contains(&piece_name(piece)), &mut |piece, bytes| {
            call.check().map_err(io::Error::other)?;
            sent += bytes.len() as u64;
            metrics::counter!("shelf_index_published_bytes_total").increment(bytes.len() as u64);
            sharing.objects.put(&piece_name(piece), &[bytes])
        })?;
        if latest.as_ref().is_some_and(|latest| latest.index == index) {
            return Ok(());
        }
        let now = SystemClock.now().micros();
        let needed: HashSet<String> = index.pieces().map(piece_name).collect();
        let others = sharing.needed_by_others(&names, now).map_err(unreachable)?;
        let before = latest.map(|latest| latest.retired.clone()).unwrap_or_default();
        let unneeded = names.into_iter().filter(|name| !needed.contains(name) && !others.contains(name));
        let retired: BTreeMap<String, i64> = unneeded
            .map(|name| (before.get(&name).copied().unwrap_or(now), name))
            .map(|(at, name)| (name, at))
            .collect();
        let (gone, retired): (BTreeMap<_, _>, BTreeMap<_, _>) =
            retired.into_iter().partition(|(_, since)| now - since > micros(GRACE));
        // What was sent long ago may have been counted as unneeded by the next holder of the lease.
        if begun.elapsed() > GRACE / 2 || sharing.lead() != Some(fence) {
            return Ok(());
        }
        let view = Published { generation: newest + 1, fence, at: now, index, retired };
        let bytes = encode(&view).map_err(unreachable)?;
        if !sharing.objects.put_new(&sharing.view_name(view.generation), &[&bytes]).map_err(unreachable)? {
            return Ok(());
        }
        metrics::gauge!("shelf_index_published_sequence").set(view.index.sequence as f64);
        tracing::info!(view.generation, view.index.sequence, sent, "index segments were published");
        *sharing.latest.lock() = Some(Arc::new(view));
        for name in gone.keys() {
            // What cannot be deleted now is found by the next view.
            let _ = sharing.objects.delete(name);
        }
        Ok(())
    }
}

/// Looks now and then whether others have written much, for as long as the library is open.
fn follow(indexing: &Weak<Indexing>) {
    loop {
        thread::sleep(LOOK_EVERY);
        let Some(indexing) = indexing.upgrade() else { return };
        // While the catalog is away there is nothing to follow.
        let _ = indexing.follow_others();
    }
}

/// The names of all objects.
fn names(objects: &dyn Objects) -> io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for page in pages(objects) {
        names.extend(page?.into_iter().map(|found| found.name));
    }
    Ok(names)
}

fn unreachable(source: io::Error) -> Error {
    shelf_blocks::Error::Storage { action: "share", object: "index segments".into(), source }.into()
}

impl Library {
    /// Shares index segments with other machines through `objects`, where they are kept beside the packs.
    pub fn share_index(&self, objects: Arc<dyn Objects>) {
        self.indexing.share(objects);
    }

    /// Brings the index up to now, writes it to disk, and publishes it if this process is the one to do so.
    pub fn publish_index(&self, call: &CallContext) -> Result<()> {
        self.index_now(call)?;
        self.indexing.write_tail(call)?;
        self.indexing.publish(call);
        Ok(())
    }
}
