//! Moving the packs of a library to another place while it is in use.
//!
//! Packs never change, so they are copied while others read and write; what a copy that was interrupted has brought over
//! stays and is not copied again. Every block at the new place is read and compared with its hash. Then writers wait for a
//! moment: the packs that were written meanwhile follow, everything that the catalog refers to is looked up at the new
//! place, the journal's chain is verified, and the library notes where its packs are from now on: in its folder, and in a
//! catalog that several machines share. A process that has the library open at the old place, on whatever machine, may go on
//! reading there; it is told to restart when it writes.

use std::{collections::HashMap, path::Path, sync::Arc, time::Duration};

use shelf_base::{CallContext, Kind};
use shelf_blocks::{
    BlockId, Manifest, Problem, Store,
    objects::{ByteRange, Listed, Objects},
};
use shelf_catalog::{Record, chunks};

use super::backup::list_packs;
use crate::{Error, Library, ObjectsPlace, Options, Result, storage::StorageSettings};

/// How long moving waits for a garbage collection, and for writers at the end.
const PATIENCE: Duration = Duration::from_secs(120);
/// Loose blocks that are looked at in one go.
const LOOSE_AT_ONCE: usize = 10_000;
/// Journal records that are verified in one go.
const RECORDS_AT_ONCE: usize = 10_000;

/// What was moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// Where the packs were.
    pub from: ObjectsPlace,
    /// Where they are now.
    pub to: ObjectsPlace,
    /// Packs at the new place.
    pub packs: u64,
    /// Those of them that were copied now; the others were there from an earlier attempt.
    pub copied: u64,
    /// Bytes of those that were copied now.
    pub bytes: u64,
    /// Blocks that were compared with their hashes at the new place.
    pub blocks: u64,
    /// Journal records whose seals were verified.
    pub journal: u64,
}

impl Library {
    /// Moves the packs of the library in `folder` to another place. Old packs stay where they are, unless `remove_old`.
    pub fn migrate(
        folder: &Path,
        to: &ObjectsPlace,
        options: &Options,
        remove_old: bool,
        call: &CallContext,
    ) -> Result<Migrated> {
        // The library knows where its packs are; a setting may name the place where they are going to be.
        let storage = StorageSettings { objects: None, ..options.storage.clone() };
        let library = Self::open(folder, Options { storage: storage.clone(), ..options.clone() })?;
        let from = library.place.clone();
        if from == *to {
            return Err(refused(format!("the packs of this library are in {to} already"), Kind::Conflict));
        }
        let target = storage.open(folder, to)?;
        library.claim(target.source().unwrap_or(&*target), to)?;
        let _no_deletions = library.locks.alone("gc", PATIENCE, call)?;
        let mut moved =
            Migrated { from, to: to.clone(), packs: 0, copied: 0, bytes: 0, blocks: 0, journal: 0 };
        let known = library.bring_over(&*target, &HashMap::new(), &mut moved, call)?;
        verify(&target, |_| true, call)?;
        // The rest is short: what was written since, and a look at every reference.
        let (_gate, alone) = library.locks.exclusive(PATIENCE, call)?;
        library.bring_over(&*target, &known, &mut moved, call)?;
        let arrived = Store::new(target.clone());
        let usage = arrived.usage()?;
        (moved.packs, moved.blocks) = (usage.packs, usage.blocks);
        verify(&target, |name| !known.contains_key(name), call)?;
        library.must_have_arrived(&arrived, call)?;
        moved.journal = library.must_be_chained(call)?;
        library.moved_to(to, alone.fence())?;
        // From here on nobody writes to the old place, and whoever still reads there is told so in the end.
        if remove_old {
            library.empty_old_place()?
        } else {
            library.say_moved(to)?
        }
        Ok(moved)
    }

    /// Copies the packs that the target lacks; all packs that there are, with their sizes.
    fn bring_over(
        &self,
        target: &dyn Objects,
        before: &HashMap<String, u64>,
        moved: &mut Migrated,
        call: &CallContext,
    ) -> Result<HashMap<String, u64>> {
        // Copies on this machine are for what is read, not for all that passes by.
        let target = target.source().unwrap_or(target);
        let packs = list_packs(self.blocks.objects())?;
        let there: HashMap<String, u64> =
            list_packs(target)?.into_iter().map(|found| (found.name, found.size)).collect();
        let missing = |pack: &&Listed| there.get(&pack.name) != Some(&pack.size);
        let fresh: Vec<&Listed> =
            packs.iter().filter(|pack| !before.contains_key(&pack.name)).filter(missing).collect();
        for (done, pack) in fresh.iter().enumerate() {
            call.check()?;
            call.report(done as u64, Some(fresh.len() as u64), "copying packs");
            let failed = |action| {
                move |source| shelf_blocks::Error::Storage { action, object: pack.name.clone(), source }
            };
            let whole = [ByteRange { offset: 0, length: pack.size as usize }];
            let bytes = self.blocks.truth().read(&pack.name, &whole).map_err(failed("read"))?;
            target.put(&pack.name, &[&bytes[0]]).map_err(failed("write"))?;
            moved.copied += 1;
            moved.bytes += pack.size;
        }
        Ok(packs.into_iter().map(|pack| (pack.name, pack.size)).collect())
    }

    /// Every block that the catalog refers to is at the new place, or lies in the catalog.
    fn must_have_arrived(&self, arrived: &Store, call: &CallContext) -> Result<()> {
        let mut missing = 0_u64;
        let mut first = None;
        chunks(
            |position| Ok(self.catalog.blobs_from(position)?),
            |blobs| {
                call.check()?;
                for (hash, row) in blobs {
                    let manifest = Manifest::decode(&row.manifest)?;
                    let ids: Vec<BlockId> = manifest.blocks().map(|block| block.id).collect();
                    let places = arrived.places(ids.iter().copied())?;
                    let absent: Vec<[u8; 32]> = ids
                        .iter()
                        .zip(&places)
                        .filter(|(_, place)| place.is_none())
                        .map(|(id, _)| *id.as_bytes())
                        .collect();
                    let mut loose = 0;
                    for absent in absent.chunks(LOOSE_AT_ONCE) {
                        loose += self.catalog.loose(absent)?.len();
                    }
                    if loose < absent.len() {
                        missing += 1;
                        first.get_or_insert(hash);
                    }
                }
                Ok::<_, Error>(())
            },
        )?;
        let Some(first) = first else { return Ok(()) };
        Err(refused(
            format!(
                "{missing} contents are not whole at the new place, the first is {first}; nothing was switched"
            ),
            Kind::Corrupt,
        ))
    }

    /// Verifies the seals of the journal; the number of records.
    fn must_be_chained(&self, call: &CallContext) -> Result<u64> {
        let (mut before, mut last) = (Record::genesis(), 0);
        loop {
            call.check()?;
            let records = self.catalog.journal(last, RECORDS_AT_ONCE)?;
            if records.is_empty() {
                return Ok(last);
            }
            for record in records {
                if record.sequence != last + 1 || record.seal != record.expected_seal(&before) {
                    let what = format!("journal record {} does not follow the one before", record.sequence);
                    return Err(refused(format!("{what}; nothing was switched"), Kind::Corrupt));
                }
                (before, last) = (record.seal, record.sequence);
            }
        }
    }
}

/// Reads every block at the new place and compares it with its hash. What does not fit is removed there, so that the next
/// attempt copies it again.
fn verify(target: &Arc<dyn Objects>, is_wanted: impl Fn(&str) -> bool, call: &CallContext) -> Result<()> {
    let problems = Store::new(target.clone()).verify_some(is_wanted, |done, total| {
        call.report(done as u64, Some(total as u64), "verifying packs at the new place");
        call.check().is_ok()
    })?;
    call.check()?;
    let Some(Problem { object, what, .. }) = problems.first() else { return Ok(()) };
    for problem in &problems {
        let _ = target.delete(&problem.object);
    }
    Err(refused(format!("{object} is damaged at the new place: {what}; nothing was switched"), Kind::Corrupt))
}

fn refused(what: String, kind: Kind) -> Error {
    let hint = match kind {
        Kind::Corrupt => "run `shelf check` on the library, then repeat the command",
        _ => "`shelf config show` tells what is set, and `shelf doctor` where the packs are",
    };
    Error::Backup { what, kind, hint: hint.into() }
}
