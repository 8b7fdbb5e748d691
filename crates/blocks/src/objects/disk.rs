//! The few file-system calls that `Folder` makes, behind a trait, so that tests can substitute a disk that is full or
//! loses unsynced data, and check that the right things are synced in the right order.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt},
    path::Path,
};

use super::Object;

/// A file being written.
pub trait DiskFile {
    /// Appends bytes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Makes the content durable.
    fn sync(&mut self) -> io::Result<()>;
}

/// File-system calls.
pub trait Disk: Send + Sync {
    /// Creates a folder and its missing parents.
    fn create_folder(&self, path: &Path) -> io::Result<()>;
    /// Creates a new file; fails if it exists.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Renames a file, replacing the target if it exists.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Makes the directory entries of a folder durable.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
    /// Reads part of a file.
    fn read(&self, path: &Path, offset: u64, length: usize) -> io::Result<Vec<u8>>;
    /// Opens a file for many reads.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Object>>;
    /// The length of a file.
    fn length(&self, path: &Path) -> io::Result<u64>;
    /// The names of the files in a folder.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
    /// Deletes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
}

/// The local file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl DiskFile for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

impl Object for File {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(bytes, offset)
    }
}

impl Disk for RealDisk {
    fn create_folder(&self, path: &Path) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn read(&self, path: &Path, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        File::open(path)?.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Object>> {
        Ok(Box::new(File::open(path)?))
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        Ok(fs::metadata(path)?.len())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        match fs::read_dir(path) {
            Ok(entries) => {
                entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
}
