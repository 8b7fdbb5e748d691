//! Garbage collection: what retention rules let go, and the blocks that nothing needs any more. Plan, then do.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use shelf_base::{CallContext, Digest, ErrorInfo, Fence, Kind, Moment};
use shelf_blocks::{BlockId, Manifest, Store, gc};
use shelf_catalog::{Actor, PackState, Purge, Snapshot, chunks};

use super::recovery::short_blocks;
use crate::{Error, Library, Result};

/// How long garbage collection waits for another process that writes a recovery copy.
const COPY_WAIT: Duration = Duration::from_secs(60);
/// How long a pack stays on a store that several machines use after nothing needs it: other machines may be reading it.
const GRACE: Duration = Duration::from_secs(15 * 60);
/// Loose blocks that are looked at in one go.
const LOOSE_AT_ONCE: usize = 1_000;

/// Which snapshots are kept. Without any rule all are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// The newest so many of each collection.
    pub keep_last: Option<u64>,
    /// Those younger than so many days.
    pub keep_within_days: Option<u64>,
    /// The newest of each of the last so many days that have one.
    pub keep_daily: Option<u64>,
    /// Those with a label.
    pub keep_labelled: bool,
}

impl Retention {
    /// Whether any snapshot may go.
    pub const fn is_explicit(&self) -> bool {
        self.keep_last.is_some() || self.keep_within_days.is_some() || self.keep_daily.is_some()
    }

    /// The snapshots that no rule keeps.
    fn lets_go(&self, snapshots: &[Snapshot], now: Moment) -> Vec<Snapshot> {
        if !self.is_explicit() {
            return Vec::new();
        }
        let mut by_collection: HashMap<_, Vec<&Snapshot>> = HashMap::new();
        for snapshot in snapshots {
            by_collection.entry(snapshot.collection).or_default().push(snapshot);
        }
        let mut gone: Vec<Snapshot> =
            by_collection.into_values().flat_map(|of_one| self.lets_go_of(of_one, now)).collect();
        gone.sort_by_key(|snapshot| snapshot.at);
        gone
    }

    fn lets_go_of(&self, mut snapshots: Vec<&Snapshot>, now: Moment) -> Vec<Snapshot> {
        snapshots.sort_by_key(|snapshot| std::cmp::Reverse(snapshot.at));
        let limit =
            self.keep_within_days.map(|days| now.days_before(i64::try_from(days).unwrap_or(i64::MAX)));
        let mut days = HashSet::new();
        let keeps = |at: usize, snapshot: &Snapshot, days: &mut HashSet<String>| {
            let first_of_day =
                (days.len() as u64) < self.keep_daily.unwrap_or(0) && days.insert(snapshot.at.day());
            first_of_day
                || (at as u64) < self.keep_last.unwrap_or(0)
                || limit.is_some_and(|limit| snapshot.at >= limit)
                || (self.keep_labelled && snapshot.draft.label.is_some())
        };
        let gone =
            snapshots.into_iter().enumerate().filter(|(at, snapshot)| !keeps(*at, snapshot, &mut days));
        gone.map(|(_, snapshot)| snapshot.clone()).collect()
    }
}

/// What garbage collection will do.
#[derive(Clone, Debug, Default)]
pub struct GcPlan {
    /// Snapshots that go.
    pub snapshots: Vec<Snapshot>,
    /// Snapshots that stay.
    pub kept_snapshots: u64,
    /// Blobs that nothing needs.
    pub blobs: u64,
    /// Their bytes.
    pub blob_bytes: u64,
    /// What happens to the packs.
    pub packs: gc::Plan,
    /// Packs that are marked afterwards: on a store that several machines use they are deleted by a garbage collection that
    /// comes a quarter of an hour later.
    pub marked: u64,
    /// Their stored bytes.
    pub marked_bytes: u64,
    keep: HashSet<Digest>,
    live: HashSet<BlockId>,
    /// Listings of kept snapshots whose files are in `keep` already.
    read: HashSet<Digest>,
}

impl GcPlan {
    /// Says of the packs of a store that several machines use which are deleted now, and which are only marked.
    fn tell_apart(&mut self, store: &Store, gone: Vec<String>, marked: &[String]) {
        self.packs.freed_bytes = gc::stored_bytes(store, &gone);
        self.marked = marked.len() as u64;
        self.marked_bytes = gc::stored_bytes(store, marked);
        // What is copied before it is marked was rewritten, whether it is deleted now or later.
        self.packs.delete = gone;
    }
}

impl Library {
    /// Says what a garbage collection would do now. Others may go on writing.
    pub fn plan_gc(&self, retention: &Retention, call: &CallContext) -> Result<GcPlan> {
        let mut plan = self.first_plan(retention, call)?;
        if self.catalog.is_shared() {
            let until = self.marked_long_enough();
            let marked = self.catalog.retired_packs()?.into_iter();
            let due: HashSet<String> = marked
                .filter(|pack| pack.state == PackState::Going || pack.at <= until)
                .map(|pack| pack.name)
                .collect();
            let doomed: Vec<String> = plan.packs.rewrite.iter().chain(&plan.packs.delete).cloned().collect();
            let (gone, marked): (Vec<_>, Vec<_>) = doomed.into_iter().partition(|name| due.contains(name));
            plan.tell_apart(&self.blocks, gone, &marked);
        }
        Ok(plan)
    }

    fn first_plan(&self, retention: &Retention, call: &CallContext) -> Result<GcPlan> {
        // What was marked before is deleted first of all.
        let retired = self.catalog.retired_packs()?.into_iter();
        let retired = retired.filter(|pack| pack.state != PackState::Gone).map(|pack| pack.name).collect();
        let before = GcPlan { packs: gc::Plan::with_retired(retired), ..GcPlan::default() };
        self.plan_after(before, retention, call)
    }

    /// Plans once more. What the snapshots that stay need was found out before and still holds: a snapshot does not
    /// change, and nobody else drops one.
    fn plan_after(&self, before: GcPlan, retention: &Retention, call: &CallContext) -> Result<GcPlan> {
        let snapshots = self.catalog.all_snapshots()?;
        let gone = retention.lets_go(&snapshots, self.now());
        let gone_ids: HashSet<Moment> = gone.iter().map(|snapshot| snapshot.at).collect();
        let kept: Vec<&Snapshot> =
            snapshots.iter().filter(|snapshot| !gone_ids.contains(&snapshot.at)).collect();
        let mut plan = GcPlan {
            kept_snapshots: kept.len() as u64,
            snapshots: gone,
            keep: before.keep,
            read: before.read,
            ..GcPlan::default()
        };
        self.add_needed(&kept, &mut plan, call)?;
        chunks(
            |position| Ok(self.catalog.blobs_from(position)?),
            |blobs| {
                call.check()?;
                for (hash, row) in blobs {
                    if !plan.keep.contains(&hash) {
                        plan.blobs += 1;
                        plan.blob_bytes += row.size;
                        continue;
                    }
                    // Deleting on the word of a catalog that cannot be read would turn one fault into many.
                    let manifest = Manifest::decode(&row.manifest)?;
                    plan.live.extend(manifest.blocks().map(|block| block.id));
                }
                Ok::<_, Error>(())
            },
        )?;
        plan.packs = before.packs.again(&self.blocks, &plan.live)?;
        Ok(plan)
    }

    /// Frees what nothing needs. Looking and copying need no lock; then it waits up to `patience` for writers to finish,
    /// keeps new ones out, plans once more, and deletes.
    pub fn gc(&self, retention: &Retention, patience: Duration, call: &CallContext) -> Result<GcPlan> {
        self.must_be_trusted()?;
        let _one_at_a_time = self.locks.alone("gc", patience, call)?;
        if self.catalog.is_shared() {
            // What an earlier one was deleting when it was killed.
            self.delete_claimed(&self.catalog.claim_packs(Moment::from_micros(i64::MIN))?)?;
            self.locks.heed()?;
        }
        // A full disk must not keep this from freeing it.
        self.clear_downloads();
        self.clear_uploads();
        self.clear_archives();
        self.clear_exports();
        let _room = self.reserve.give_up_when_needed();
        call.report(0, None, "planning");
        let first = self.first_plan(retention, call)?;
        call.check()?;
        call.report(1, None, "copying what is still needed");
        let copied = first.packs.copy(&self.blocks, &first.live, &mut || call.check().is_ok());
        call.check()?;
        // Without room for copies, packs that hold nothing needed can still go.
        let is_cramped = match copied {
            Err(error) if error.kind() == Kind::StorageFull => true,
            other => other.map(|_| false)?,
        };
        let (gate, alone) = self.locks.exclusive(patience, call)?;
        let mut plan = self.plan_after(first, retention, call)?;
        if is_cramped {
            plan.packs.rewrite.clear();
        }
        call.check()?;
        call.report(2, None, "deleting");
        let is_copied = self.forget_unneeded(&plan, alone.fence(), call)?;
        if !alone.is_current() {
            return Err(Error::Busy(
                "the lock was lost before packs were deleted; they go with the next garbage collection"
                    .into(),
            ));
        }
        if self.catalog.is_shared() {
            let doomed = plan.packs.copy_rest(&self.blocks, &plan.live)?;
            self.catalog.retire_packs(&doomed, self.now(), alone.fence())?;
            // The rest keeps nobody from writing.
            drop((gate, alone));
            let gone = self.catalog.claim_packs(self.marked_long_enough())?;
            let marked: Vec<String> = doomed.into_iter().filter(|name| !gone.contains(name)).collect();
            plan.tell_apart(&self.blocks, gone, &marked);
            self.delete_claimed(&plan.packs.delete)?;
        } else {
            plan.packs.run(&self.blocks, &plan.live)?;
        }
        // On a full disk the readings that nothing needs stay until there is room to write the others anew.
        if let Err(error) = self.blobs.readings.retain(|content| plan.keep.contains(content)) {
            tracing::warn!(%error, "derived data was not cleaned up");
        }
        if !is_copied {
            // Now there may be room for it.
            self.copy_for_gc(call);
        }
        Ok(plan)
    }

    /// Deletes packs whose deletion has been decided on.
    fn delete_claimed(&self, names: &[String]) -> Result<()> {
        gc::delete_all(&self.blocks, names)?;
        Ok(self.catalog.packs_gone(names)?)
    }

    /// Packs that were marked up to this moment may be deleted.
    fn marked_long_enough(&self) -> Moment {
        Moment::from_micros(self.now().micros() - GRACE.as_micros() as i64)
    }

    /// The catalog's part: from here on nothing refers to what is about to be deleted. Whether the copy from which a lost
    /// catalog would be rebuilt does not either: on a full disk it can be written only afterwards.
    fn forget_unneeded(&self, plan: &GcPlan, fence: Option<&Fence>, call: &CallContext) -> Result<bool> {
        let purge = Purge {
            snapshots: plan.snapshots.iter().map(|snapshot| snapshot.at).collect(),
            keep: plan.keep.clone(),
            blocks_of: Some(short_blocks),
            // Nobody knows how far the indexes of other machines have come.
            followed: if self.catalog.is_shared() { 0 } else { self.followed() },
            fence: fence.cloned(),
        };
        self.catalog.purge(&Actor::local(), &purge, self.now())?;
        self.drop_dead_loose(&plan.live, fence)?;
        Ok(self.copy_for_gc(call))
    }

    /// Renews the recovery copy, after whoever is writing one already; whether it worked.
    fn copy_for_gc(&self, call: &CallContext) -> bool {
        let written =
            self.locks.alone("recovery", COPY_WAIT, call).and_then(|_alone| self.write_copy_alone());
        if let Err(error) = &written {
            tracing::warn!(%error, "the recovery copy of the catalog could not be renewed");
        }
        written.is_ok()
    }

    /// Adds content of live documents in every version, and content and listings of kept snapshots.
    fn add_needed(&self, kept: &[&Snapshot], plan: &mut GcPlan, call: &CallContext) -> Result<()> {
        let versions = self.catalog.version_hashes()?;
        plan.keep.extend(versions.into_iter().filter(|(_, live)| *live).map(|(hash, _)| hash));
        for snapshot in kept {
            call.check()?;
            plan.keep.insert(snapshot.draft.listing);
            // A document may have the very bytes of a listing, so listings that were read are counted apart.
            if plan.read.insert(snapshot.draft.listing) {
                let listing = self.listing(snapshot, call)?;
                plan.keep.extend(listing.files().map(|entry| entry.hash));
            }
        }
        Ok(())
    }

    fn drop_dead_loose(&self, live: &HashSet<BlockId>, fence: Option<&Fence>) -> Result<()> {
        let mut after = None;
        loop {
            let loose = self.catalog.loose_after(after, LOOSE_AT_ONCE)?;
            let Some(last) = loose.last() else { return Ok(()) };
            after = Some(last.id);
            let dead: Vec<[u8; 32]> =
                loose.iter().map(|block| block.id).filter(|id| !live.contains(&BlockId::new(*id))).collect();
            self.catalog.drop_loose(&dead, fence)?;
        }
    }
}
