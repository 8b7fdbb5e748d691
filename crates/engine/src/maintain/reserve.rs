//! A little disk space that is kept for the day on which there is none: garbage collection needs some to free more.
//!
//! The reserve is made when the disk begins to run full, so that it costs nothing before. It is given up while garbage
//! collection runs and made again afterwards.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, fallocate, statvfs};

/// With less free space than this the reserve is made.
const LOW: u64 = 1 << 30;
/// With less free space than this it is given up.
const NEARLY_NONE: u64 = 32 << 20;
/// With less free space than this even a small write may fail.
const FULL: u64 = 1 << 20;
/// Bytes of the reserve, on a disk that has them.
const BYTES: u64 = 8 << 20;
/// A smaller one would not help.
const LEAST: u64 = 256 << 10;

/// The time between two looks at the room that is left: too short to fill much of it.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The reserve of a data directory.
pub(crate) struct Reserve {
    path: PathBuf,
    /// When somebody looked last how much room there is.
    looked: Mutex<Option<Instant>>,
}

/// Makes the reserve again when it is dropped.
pub(crate) struct GivenUp<'a>(Option<&'a Reserve>);

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        if let Some(reserve) = self.0 {
            reserve.make_when_low();
        }
    }
}

impl Reserve {
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Self { path: folder.join("reserve"), looked: Mutex::default() }
    }

    /// Takes the space in time, after a write. Small writes come too often to ask the system after each of them.
    pub(crate) fn wrote(&self) {
        let mut looked = self.looked.lock();
        if looked.is_none_or(|looked| looked.elapsed() >= LOOK_EVERY) {
            *looked = Some(Instant::now());
            drop(looked);
            self.make_when_low();
        }
    }

    fn free(&self) -> Option<u64> {
        let facts = statvfs(self.path.parent()?).ok()?;
        Some(facts.f_bavail * facts.f_frsize)
    }

    /// Whether next to nothing can be written.
    pub(crate) fn is_disk_full(&self) -> bool {
        self.free().is_some_and(|free| free < FULL)
    }

    /// Takes the space while there still is some. A failure leaves things as they were.
    pub(crate) fn make_when_low(&self) {
        let Some(free) = self.free().filter(|free| *free < LOW) else { return };
        let bytes = BYTES.min(free / 2);
        if bytes < LEAST || fs::metadata(&self.path).is_ok_and(|found| found.len() > 0) {
            return;
        }
        let made = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&self.path);
        let taken = made.and_then(|file| Ok(fallocate(&file, FallocateFlags::empty(), 0, bytes)?));
        if taken.is_err() {
            let _ = fs::remove_file(&self.path);
        }
    }

    /// Gives the space up when there is hardly any other, until the result is dropped.
    pub(crate) fn give_up_when_needed(&self) -> GivenUp<'_> {
        if self.free().is_some_and(|free| free < NEARLY_NONE) {
            let _ = fs::remove_file(&self.path);
        }
        GivenUp(Some(self))
    }
}
