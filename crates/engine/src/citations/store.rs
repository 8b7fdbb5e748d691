//! The folder of evidence: files that were cut out, found by what they were cut from.
//!
//! Each entry is a folder that is named by its key and holds one file. It is made under another name and renamed when it
//! is complete and synced, so it is there whole or not at all. When the folder grows beyond its limit, the entries that
//! were used least recently go. Everything in it can be cut again.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

use super::{Answer, CitationError};
use crate::Error;

/// Bytes of all evidence.
const LIMIT: u64 = 2 << 30;
/// What has been used this recently stays, whatever the limit says: somebody is about to read it.
const SPARED: Duration = Duration::from_secs(600);
/// The folder is measured again when it has grown by this much.
const GROWTH: u64 = LIMIT / 32;

/// The folder.
pub(crate) struct EvidenceStore {
    folder: PathBuf,
    limit: u64,
    /// Bytes that were added since the folder was measured; the first addition measures it.
    grown: AtomicU64,
    made: AtomicU64,
}

impl EvidenceStore {
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Self::with_limit(folder.to_owned(), LIMIT)
    }

    fn with_limit(folder: PathBuf, limit: u64) -> Self {
        Self { folder, limit, grown: AtomicU64::new(u64::MAX / 2), made: AtomicU64::new(0) }
    }

    /// The file of an entry, made by `make` at the path it is given when there is none.
    pub(super) fn get_or_make(
        &self,
        key: &str,
        name: &str,
        make: impl FnOnce(&Path) -> Answer<()>,
    ) -> Answer<PathBuf> {
        let target = self.folder.join(key).join(name);
        if let Ok(file) = File::open(&target) {
            // So that it is seen as used.
            let _ = file.set_modified(SystemTime::now());
            return Ok(target);
        }
        let failed = |error| CitationError::Engine(Error::writing("the evidence folder", error));
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&self.folder).map_err(failed)?;
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let scratch = Scratch(self.folder.join(format!("part-{}-{number}", std::process::id())));
        // Left by a killed process that had the same id.
        let _ = fs::remove_dir_all(&scratch.0);
        fs::DirBuilder::new().mode(0o700).create(&scratch.0).map_err(failed)?;
        let made = scratch.0.join(name);
        make(&made)?;
        let size = seal(&made).map_err(failed)?;
        match fs::rename(&scratch.0, self.folder.join(key)) {
            Ok(()) => {}
            // Somebody else was faster, and made the same.
            Err(_) if target.exists() => {}
            // An entry without its file: somebody took it out by hand.
            Err(_) => {
                let _ = fs::remove_dir_all(self.folder.join(key));
                fs::rename(&scratch.0, self.folder.join(key)).map_err(failed)?;
            }
        }
        self.grow(size, key);
        Ok(target)
    }

    /// The file of an entry, if it is still there. It counts as used.
    pub(super) fn open(&self, key: &str, name: &str) -> Option<File> {
        let file = File::open(self.folder.join(key).join(name)).ok()?;
        let _ = file.set_modified(SystemTime::now());
        Some(file)
    }

    fn grow(&self, size: u64, newest: &str) {
        let grown = self.grown.fetch_add(size, Ordering::Relaxed).saturating_add(size);
        if grown >= GROWTH.min(self.limit / 2) {
            self.grown.store(0, Ordering::Relaxed);
            self.shrink(newest, SPARED);
        }
    }

    /// Removes what was used least recently until the limit holds.
    fn shrink(&self, newest: &str, spared: Duration) {
        let mut entries: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let mut used = SystemTime::UNIX_EPOCH;
            let mut bytes = 0;
            for file in fs::read_dir(entry.path()).into_iter().flatten().flatten() {
                let Ok(facts) = file.metadata() else { continue };
                bytes += facts.len();
                used = used.max(facts.modified().unwrap_or(SystemTime::UNIX_EPOCH));
            }
            let is_newest = entry.file_name().to_str() == Some(newest);
            if !is_newest {
                entries.push((used, bytes, entry.path()));
            }
        }
        entries.sort_by_key(|(used, ..)| *used);
        let mut total: u64 = entries.iter().map(|(_, bytes, _)| bytes).sum();
        let now = SystemTime::now();
        for (used, bytes, path) in entries {
            let is_spared = now.duration_since(used).is_ok_and(|age| age < spared);
            if total <= self.limit || is_spared {
                break;
            }
            if fs::remove_dir_all(&path).is_ok() {
                total -= bytes;
            }
        }
    }
}

/// Makes a finished file durable and safe from changes by mistake; its size.
fn seal(path: &Path) -> io::Result<u64> {
    let file = File::open(path)?;
    file.set_permissions(fs::Permissions::from_mode(0o400))?;
    file.sync_all()?;
    Ok(file.metadata()?.len())
}

/// A folder that is removed when it is dropped, unless it has been renamed.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(store: &EvidenceStore, key: &str, bytes: usize) -> PathBuf {
        let made = store.get_or_make(key, "a.txt", |target| {
            fs::write(target, vec![b'x'; bytes]).unwrap();
            Ok(())
        });
        made.unwrap()
    }

    #[test]
    fn entries_are_whole_and_the_oldest_go() {
        let folder = tempfile::tempdir().unwrap();
        let store = EvidenceStore::with_limit(folder.path().join("evidence"), 1_000);
        let failed = store.get_or_make("k0", "a.txt", |target| {
            fs::write(target, "half").unwrap();
            Err(CitationError::NoNode("x".into()))
        });
        assert!(failed.is_err());
        assert_eq!(fs::read_dir(folder.path().join("evidence")).unwrap().count(), 0);
        let first = put(&store, "k1", 400);
        assert_eq!(store.get_or_make("k1", "a.txt", |_| panic!("it is there")).unwrap(), first);
        let second = put(&store, "k2", 400);
        let past = SystemTime::now() - Duration::from_secs(3_600);
        for path in [&first, &second] {
            File::open(path).unwrap().set_modified(past).unwrap();
        }
        // Used again, so the other one is older.
        store.get_or_make("k1", "a.txt", |_| panic!("it is there")).unwrap();
        let third = put(&store, "k3", 400);
        store.shrink("k3", Duration::from_secs(60));
        assert!(first.exists() && third.exists());
        let fourth = put(&store, "k4", 400);
        store.shrink("k4", Duration::from_secs(60));
        assert!(!second.exists() && fourth.exists());
        // What was just used stays although there is too much.
        put(&store, "k5", 900);
        store.shrink("k5", Duration::from_secs(60));
        assert!(first.exists());
        fs::set_permissions(&first, fs::Permissions::from_mode(0o600)).unwrap();
        fs::remove_file(&first).unwrap();
        assert_eq!(fs::read(put(&store, "k1", 3)).unwrap(), b"xxx");
    }
}
