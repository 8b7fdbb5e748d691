//! Object storage for packs: immutable objects, written once as a whole.
//!
//! The trait requires only what every kind of storage offers (put if absent, ranged read, list, delete), so that a
//! bucket can replace a folder. Mutable state lives in the catalog, never here.

mod disk;
mod folder;
pub mod forgetful;
mod memory;

use std::io;

pub use disk::{Disk, DiskFile, RealDisk};
pub use folder::Folder;
pub use memory::Memory;

/// An open object.
pub trait Object {
    /// Fills `bytes` from `offset`; fails if the object ends before `bytes` is full.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;
}

/// An object in memory.
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

    /// Reads `length` bytes at `offset`; fails if the object has fewer.
    fn read(&self, name: &str, offset: u64, length: usize) -> io::Result<Vec<u8>>;

    /// Opens an object for many reads; it stays readable while open, even if it is deleted meanwhile.
    fn open(&self, name: &str) -> io::Result<Box<dyn Object + '_>>;

    /// The length of an object.
    fn length(&self, name: &str) -> io::Result<u64>;

    /// The names of all objects, in no particular order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Deletes an object; it is not an error if the object does not exist.
    fn delete(&self, name: &str) -> io::Result<()>;

    /// Removes what interrupted writes left behind. The caller must ensure that no write is in progress.
    fn sweep(&self) -> io::Result<u64>;
}
