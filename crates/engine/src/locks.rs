//! Locks between the processes that use a library.
//!
//! Writers hold `writers` shared from the moment they rely on a stored block until their transaction has committed;
//! garbage collection holds it exclusively while it deletes. Everybody passes through `gate` first, so that a waiting
//! garbage collection is not overtaken by new writers forever; it holds the gate for a second at a time, so that a long
//! add does not make all other writers wait with it.
//!
//! Every wait has a deadline and can be cancelled: locks are tried again and again, since the operating system's own
//! waiting can be neither bounded nor interrupted.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use shelf_base::{CallContext, Coordination, Held, LockMode};
use shelf_catalog::Catalog;

use crate::{Error, ObjectsPlace, Result, retired::RetiredPacks, storage};

/// How long a writer waits for garbage collection at most.
const WRITERS_WAIT: Duration = Duration::from_secs(120);
/// How long garbage collection keeps new writers out while it waits for the others to finish.
const GATE_HELD: Duration = Duration::from_secs(1);
/// How often a lock is tried: at first nearly at once, then more and more seldom.
const TRY_AGAIN: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(20));

/// The lock that allows to write the search index.
pub(crate) const INDEX: &str = "index";

/// Locks as files of a data directory (`flock`). They are released with their file handle, so a killed process leaves
/// none behind.
pub(crate) struct FolderLocks {
    folder: PathBuf,
}

impl FolderLocks {
    pub(crate) fn new(library: &Path) -> Self {
        Self { folder: library.to_owned() }
    }

    fn open(&self, name: &str) -> io::Result<File> {
        let path = match name {
            INDEX => self.folder.join("index/lease.lock"),
            other => self.folder.join("locks").join(format!("{other}.lock")),
        };
        let open = || OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        open().or_else(|error| match (error.kind(), path.parent()) {
            (io::ErrorKind::NotFound, Some(folder)) => {
                DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
                open()
            }
            _ => Err(error),
        })
    }
}

impl Coordination for FolderLocks {
    fn attempt(&self, name: &str, mode: LockMode) -> io::Result<Option<Held>> {
        let file = self.open(name)?;
        let operation = match mode {
            LockMode::Shared => FlockOperation::NonBlockingLockShared,
            LockMode::Exclusive => FlockOperation::NonBlockingLockExclusive,
        };
        match flock(&file, operation) {
            Ok(()) => Ok(Some(Held::new(file))),
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// The locks of one library.
#[derive(Clone)]
pub(crate) struct Locks {
    coordination: Arc<dyn Coordination>,
    /// The data directory, and where the packs were when the library was opened.
    opened: Option<Arc<(PathBuf, ObjectsPlace)>>,
    /// What writers must know of packs that are going to be deleted, and where it is kept.
    retired: Option<(RetiredPacks, Arc<dyn Catalog>)>,
}

impl Locks {
    pub(crate) fn new(coordination: Arc<dyn Coordination>) -> Self {
        Self { coordination, opened: None, retired: None }
    }

    /// The same locks, for a library of several machines: writers look at what has been marked for deletion.
    pub(crate) fn heeding(mut self, retired: RetiredPacks, catalog: Arc<dyn Catalog>) -> Self {
        self.retired = Some((retired, catalog));
        self
    }

    /// Looks at what has been marked for deletion.
    pub(crate) fn heed(&self) -> Result<()> {
        let Some((retired, catalog)) = &self.retired else { return Ok(()) };
        retired.refresh(catalog.standing()?.retired);
        Ok(())
    }

    /// The same locks, for a library whose packs may be moved while it is open: writers notice it.
    pub(crate) fn watching(mut self, folder: &Path, place: ObjectsPlace) -> Self {
        self.opened = Some(Arc::new((folder.to_owned(), place)));
        self
    }

    /// Refuses to write to packs that nobody looks at any more, and looks at what has been marked for deletion. Machines
    /// that share a catalog find both there; processes of one machine find the place in its folder.
    fn must_stand(&self) -> Result<()> {
        let mut stored = None;
        if let Some((retired, catalog)) = &self.retired {
            let standing = catalog.standing()?;
            retired.refresh(standing.retired);
            stored = standing.objects;
        }
        let Some((folder, opened)) = self.opened.as_deref() else { return Ok(()) };
        let now = match stored {
            Some(stored) => stored,
            None => storage::noted(folder)?.unwrap_or(ObjectsPlace::Folder).to_string(),
        };
        if now == opened.to_string() {
            return Ok(());
        }
        Err(Error::Unavailable {
            what: format!("nothing was written: the packs of this library have been moved to {now}"),
            hint: "restart this program, with library.objects empty or set to that place; then it finds them there"
                .into(),
        })
    }

    /// Waits until no garbage collection is deleting.
    pub(crate) fn write(&self, call: &CallContext) -> Result<Held> {
        let until = Instant::now() + WRITERS_WAIT;
        let busy = || Error::Busy("garbage collection has kept writers waiting for two minutes".into());
        let gate = self.wait("gate", LockMode::Shared, until, call)?.ok_or_else(busy)?;
        let guard = self.wait("writers", LockMode::Shared, until, call)?.ok_or_else(busy)?;
        drop(gate);
        self.must_stand()?;
        Ok(guard)
    }

    /// Waits until nobody writes, and keeps new writers out meanwhile.
    pub(crate) fn exclusive(&self, patience: Duration, call: &CallContext) -> Result<(Held, Held)> {
        let alone = LockMode::Exclusive;
        let started = Instant::now();
        loop {
            call.report(0, None, "waiting for writers to finish");
            let until = Instant::now() + GATE_HELD;
            if let Some(gate) = self.wait("gate", alone, until, call)?
                && let Some(guard) = self.wait("writers", alone, until, call)?
            {
                self.must_stand()?;
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
    pub(crate) fn alone(&self, name: &str, patience: Duration, call: &CallContext) -> Result<Held> {
        let until = Instant::now() + patience;
        let guard = self.wait(name, LockMode::Exclusive, until, call)?;
        guard.ok_or_else(|| Error::Busy(format!("another process has been busy with this ({name}) for long")))
    }

    /// A lock that one process at a time may hold; `None` when another holds it.
    pub(crate) fn try_alone(&self, name: &str) -> Result<Option<Held>> {
        self.attempt(name, LockMode::Exclusive)
    }

    /// Tries until it works, the call is stopped, or the deadline has passed.
    fn wait(&self, name: &str, mode: LockMode, until: Instant, call: &CallContext) -> Result<Option<Held>> {
        let mut pause = TRY_AGAIN.0;
        loop {
            if let Some(held) = self.attempt(name, mode)? {
                return Ok(Some(held));
            }
            call.check()?;
            if Instant::now() >= until || !call.may_wait() {
                return Ok(None);
            }
            thread::sleep(pause);
            pause = (2 * pause).min(TRY_AGAIN.1);
        }
    }

    fn attempt(&self, name: &str, mode: LockMode) -> Result<Option<Held>> {
        self.coordination.attempt(name, mode).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Error::Catalog(shelf_catalog::Error::ReadOnly)
            }
            // Locks that lie in the catalog's database fail as the catalog does.
            _ => match error.downcast::<shelf_catalog::Error>() {
                Ok(error) => Error::Catalog(error),
                Err(error) => Error::Lock(error),
            },
        })
    }
}
