//! A simulated disk for tests that loses unsynced data on a power cut and can be made full.
//!
//! It keeps two states: what programs see now, and what would survive a power cut. A file's content becomes durable
//! when the file is synced; directory entries (new files, renames, deletions) become durable when their folder is.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

use super::{Disk, DiskFile, Object};

type Content = Arc<Mutex<Bytes>>;

#[derive(Default)]
struct Bytes {
    seen: Vec<u8>,
    synced: Vec<u8>,
}

#[derive(Default)]
struct State {
    seen: BTreeMap<PathBuf, Content>,
    durable: BTreeMap<PathBuf, Content>,
    room: Option<u64>,
}

/// The simulated disk; clones share the same state.
#[derive(Clone, Default)]
pub struct Forgetful(Arc<Mutex<State>>);

impl Forgetful {
    /// Simulates a power cut: everything that was not synced is lost.
    pub fn cut_power(&self) {
        let mut state = self.0.lock();
        state.seen = state.durable.clone();
        for content in state.seen.values() {
            let mut bytes = content.lock();
            bytes.seen = bytes.synced.clone();
        }
    }

    /// Leaves space for `bytes` more bytes; writes beyond that fail as on a full disk. `None` removes the limit.
    pub fn limit(&self, bytes: Option<u64>) {
        self.0.lock().room = bytes;
    }
}

struct Open {
    disk: Forgetful,
    content: Content,
}

impl DiskFile for Open {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.0.lock();
        if let Some(room) = &mut state.room {
            *room = room.checked_sub(bytes.len() as u64).ok_or(io::ErrorKind::StorageFull)?;
        }
        self.content.lock().seen.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut bytes = self.content.lock();
        bytes.synced = bytes.seen.clone();
        Ok(())
    }
}

impl Disk for Forgetful {
    fn create_folder(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let content = Content::default();
        let mut state = self.0.lock();
        if state.seen.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.seen.insert(path.to_owned(), content.clone());
        Ok(Box::new(Open { disk: self.clone(), content }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        let content = state.seen.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.seen.insert(to.to_owned(), content);
        Ok(())
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        let inside = |name: &PathBuf| name.parent() == Some(path);
        let names: Vec<_> =
            state.seen.iter().filter(|(name, _)| inside(name)).map(|(n, c)| (n.clone(), c.clone())).collect();
        state.durable.retain(|name, _| !inside(name));
        state.durable.extend(names);
        Ok(())
    }

    fn read(&self, path: &Path, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let state = self.0.lock();
        let bytes = state.seen.get(path).ok_or(io::ErrorKind::NotFound)?.lock();
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let found = bytes.seen.get(start..start.saturating_add(length)).map(<[u8]>::to_vec);
        found.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Object>> {
        let state = self.0.lock();
        Ok(Box::new(state.seen.get(path).ok_or(io::ErrorKind::NotFound)?.lock().seen.clone()))
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        let state = self.0.lock();
        let content = state.seen.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(content.lock().seen.len() as u64)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let state = self.0.lock();
        let inside = state.seen.keys().filter(|name| name.parent() == Some(path));
        Ok(inside.filter_map(|name| name.file_name()?.to_str().map(str::to_owned)).collect())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.lock().seen.remove(path).map(|_| ()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}
