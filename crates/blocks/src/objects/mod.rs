//! Object storage for packs: immutable objects, written once as a whole.
//!
//! The trait requires only what every kind of storage offers (put, ranged reads, a list in pages, delete), so that a
//! bucket can replace a folder: what may be asked for in one request is one call, and an object that is deleted may be
//! gone at once. Mutable state lives in the catalog, never here. [`Folder`] and [`Bucket`] are the two places for objects,
//! [`Cached`] keeps copies of those of a bucket nearby, and [`suite`] holds the behaviour that all of them must show.

mod cache;
mod disk;
mod failure;
mod folder;
pub mod forgetful;
mod memory;
mod s3;
pub mod suite;

use std::io;

pub use cache::{CacheFigures, Cached};
pub use disk::{Disk, DiskFile, RealDisk};
pub use failure::Failure;
pub use folder::Folder;
pub use memory::Memory;
pub use s3::{Bucket, BucketSettings, begin_counters};

/// Part of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// Where it begins.
    pub offset: u64,
    /// How many bytes it has.
    pub length: usize,
}

/// An object as a list names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
}

/// What answers of a remote store have shown of it by the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Seconds by which the clock of this machine is ahead of the store's.
    pub clock_ahead: Option<i64>,
    /// Whether it keeps what is deleted or replaced as an earlier version.
    pub keeps_versions: bool,
}

/// Objects on one page of a list, at most.
pub const LIST_PAGE: usize = 1_000;

/// A file that is read many times.
pub trait Object {
    /// Fills `bytes` from `offset`; fails if the object ends before `bytes` is full.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;
}

/// A file in memory.
impl Object for Vec<u8> {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let found = self.get(start..start.saturating_add(bytes.len()));
        bytes.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// Storage for immutable objects. Names are flat: letters, digits, `-`, `_` and `.`.
pub trait Objects: Send + Sync {
    /// Stores the concatenation of `parts` as an object. When this returns, the object survives power loss. Names are
    /// derived from content, so an existing object of that name is left alone unless its bytes differ: in that case it
    /// is damaged and gets replaced.
    fn put(&self, name: &str, parts: &[&[u8]]) -> io::Result<()>;

    /// Stores an object unless there is one of that name; whether it was stored. A remote store decides between those who
    /// try at once; those who share a folder hold a lock.
    fn put_new(&self, name: &str, parts: &[&[u8]]) -> io::Result<bool> {
        match self.length(name) {
            Ok(_) => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.put(name, parts).map(|()| true),
            Err(error) => Err(error),
        }
    }

    /// Reads several parts of an object, in the order in which they are asked for; fails if the object ends before one
    /// of them does.
    fn read(&self, name: &str, ranges: &[ByteRange]) -> io::Result<Vec<Vec<u8>>>;

    /// The length of an object.
    fn length(&self, name: &str) -> io::Result<u64>;

    /// The first objects, up to [`LIST_PAGE`] of them, whose names are greater than `after`, in the order of names. A page
    /// with fewer is the last. Objects that come and go while pages are read may be on one or not.
    fn list(&self, after: &str) -> io::Result<Vec<Listed>>;

    /// Deletes an object; it is not an error if the object does not exist.
    fn delete(&self, name: &str) -> io::Result<()>;

    /// Removes what interrupted writes left behind. The caller must ensure that no write is in progress.
    fn sweep(&self) -> io::Result<u64>;

    /// Where the objects are, as people write it.
    fn describe(&self) -> String;

    /// Whether it is reached over a network.
    fn is_remote(&self) -> bool {
        false
    }

    /// Whether the storage answers now, without patience; that of this machine always does.
    fn ping(&self) -> io::Result<()> {
        Ok(())
    }

    /// What its answers have shown so far.
    fn observed(&self) -> Observed {
        Observed::default()
    }

    /// How many requests it pays to have under way at once.
    fn parallel(&self) -> usize {
        1
    }

    /// The storage behind copies, when this reads from copies: whoever must know what is stored asks there.
    fn source(&self) -> Option<&dyn Objects> {
        None
    }

    /// Whether an object is about to be deleted: a write must not rely on it.
    fn is_retired(&self, _name: &str) -> bool {
        false
    }

    /// Forgets copies of an object that was found damaged; whether there were any, so that reading it again may help.
    fn distrust(&self, _name: &str) -> bool {
        false
    }
}

/// All pages of a list, one after the other; the last item is the first error, if there is one.
pub fn pages(objects: &dyn Objects) -> impl Iterator<Item = io::Result<Vec<Listed>>> + '_ {
    let mut after = Some(String::new());
    std::iter::from_fn(move || {
        let page = objects.list(after.as_deref()?);
        let next = page.as_ref().ok().filter(|page| page.len() == LIST_PAGE).and_then(|page| page.last());
        after = next.map(|last| last.name.clone());
        Some(page)
    })
}
