//! A download on its way: a file beside the library that a later attempt takes up.
//!
//! `downloads/<key>.part` holds the bytes so far and `downloads/<key>.json` what the server said of them; the key is
//! made of account and address, so that nobody takes up what somebody else began. Whoever downloads holds a lock on the
//! file; a second download of the same address meanwhile gets a file of its own. Both may be deleted at any time.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Seek, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use shelf_base::{Digest, ids::AccountId};
use url::Url;

use crate::{Error, Result};

/// What was begun and not taken up for so long is deleted.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3_600);

/// By what a server knows again what it sent, and we know that it does. Only with all of this are two answers parts of
/// one content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// A strong entity tag.
    pub tag: String,
    /// Where it came from in the end.
    pub url: String,
    /// How long the whole is.
    pub total: u64,
    /// Since when the machine runs: after a power cut the end of a file may not be what was written.
    boot: String,
}

impl Mark {
    pub(crate) fn new(tag: String, url: String, total: u64) -> Self {
        Self { tag, url, total, boot: boot() }
    }
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// A file that fills.
pub struct Partial {
    file: File,
    path: PathBuf,
    length: u64,
    mark: Option<Mark>,
}

impl Partial {
    /// The file for an address, with what an earlier attempt left in it.
    pub fn open(folder: &Path, account: AccountId, url: &Url) -> Result<Self> {
        Self::try_open(folder, account, url).map_err(|error| Error::File {
            action: "cannot make a file for the download",
            path: "downloads".into(),
            source: error,
        })
    }

    fn try_open(folder: &Path, account: AccountId, url: &Url) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        clear(folder, |age| age > KEPT);
        let key = Digest::of(format!("{account}\n{url}").as_bytes()).to_string();
        let path = folder.join(format!("{}.part", &key[..32]));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(&path)?;
        let is_ours = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() && is_at(&file, &path);
        if !is_ours {
            // Somebody is at it, or just deleted it.
            let path = folder.join(format!("{}-{}-{:08x}.part", &key[..32], std::process::id(), random()));
            let file = options.create_new(true).open(&path)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            return Ok(Self { file, path, length: 0, mark: None });
        }
        let length = file.seek(io::SeekFrom::End(0))?;
        let mark = fs::read(path.with_extension("json")).ok();
        let mark: Option<Mark> = mark.and_then(|text| serde_json::from_slice(&text).ok());
        let mark = mark.filter(|mark: &Mark| length > 0 && length < mark.total && mark.boot == boot());
        Ok(Self { file, path, length, mark })
    }

    /// Bytes so far.
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// What the bytes that are there are a part of; `None` when they are of no use.
    pub(crate) fn mark(&self) -> Option<&Mark> {
        self.mark.as_ref().filter(|_| self.length > 0)
    }

    /// Begins anew, with what the server says now.
    pub(crate) fn begin(&mut self, mark: Option<Mark>) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.length = 0;
        self.mark = mark;
        let path = self.path.with_extension("json");
        let _ = fs::remove_file(&path);
        if let Some(mark) = &self.mark {
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o600).open(path)?;
            file.write_all(&serde_json::to_vec(mark)?)?;
        }
        Ok(())
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Bytes that are free beside it; `None` when nobody tells.
    pub(crate) fn free(&self) -> Option<u64> {
        let room = rustix::fs::fstatvfs(&self.file).ok()?;
        room.f_bavail.checked_mul(room.f_frsize)
    }

    /// All of it, from the beginning.
    pub fn reader(&mut self) -> Result<File> {
        let failed = |error| Error::reading("the download", error);
        self.file.rewind().map_err(failed)?;
        self.file.try_clone().map_err(failed)
    }

    /// Deletes it: it was stored, or is of no use.
    pub fn remove(&self) {
        // Another may have a new file there, when somebody deleted this one.
        if is_at(&self.file, &self.path) {
            let _ = fs::remove_file(self.path.with_extension("json"));
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether the path still leads to the open file.
fn is_at(file: &File, path: &Path) -> bool {
    let open = file.metadata().map(|facts| (facts.dev(), facts.ino()));
    let there = fs::metadata(path).map(|facts| (facts.dev(), facts.ino()));
    matches!((open, there), (Ok(open), Ok(there)) if open == there)
}

fn random() -> u32 {
    let mut bytes = [0; 4];
    let _ = getrandom::fill(&mut bytes);
    u32::from_le_bytes(bytes)
}

/// Deletes what nobody holds and is old enough.
pub fn clear(folder: &Path, is_old: impl Fn(Duration) -> bool) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let changed = fs::metadata(&path).and_then(|facts| facts.modified());
        let age = changed.ok().and_then(|at| SystemTime::now().duration_since(at).ok()).unwrap_or_default();
        let is_part = path.extension().is_some_and(|ending| ending == "part");
        let is_held = is_part
            && File::open(&path)
                .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_err());
        let has_part = !is_part && path.with_extension("part").exists();
        if is_old(age) && !is_held && !has_part {
            let _ = fs::remove_file(&path);
            let _ = fs::remove_file(path.with_extension("json"));
        }
    }
}
