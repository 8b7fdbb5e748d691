//! Packs that garbage collection has marked on a store that several machines use.
//!
//! Marks are made while nobody writes, so whoever begins to write afterwards knows them: it relies on none of these packs,
//! and stores their blocks anew. Such a pack can therefore be deleted later without keeping anybody from writing. A write
//! may make the very same pack again, since names follow from contents: then it takes the mark off first, or is refused for the
//! moment in which the pack is being deleted.

use std::{collections::HashSet, io, sync::Arc};

use parking_lot::RwLock;
use shelf_blocks::objects::{ByteRange, Failure, Listed, Objects};
use shelf_catalog::{Catalog, RetiredPack};

/// The marks as they were when this process last began to write.
#[derive(Clone, Default)]
pub(crate) struct RetiredPacks(Arc<RwLock<HashSet<String>>>);

impl RetiredPacks {
    /// Takes over the marks as the catalog has them. The caller holds the writers' lock, under which they stay as they are
    /// but for those that writers take off.
    pub(crate) fn refresh(&self, marked: Vec<RetiredPack>) {
        *self.0.write() = marked.into_iter().map(|pack| pack.name).collect();
    }
}

/// Packs of a store that several machines use.
pub(crate) struct SharedPacks {
    pub inner: Arc<dyn Objects>,
    pub catalog: Arc<dyn Catalog>,
    pub retired: RetiredPacks,
}

impl SharedPacks {
    /// Takes the mark off a pack that is about to be written.
    fn revive(&self, name: &str) -> io::Result<()> {
        if !self.is_retired(name) {
            return Ok(());
        }
        if self.catalog.revive_pack(name).map_err(|error| Failure::Away.error(error.to_string()))? {
            self.retired.0.write().remove(name);
            return Ok(());
        }
        Err(Failure::Throttled.error("garbage collection is deleting a pack with the same content"))
    }
}

impl Objects for SharedPacks {
    fn put(&self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        self.revive(name)?;
        self.inner.put(name, parts)
    }

    fn put_new(&self, name: &str, parts: &[&[u8]]) -> io::Result<bool> {
        self.revive(name)?;
        self.inner.put_new(name, parts)
    }

    fn read(&self, name: &str, ranges: &[ByteRange]) -> io::Result<Vec<Vec<u8>>> {
        self.inner.read(name, ranges)
    }

    fn length(&self, name: &str) -> io::Result<u64> {
        self.inner.length(name)
    }

    fn list(&self, after: &str) -> io::Result<Vec<Listed>> {
        self.inner.list(after)
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        self.inner.delete(name)
    }

    fn sweep(&self) -> io::Result<u64> {
        self.inner.sweep()
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn is_remote(&self) -> bool {
        self.inner.is_remote()
    }

    fn ping(&self) -> io::Result<()> {
        self.inner.ping()
    }

    fn parallel(&self) -> usize {
        self.inner.parallel()
    }

    fn source(&self) -> Option<&dyn Objects> {
        self.inner.source()
    }

    fn distrust(&self, name: &str) -> bool {
        self.inner.distrust(name)
    }

    fn is_retired(&self, name: &str) -> bool {
        self.retired.0.read().contains(name)
    }
}
