//! Locks of the data directory, between processes.
//!
//! Writers hold `writers` shared from the moment they rely on a stored block until their transaction has committed; a
//! collection holds it alone. Everybody passes through `gate` first, so that a collection that waits is not overtaken
//! by new writers for ever. Locks fall with their file handle, so a killed process leaves none behind.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::PathBuf,
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

/// Holds a lock until it is dropped.
#[derive(Debug)]
pub struct Guard(#[expect(dead_code, reason = "held, not read")] File);

/// The locks of one data directory.
#[derive(Clone, Debug)]
pub(crate) struct Locks {
    folder: PathBuf,
}

impl Locks {
    pub(crate) fn in_folder(folder: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    /// Waits until no collection is running.
    pub(crate) fn write(&self) -> io::Result<Guard> {
        let gate = self.lock("gate", FlockOperation::LockShared)?;
        let guard = self.lock("writers", FlockOperation::LockShared)?;
        drop(gate);
        Ok(Guard(guard))
    }

    /// Waits until nobody writes, and keeps new writers out meanwhile.
    pub(crate) fn collect(&self) -> io::Result<(Guard, Guard)> {
        let gate = self.lock("gate", FlockOperation::LockExclusive)?;
        let alone = self.lock("writers", FlockOperation::LockExclusive)?;
        Ok((Guard(gate), Guard(alone)))
    }

    /// A lock that one process at a time may have; `None` when another has it.
    pub(crate) fn try_alone(&self, name: &str) -> io::Result<Option<Guard>> {
        let file = self.open(name)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Guard(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn lock(&self, name: &str, operation: FlockOperation) -> io::Result<File> {
        let file = self.open(name)?;
        loop {
            match flock(&file, operation) {
                Ok(()) => return Ok(file),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn open(&self, name: &str) -> io::Result<File> {
        let path = self.folder.join(format!("{name}.lock"));
        OpenOptions::new().create(true).truncate(false).write(true).open(path)
    }
}
