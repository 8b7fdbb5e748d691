//! Collection: what retention rules let go, and the blocks that nothing needs any more. Plan, then do.

use std::collections::{HashMap, HashSet};

use shelf_base::{Call, Digest, Moment};
use shelf_blocks::{BlockId, Manifest, gc};
use shelf_catalog::{Actor, Purge, Snapshot};

use crate::{Error, House, Result};

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

/// What a collection will do.
#[derive(Clone, Debug, Default)]
pub struct CollectPlan {
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
    keep: HashSet<Digest>,
    live: HashSet<BlockId>,
}

impl House {
    /// Says what a collection would do now. Others may go on writing.
    pub fn plan_collection(&self, retention: &Retention, call: &Call) -> Result<CollectPlan> {
        let snapshots = self.catalog.all_snapshots()?;
        let gone = retention.lets_go(&snapshots, self.now());
        let gone_ids: HashSet<Moment> = gone.iter().map(|snapshot| snapshot.at).collect();
        let kept: Vec<&Snapshot> =
            snapshots.iter().filter(|snapshot| !gone_ids.contains(&snapshot.at)).collect();
        let mut plan =
            CollectPlan { kept_snapshots: kept.len() as u64, snapshots: gone, ..CollectPlan::default() };
        plan.keep = self.needed_hashes(&kept, call)?;
        let mut unreadable = None;
        self.catalog.blobs(&mut |hash, row| {
            if !plan.keep.contains(&hash) {
                plan.blobs += 1;
                plan.blob_bytes += row.size;
                return;
            }
            match Manifest::decode(&row.manifest) {
                Ok(manifest) => plan.live.extend(manifest.blocks.iter().map(|block| block.id)),
                Err(error) => unreadable = Some(error),
            }
        })?;
        // Deleting on the word of a catalog that cannot be read would turn one fault into many.
        if let Some(error) = unreadable {
            return Err(Error::Blocks(error));
        }
        plan.packs = gc::Plan::make(&self.blocks, &plan.live)?;
        Ok(plan)
    }

    /// Collects: waits for writers to finish, keeps new ones out, plans anew and carries the plan out.
    pub fn collect(&self, retention: &Retention, call: &Call) -> Result<CollectPlan> {
        // A full disk must not keep this from freeing it.
        self.clear_downloads();
        let _alone = self.locks.collect().map_err(Error::Lock)?;
        // The index learns of deleted documents by asking for them, which it can only while they are there.
        self.indexing.write_out(call)?;
        call.report(0, None, "planning");
        let plan = self.plan_collection(retention, call)?;
        call.check()?;
        let purge = Purge {
            snapshots: plan.snapshots.iter().map(|snapshot| snapshot.at).collect(),
            keep: plan.keep.clone(),
            blocks_of: Some(short_blocks),
        };
        self.catalog.purge(&Actor::local(), &purge, self.now())?;
        self.drop_dead_loose(&plan.live)?;
        call.report(1, None, "rewriting packs");
        plan.packs.run(&self.blocks, &plan.live)?;
        Ok(plan)
    }

    /// Content of live documents in every version, content and listings of kept snapshots.
    fn needed_hashes(&self, kept: &[&Snapshot], call: &Call) -> Result<HashSet<Digest>> {
        let versions = self.catalog.version_hashes()?;
        let mut needed: HashSet<Digest> =
            versions.into_iter().filter(|(_, live)| *live).map(|(hash, _)| hash).collect();
        // A document may have the very bytes of a listing, so listings that were read are counted apart.
        let mut read = HashSet::new();
        for snapshot in kept {
            call.check()?;
            needed.insert(snapshot.draft.listing);
            if read.insert(snapshot.draft.listing) {
                needed.extend(self.listing(snapshot, call)?.entries.iter().map(|entry| entry.hash));
            }
        }
        Ok(needed)
    }

    fn drop_dead_loose(&self, live: &HashSet<BlockId>) -> Result<()> {
        let loose = self.catalog.some_loose(usize::MAX >> 1)?;
        let dead: Vec<[u8; 32]> =
            loose.iter().map(|block| block.id).filter(|id| !live.contains(&BlockId::new(*id))).collect();
        Ok(self.catalog.drop_loose(&dead)?)
    }
}

fn short_blocks(manifest: &[u8]) -> Vec<i64> {
    Manifest::decode(manifest)
        .map_or_else(|_| Vec::new(), |manifest| manifest.blocks.iter().map(|b| b.id.short()).collect())
}
