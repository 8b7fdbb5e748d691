//! Locks of the data directory, between processes.
//!
//! Writers hold `writers` shared from the moment they rely on a stored block until their transaction has committed;
//! garbage collection holds it alone, for as long as it deletes. Everybody passes through `gate` first, so that a
//! garbage collection that waits is not overtaken by new writers for ever; it holds the gate for a second at a time, so
//! that a long add does not make all other writers wait with it. Locks fall with their file handle, so a killed process
//! leaves none behind.
//!
//! Nobody waits without an end, and whoever waits hears a cancellation: locks are tried again and again, since the
//! system's own waiting can be neither bounded nor interrupted.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use shelf_base::CallContext;

use crate::{Error, Result};

/// How long a writer waits for garbage collection at most.
const WRITERS_WAIT: Duration = Duration::from_secs(120);
/// How long garbage collection keeps new writers out while it waits for the others to finish.
const GATE_HELD: Duration = Duration::from_secs(1);
/// How often a lock is tried: at first nearly at once, then more and more seldom.
const TRY_AGAIN: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(20));

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
        if !folder.is_dir() {
            DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        }
        Ok(Self { folder })
    }

    /// Waits until no garbage collection is deleting.
    pub(crate) fn write(&self, call: &CallContext) -> Result<Guard> {
        let until = Instant::now() + WRITERS_WAIT;
        let busy = || Error::Busy("garbage collection has kept writers waiting for two minutes".into());
        let gate = self.wait("gate", FlockOperation::NonBlockingLockShared, until, call)?.ok_or_else(busy)?;
        let guard =
            self.wait("writers", FlockOperation::NonBlockingLockShared, until, call)?.ok_or_else(busy)?;
        drop(gate);
        Ok(guard)
    }

    /// Waits until nobody writes, and keeps new writers out meanwhile.
    pub(crate) fn exclusive(&self, patience: Duration, call: &CallContext) -> Result<(Guard, Guard)> {
        let alone = FlockOperation::NonBlockingLockExclusive;
        let started = Instant::now();
        loop {
            call.report(0, None, "waiting for writers to finish");
            let until = Instant::now() + GATE_HELD;
            if let Some(gate) = self.wait("gate", alone, until, call)?
                && let Some(guard) = self.wait("writers", alone, until, call)?
            {
                return Ok((gate, guard));
            }
            if started.elapsed() >= patience {
                let seconds = patience.as_secs();
                return Err(Error::Busy(format!("somebody has been adding documents for {seconds} s")));
            }
            // The others' turn, for as long as this one took.
            let until = Instant::now() + GATE_HELD;
            while Instant::now() < until {
                call.check()?;
                thread::sleep(TRY_AGAIN.1);
            }
        }
    }

    /// A lock that one process at a time may have, waited for.
    pub(crate) fn alone(&self, name: &str, patience: Duration, call: &CallContext) -> Result<Guard> {
        let until = Instant::now() + patience;
        let guard = self.wait(name, FlockOperation::NonBlockingLockExclusive, until, call)?;
        guard.ok_or_else(|| Error::Busy(format!("another process has been busy with this ({name}) for long")))
    }

    /// A lock that one process at a time may have; `None` when another has it.
    pub(crate) fn try_alone(&self, name: &str) -> Result<Option<Guard>> {
        let file = self.open(name)?;
        Ok(self.attempt(&file, FlockOperation::NonBlockingLockExclusive)?.then_some(Guard(file)))
    }

    /// Tries until it works, the call is stopped, or the time has come.
    fn wait(
        &self,
        name: &str,
        operation: FlockOperation,
        until: Instant,
        call: &CallContext,
    ) -> Result<Option<Guard>> {
        let file = self.open(name)?;
        let mut pause = TRY_AGAIN.0;
        loop {
            if self.attempt(&file, operation)? {
                return Ok(Some(Guard(file)));
            }
            call.check()?;
            if Instant::now() >= until {
                return Ok(None);
            }
            thread::sleep(pause);
            pause = (2 * pause).min(TRY_AGAIN.1);
        }
    }

    fn attempt(&self, file: &File, operation: FlockOperation) -> Result<bool> {
        match flock(file, operation) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
            Err(error) => Err(Error::Lock(error.into())),
        }
    }

    fn open(&self, name: &str) -> Result<File> {
        let path = self.folder.join(format!("{name}.lock"));
        let opened = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        opened
            .or_else(|error| match error.kind() {
                // Somebody tidied the folder away.
                io::ErrorKind::NotFound => {
                    DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
                    OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path)
                }
                _ => Err(error),
            })
            .map_err(Error::Lock)
    }
}
