//! Object storage under the packs: whole immutable objects, written once.
//!
//! The trait asks for no more than every kind of storage has (put if absent, ranged read, list, delete), so that a
//! bucket can stand where a folder does. Mutable state lives in the catalog, never here.

mod disk;
mod folder;
pub mod forgetful;
mod memory;

use std::io;

pub use disk::{Disk, DiskFile, RealDisk};
pub use folder::Folder;
pub use memory::Memory;

/// An object that is open.
pub trait Object {
    /// Fills `bytes` with what lies at `offset`; fewer bytes in the object is an error.
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

/// A place for immutable objects. Names are flat: letters, digits, `-`, `_` and `.`.
pub trait Objects: Send + Sync {
    /// Stores an object made of `parts`. When this returns, the object survives power loss. Names are made from content,
    /// so an object of that name that is already there is left as it is, unless its bytes are others: then it is damaged
    /// and replaced.
    fn put(&self, name: &str, parts: &[&[u8]]) -> io::Result<()>;

    /// Reads `length` bytes at `offset`; fewer bytes in the object is an error.
    fn read(&self, name: &str, offset: u64, length: usize) -> io::Result<Vec<u8>>;

    /// Opens an object for many reads; while it is open it can be read, even when it is deleted meanwhile.
    fn open(&self, name: &str) -> io::Result<Box<dyn Object + '_>>;

    /// The length of an object.
    fn length(&self, name: &str) -> io::Result<u64>;

    /// The names of all objects, in no order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Deletes an object; one that is not there is fine.
    fn delete(&self, name: &str) -> io::Result<()>;

    /// Removes what interrupted writes left behind. The caller knows that no write is under way.
    fn sweep(&self) -> io::Result<u64>;
}
