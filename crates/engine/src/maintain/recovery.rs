//! The recovery copy of the catalog: when it is written, what it tells, and the way back from it.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use parking_lot::Mutex;
use shelf_base::{Clock, ErrorInfo, Kind, SystemClock};
use shelf_blocks::{Manifest, objects::Objects};
use shelf_catalog::{CopyNote, sqlite::SqliteCatalog};

use crate::{
    Error, Library, Result,
    catalog_place::is_elsewhere,
    locks::{FolderLocks, Locks},
};

/// A copy that is older than this is renewed when anything was written since.
const AGE: Duration = Duration::from_secs(10 * 60);
/// So many new records are copied at once, whatever the age, when they are also a good part of all.
const MANY: u64 = 1_000;
/// A catalog up to this size is copied whenever a server ends.
const SMALL_CATALOG: u64 = 64 << 20;
/// How often a server that is written to looks whether a copy is due.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Packs that a first add may have written before anything is committed: a round of a folder fills fewer.
const FIRST_PACKS: u64 = 8;
/// Ages of copies that are kept as the older one.
const SETTLED: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// When this process last looked whether a copy is due.
#[derive(Default)]
pub(crate) struct Copying {
    looked: Mutex<Option<Instant>>,
}

/// What a recovery did.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// The last journal record of the copy.
    pub sequence: u64,
    /// Live documents in the rebuilt catalog.
    pub documents: u64,
    /// Where the damaged catalog was put, if there was one.
    pub set_aside: Option<PathBuf>,
}

/// The file of a library's recovery copy.
pub(crate) fn copy_path(folder: &Path) -> PathBuf {
    folder.join("recovery").join("catalog.copy")
}

/// Refuses a library whose catalog is gone while other parts of it are there: opening it would make an empty catalog,
/// and everything that is stored would count as unneeded.
pub(crate) fn must_have_catalog(folder: &Path, objects: &dyn Objects) -> Result<()> {
    let state = match fs::metadata(folder.join("catalog.db")) {
        Ok(found) if found.len() > 0 => return Ok(()),
        Ok(_) => "empty",
        Err(_) => "missing",
    };
    // Where that cannot be found out, because a bucket does not answer, nothing is begun.
    if copy_path(folder).exists() || has_packs(objects)? {
        return Err(shelf_catalog::Error::Missing(state).into());
    }
    Ok(())
}

/// Whether anything is stored.
pub(crate) fn has_packs(objects: &dyn Objects) -> Result<bool> {
    for page in shelf_blocks::objects::pages(objects) {
        let failed = |source| shelf_blocks::Error::Storage { action: "list", object: "packs".into(), source };
        if page.map_err(failed)?.iter().any(|object| object.name.ends_with(".pack")) {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Library {
    /// Writes the copy when enough has changed since the last. Called now and then; most calls do nothing.
    pub fn copy_when_due(&self) {
        {
            let mut looked = self.copying.looked.lock();
            if looked.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
                return;
            }
            *looked = Some(Instant::now());
        }
        if self.is_copy_due(false).unwrap_or(false) {
            self.copy_or_warn();
        }
    }

    /// Writes the copy before the program ends, if anything is missing from it and it does not take long.
    pub fn copy_at_the_end(&self) {
        if self.is_copy_due(true).unwrap_or(false) {
            self.copy_or_warn();
        }
    }

    fn is_copy_due(&self, is_end: bool) -> Result<bool> {
        let path = copy_path(self.folder());
        let sequence = self.catalog.sequence()?;
        let Some(note) = CopyNote::read(&path)? else { return Ok(sequence > 0) };
        let fresh = sequence.saturating_sub(note.sequence);
        let modified = fs::metadata(&path).and_then(|facts| facts.modified());
        let age = modified.ok().and_then(|at| SystemTime::now().duration_since(at).ok()).unwrap_or(AGE);
        let is_small = is_end && self.catalog.bytes()? <= SMALL_CATALOG;
        Ok(fresh > 0 && (age >= AGE || (fresh >= MANY && fresh >= note.sequence / 4) || is_small))
    }

    fn copy_or_warn(&self) {
        match self.write_copy() {
            Ok(_) => {}
            // Whoever may only read the library has nothing to keep, and whoever writes to it renews the copy.
            Err(error) if error.kind() == Kind::Denied => {
                tracing::debug!(%error, "the recovery copy of the catalog was not renewed");
            }
            Err(error) => tracing::warn!(%error, "the recovery copy of the catalog could not be renewed"),
        }
    }

    /// Writes the copy now, unless another process is at it. A copy that holds records that this catalog does not have
    /// is never replaced.
    pub(crate) fn write_copy(&self) -> Result<()> {
        match self.locks.try_alone("recovery")? {
            Some(_alone) => self.write_copy_alone(),
            None => Ok(()),
        }
    }

    /// Writes the copy; the caller holds the lock for it.
    pub(super) fn write_copy_alone(&self) -> Result<()> {
        if self.lost_records()?.is_some() {
            return Ok(());
        }
        // The last good copy must not give way to one of a damaged catalog. A catalog elsewhere leaves only a note here.
        let damage = if self.catalog.is_shared() { Vec::new() } else { self.catalog.integrity()? };
        if let Some(damage) = damage.first() {
            return Err(Error::Busy(format!(
                "the catalog is damaged ({damage}); its last good copy is kept"
            )));
        }
        let path = copy_path(self.folder());
        keep_older(&path);
        let folder = path.parent().unwrap_or(self.folder());
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(Error::Lock)?;
        self.catalog.write_copy(&path)?;
        Ok(())
    }

    /// What the copy knows and the journal does not: then acknowledged writes were rolled back, or this is another
    /// catalog.
    pub(crate) fn lost_records(&self) -> Result<Option<String>> {
        let note = match CopyNote::read(&copy_path(self.folder())) {
            Ok(Some(note)) if note.sequence > 0 => note,
            _ => return Ok(None),
        };
        let end = self.catalog.sequence()?;
        if end < note.sequence {
            let sequence = note.sequence;
            return Ok(Some(format!(
                "it ends at {end}, but the recovery copy knows of records up to {sequence}"
            )));
        }
        let record = self.catalog.journal(note.sequence - 1, 1)?.pop();
        let is_same = record.is_some_and(|record| record.seal == note.seal);
        Ok((!is_same).then(|| format!("its record {} is not the one of the recovery copy", note.sequence)))
    }

    /// Refuses to delete anything on the word of a catalog that is not whole.
    pub(crate) fn must_be_trusted(&self) -> Result<()> {
        let mut damage = self.catalog.integrity()?;
        if damage.is_empty() {
            damage = self.catalog.audit()?;
        }
        if let Some(first) = damage.first() {
            let count = damage.len();
            return Err(Error::Unavailable {
                what: format!(
                    "nothing was deleted: {count} things are wrong in the catalog, among them: {first}"
                ),
                hint: format!("`shelf check` names them all; {}", self.way_back()),
            });
        }
        self.must_have_records()
    }

    fn must_have_records(&self) -> Result<()> {
        // A first add that is under way, or was killed, has written a few packs and committed nothing.
        let has_packs = self.blocks.usage()?.packs > FIRST_PACKS;
        let lost = match self.lost_records()? {
            None if has_packs && self.catalog.sequence()? == 0 => {
                Some("it is empty, although there are packs".into())
            }
            lost => lost,
        };
        lost.map_or(Ok(()), |what| {
            Err(Error::Unavailable {
                what: format!("nothing was deleted: the journal of this library is not whole: {what}"),
                hint: self.way_back().into(),
            })
        })
    }

    /// What to do about a catalog that is not whole.
    pub(crate) fn way_back(&self) -> &'static str {
        if self.catalog.is_shared() {
            "if the database was restored from a backup on purpose, run `shelf recover --keep-catalog` on this machine, and \
             its library goes on with the catalog as it is; otherwise restore a newer backup"
        } else {
            "run `shelf recover` to go back to the recovery copy, or `shelf recover --keep-catalog` to go on with the \
             catalog as it is"
        }
    }

    /// Accepts the catalog as it is: the journal gets records of what differs from it, the copy is made anew, and the old
    /// one is kept beside it.
    pub fn accept_catalog(&self) -> Result<u64> {
        self.catalog.accept(&shelf_catalog::Actor::local(), self.now())?;
        let path = copy_path(self.folder());
        if path.exists() {
            let name = format!("catalog-{}.copy", self.now().micros());
            fs::rename(&path, path.with_file_name(name)).map_err(Error::Lock)?;
        }
        self.write_copy()?;
        Ok(self.catalog.sequence()?)
    }

    /// Rebuilds the catalog of the library in `folder` from its recovery copy. A catalog that is there is set aside, not
    /// deleted. One that is whole and newer than the copy is left alone, unless `force`.
    pub fn recover(folder: &Path, force: bool, options: &crate::Options) -> Result<Recovered> {
        if is_elsewhere(folder) {
            return Err(Error::Unavailable {
                what: "the catalog of this library is in a database, which has no recovery copy here".into(),
                hint: "restore the database from its own backup; `shelf recover --keep-catalog` goes on with it as it is"
                    .into(),
            });
        }
        let copy = copy_path(folder);
        let Some(note) = CopyNote::read(&copy)? else {
            return Err(Error::Unavailable {
                what: "this library has no recovery copy of its catalog".into(),
                hint: "put catalog.db back from a backup of your own".into(),
            });
        };
        if !force && let Some(newer) = Self::newer_records(folder, &note, options) {
            return Err(Error::Unavailable {
                what: format!(
                    "nothing was done: the catalog is whole, and the copy ends at record {}, so {newer} records would be lost",
                    note.sequence
                ),
                hint: "`shelf recover --force` goes back to the copy all the same".into(),
            });
        }
        let locks = Locks::new(std::sync::Arc::new(FolderLocks::new(folder)));
        let alone = locks.exclusive(Duration::from_secs(10), &shelf_base::CallContext::new())?;
        remove_leftovers(folder);
        let mut aside = None;
        SqliteCatalog::rebuild(folder, &copy, SystemClock.now(), short_blocks, || {
            aside = set_aside(folder)?;
            Ok(())
        })?;
        drop(alone);
        // The index may have followed records that are no more.
        let _ = fs::remove_file(folder.join("index").join("manifest"));
        let library = Self::open(folder, options.clone())?;
        let documents =
            library.catalog.numbers(&shelf_catalog::Scope::Library, &shelf_catalog::Filter::default())?;
        Ok(Recovered { sequence: note.sequence, documents: documents.len() as u64, set_aside: aside })
    }

    /// How many records a whole catalog has after those of the copy; `None` when it is damaged, lost or behind.
    fn newer_records(folder: &Path, note: &CopyNote, options: &crate::Options) -> Option<u64> {
        let library = Self::open_anyway(folder, options.clone()).ok()?;
        let is_whole = library.lost_records().ok()?.is_none()
            && library.catalog.integrity().ok()?.is_empty()
            && library.catalog.audit().ok()?.is_empty();
        let end = library.catalog.sequence().ok()?;
        is_whole.then(|| end.saturating_sub(note.sequence)).filter(|newer| *newer > 0)
    }
}

/// Keeps a copy that has stood for an hour as the older one, unless that is younger than a day: damage that nobody has
/// noticed yet may be in the newest.
fn keep_older(path: &Path) {
    let older = path.with_file_name("catalog.older.copy");
    let age = |path: &Path| {
        let modified = fs::metadata(path).and_then(|facts| facts.modified()).ok()?;
        SystemTime::now().duration_since(modified).ok()
    };
    let is_settled = age(path).is_some_and(|age| age >= SETTLED);
    if is_settled && age(&older).is_none_or(|age| age >= DAY) {
        let _ = fs::copy(path, &older);
    }
}

const CATALOG_FILES: [&str; 3] = ["catalog.db", "catalog.db-wal", "catalog.db-shm"];

fn set_aside(folder: &Path) -> io::Result<Option<PathBuf>> {
    // A log without its database counts: SQLite would apply it to whatever database comes to stand beside it.
    if !CATALOG_FILES.iter().any(|name| folder.join(name).exists()) {
        return Ok(None);
    }
    let target = folder.join("recovery").join(format!("damaged-{}", SystemClock.now().micros()));
    DirBuilder::new().recursive(true).mode(0o700).create(&target)?;
    for name in CATALOG_FILES.iter().filter(|name| folder.join(name).exists()) {
        fs::rename(folder.join(name), target.join(name))?;
    }
    Ok(Some(target))
}

/// Removes what recoveries that were killed have left.
fn remove_leftovers(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("catalog.db.") && name.ends_with(".part") {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The short names of the blocks of a manifest, for the accounts' own blocks.
pub(super) fn short_blocks(manifest: &[u8]) -> Vec<i64> {
    Manifest::decode(manifest)
        .map_or_else(|_| Vec::new(), |manifest| manifest.blocks().map(|b| b.id.short()).collect())
}
