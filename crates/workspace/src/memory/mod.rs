//! The memory files of a workspace: lines that are appended, never torn, never rewritten, and remembered in a side chain.

mod append;
mod chain;
mod check;
mod entry;
mod query;
mod spelling;
mod stamp;

use std::{
    fs::File,
    io::{ErrorKind, Read},
    os::fd::AsFd,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use cap_std::fs::Dir;
pub use check::{MemoryFault, MemoryFinding, MemoryReport};
pub use query::{MemoryLine, MemoryMatches, MemoryQuery};
use rustix::{
    fs::{FlockOperation, Mode, OFlags, flock, openat},
    io::Errno,
};
use serde_json::{Map, Value};
use shelf_base::{Digest, Moment};

use crate::{Workspace, WorkspaceError};

/// Where the files are.
pub const FOLDER: &str = ".claude/memory";

/// A file that may be appended to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryFile {
    /// Progress events.
    Progress,
    /// Decision records.
    Decisions,
}

impl MemoryFile {
    /// Both, in the contract's order.
    pub const ALL: [Self; 2] = [Self::Progress, Self::Decisions];

    /// The file that a name means.
    pub fn named(name: &str) -> Result<Self, WorkspaceError> {
        let refused = |why| Err(WorkspaceError::WriteNotAllowed { file: name.to_owned(), why });
        match name {
            "progress_log.jsonl" => Ok(Self::Progress),
            "decisions.jsonl" => Ok(Self::Decisions),
            "learner_profile.json" => refused("it must be edited manually"),
            "best_practices.md" => refused(
                "use the add-best-practice command, or the tool add_best_practice where it is offered",
            ),
            _ => refused("only progress_log.jsonl and decisions.jsonl take entries"),
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Progress => "progress_log.jsonl",
            Self::Decisions => "decisions.jsonl",
        }
    }
}

/// What an append came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Valid entries in the file now.
    pub entry_count: u64,
    /// Lines that are no entries; they stay as they are.
    pub invalid_lines: u64,
    /// Whether the entry was there already, under the same key.
    pub was_there: bool,
}

impl Workspace {
    /// Appends an entry to a memory file, at a moment. `entry` is the JSON text of an object; its numbers are written as
    /// they are spelled there. `chains` is the folder of the side chains, outside the workspace.
    pub fn remember(
        &self,
        file: MemoryFile,
        entry: &str,
        key: Option<&str>,
        (chains, at): (&Path, Moment),
    ) -> Result<Appended, WorkspaceError> {
        let line = entry::line_of(entry)?;
        if let Some(key) = key {
            entry::check_key(key)?;
        }
        let chain = self.chain_path(chains, file);
        self.append(file, &append::Order { line: &line, key, at, chain: &chain })
    }

    /// The side chain of a memory file, named by the workspace's canonical path.
    fn chain_path(&self, chains: &Path, file: MemoryFile) -> PathBuf {
        let root = Digest::of(self.root.as_os_str().as_encoded_bytes());
        chains.join(format!("{root}-{}.chain", file.name()))
    }

    /// The folder of memory, opened beneath the workspace; made when `make` is set.
    pub(super) fn memory_folder(&self, make: bool) -> Result<Dir, WorkspaceError> {
        let made = if make { self.folder.create_dir_all(FOLDER) } else { Ok(()) };
        let opened = made.and_then(|()| self.folder.open_dir(FOLDER));
        opened.map_err(|error| match error.kind() {
            ErrorKind::NotFound => error.into(),
            _ => told(
                &error,
                &format!("{FOLDER} must be a plain folder of the workspace; it is something else, or a link that leads out"),
            ),
        })
    }

    /// Makes the names on the way to a new memory file durable; its bytes alone would be lost with their name.
    pub(super) fn sync_memory_folders(&self) -> std::io::Result<()> {
        for folder in [".", ".claude", FOLDER] {
            // A handle that reads is needed; a folder that is a link was there before, name and all.
            if let Ok(open) = self.open_without_links(Path::new(folder)) {
                File::from(open).sync_all()?;
            }
        }
        Ok(())
    }

    /// The bytes of a memory file, read while nobody appends; none when it is not there.
    fn memory_bytes(&self, file: MemoryFile) -> Result<Vec<u8>, WorkspaceError> {
        let missing = |error: &WorkspaceError| matches!(error, WorkspaceError::Io(error) if error.kind() == ErrorKind::NotFound);
        let opened = self
            .memory_folder(false)
            .and_then(|folder| open_locked(&folder, file.name(), OFlags::RDONLY, FlockOperation::LockShared));
        match opened {
            Ok(mut open) => read_all(&mut open),
            Err(error) if missing(&error) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

/// How long a lock is waited for.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
/// How often it is tried: an append holds it for a few milliseconds.
const LOCK_PAUSE: Duration = Duration::from_millis(2);

/// An error with what it was about.
fn told(error: &std::io::Error, what: &str) -> WorkspaceError {
    std::io::Error::new(error.kind(), what.to_owned()).into()
}

/// Opens a regular file of the memory folder by its very name, without following a link, and locks it. A file that was
/// replaced while the lock was waited for is opened anew: a line in the old one would be lost.
pub(super) fn open_locked(
    folder: &Dir,
    name: &str,
    flags: OFlags,
    lock: FlockOperation,
) -> Result<File, WorkspaceError> {
    let refused = |why| WorkspaceError::WriteNotAllowed { file: name.to_owned(), why };
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    loop {
        let open = match openat(folder.as_fd(), name, flags, Mode::from_raw_mode(0o666)) {
            Ok(open) => File::from(open),
            Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => return Err(refused("it is not a regular file")),
            Err(error) => return Err(std::io::Error::from(error).into()),
        };
        if !open.metadata()?.is_file() {
            return Err(refused("it is not a regular file"));
        }
        lock_file(&open, lock).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => WorkspaceError::Locked,
            _ => error.into(),
        })?;
        if is_still(folder, name, &open)? {
            return Ok(open);
        }
    }
}

/// Waits for a lock, but not for ever: any program may hold one, and a call that waits holds a worker of the server.
fn lock_file(file: &File, lock: FlockOperation) -> std::io::Result<()> {
    let lock = match lock {
        FlockOperation::LockShared => FlockOperation::NonBlockingLockShared,
        FlockOperation::LockExclusive => FlockOperation::NonBlockingLockExclusive,
        other => other,
    };
    let started = Instant::now();
    loop {
        match flock(file, lock) {
            Err(Errno::INTR) => {}
            Err(Errno::WOULDBLOCK) if started.elapsed() < LOCK_PATIENCE => std::thread::sleep(LOCK_PAUSE),
            other => return Ok(other?),
        }
    }
}

/// Whether the name still leads to the open file.
fn is_still(folder: &Dir, name: &str, open: &File) -> std::io::Result<bool> {
    use cap_std::fs::MetadataExt as _;
    use std::os::unix::fs::MetadataExt as _;
    let held = open.metadata()?;
    Ok(folder
        .symlink_metadata(name)
        .is_ok_and(|found| found.ino() == held.ino() && found.dev() == held.dev()))
}

pub(super) fn read_all(file: &mut File) -> Result<Vec<u8>, WorkspaceError> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The lines of a file that are not blank, each with its number from 1 and where it begins.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (u64, usize, &[u8])> {
    let mut start = 0;
    (1..)
        .zip(bytes.split(|byte| *byte == b'\n'))
        .map(move |(number, line)| {
            let at = start;
            start += line.len() + 1;
            (number, at, line)
        })
        .filter(|(_, _, line)| !line.trim_ascii().is_empty())
}

/// The entry of a line, if it is one.
fn parse(line: &[u8]) -> Option<Map<String, Value>> {
    serde_json::from_slice(line).ok()
}

/// Entries and other lines of a file.
fn count(bytes: &[u8]) -> (u64, u64) {
    let all = lines(bytes).count() as u64;
    let valid = lines(bytes).filter(|(_, _, line)| parse(line).is_some()).count() as u64;
    (valid, all - valid)
}

/// Makes the folder of side chains, for the owner only.
fn make_folder(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    match path.parent() {
        Some(folder) => std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder),
        None => Ok(()),
    }
}
