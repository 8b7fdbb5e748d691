//! Memory-mapped files, and releasing their resident pages.
//!
//! A search touches pages all over the index. The kernel counts every touched page towards this process's memory until
//! memory is scarce, so a server seems to grow to the size of its index. While the server is idle, the pages are
//! released: they stay in the page cache, and mapping them again costs a few microseconds per 64 KB without reading
//! from disk.

use std::{io, path::Path};

use tantivy::{
    Directory,
    directory::{FileSlice, MmapDirectory, OwnedBytes, error::OpenReadError},
};

use crate::{Error, Result};

/// A whole file, mapped read-only. Only [`open`](Self::open) makes one, so its bytes are always a file mapping. The index
/// never writes to a segment after it was sealed.
#[derive(Clone)]
pub(crate) struct MappedFile(OwnedBytes);

impl MappedFile {
    /// Maps the file `name` of a folder.
    pub(crate) fn open(folder: &Path, name: &str) -> Result<Self> {
        let directory = MmapDirectory::open(folder).map_err(|error| Error::Io(io::Error::other(error)))?;
        let handle = directory.get_file_handle(Path::new(name)).map_err(|error| match error {
            OpenReadError::FileDoesNotExist(_) => Error::Io(io::ErrorKind::NotFound.into()),
            other => Error::Io(io::Error::other(other)),
        })?;
        Ok(Self(FileSlice::new(handle).read_bytes()?))
    }

    /// The content of the file.
    pub(crate) fn slice(&self) -> FileSlice {
        FileSlice::new(std::sync::Arc::new(self.0.clone()))
    }

    /// Releases the resident pages. A page that is touched again has the same bytes.
    #[cfg(target_os = "linux")]
    #[expect(unsafe_code, reason = "madvise has no safe interface")]
    pub(crate) fn release(&self) {
        let bytes: &[u8] = &self.0;
        // SAFETY: the range is a read-only mapping of a file (see the type) and stays mapped while `self` lives, so
        // dropping its pages does not change any visible byte. An error is harmless: the pages then stay resident.
        unsafe {
            libc::madvise(bytes.as_ptr().cast_mut().cast(), bytes.len(), libc::MADV_DONTNEED);
        }
    }

    /// On other systems `MADV_DONTNEED` may have different semantics.
    #[cfg(not(target_os = "linux"))]
    pub(crate) const fn release(&self) {}
}
