//! A download on its way: a file beside the library that a later attempt takes up.
//!
//! `downloads/<key>.part` holds the bytes so far and `downloads/<key>.json` what the server said of them; the key is
//! made of account and address, so that nobody takes up what somebody else began. Whoever downloads holds a lock on the
//! file; a second download of the same address meanwhile gets a file of its own. Both may be deleted at any time.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Seek, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
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

/// What the server said, by which it knows again what it sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    /// A strong entity tag, or a date.
    pub validator: Option<String>,
}

/// A file that fills.
pub(super) struct Partial {
    file: File,
    path: PathBuf,
    mark_path: PathBuf,
    length: u64,
}

impl Partial {
    /// The file for an address, with what an earlier attempt left in it.
    pub(super) fn open(folder: &Path, account: AccountId, url: &Url) -> Result<Self> {
        let failed = |error| Error::File {
            action: "cannot make a file for the download",
            path: "downloads".into(),
            source: error,
        };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        tidy(folder);
        let key = Digest::of(format!("{account}\n{url}").as_bytes()).to_string();
        let key = &key[..32];
        let path = folder.join(format!("{key}.part"));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(&path).map_err(failed)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            // Somebody is at it.
            let own = format!("{key}-{}-{:08x}.part", std::process::id(), fastrand());
            let path = folder.join(own);
            let file = options.create_new(true).open(&path).map_err(failed)?;
            return Ok(Self { file, mark_path: path.with_extension("json"), path, length: 0 });
        }
        let length = file.seek(io::SeekFrom::End(0)).map_err(failed)?;
        Ok(Self { file, mark_path: path.with_extension("json"), path, length })
    }

    pub(super) const fn length(&self) -> u64 {
        self.length
    }

    /// What the server said of the bytes that are there; `None` when they are of no use.
    pub(super) fn mark(&self) -> Option<Mark> {
        let text = fs::read(&self.mark_path).ok().filter(|_| self.length > 0)?;
        serde_json::from_slice(&text).ok()
    }

    /// Begins anew, with what the server says now.
    pub(super) fn begin(&mut self, mark: &Mark) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.length = 0;
        fs::write(&self.mark_path, serde_json::to_vec(mark)?)
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// All of it, from the beginning.
    pub(super) fn reader(&mut self) -> Result<File> {
        let failed = |error| Error::reading("the download", error);
        self.file.rewind().map_err(failed)?;
        self.file.try_clone().map_err(failed)
    }

    /// Deletes it: it was stored, or is of no use.
    pub(super) fn remove(&self) {
        let _ = fs::remove_file(&self.mark_path);
        let _ = fs::remove_file(&self.path);
    }
}

fn fastrand() -> u32 {
    let mut bytes = [0; 4];
    let _ = getrandom::fill(&mut bytes);
    u32::from_le_bytes(bytes)
}

/// Deletes what nobody took up.
fn tidy(folder: &Path) {
    let old = |path: &Path| {
        let changed = fs::metadata(path).and_then(|facts| facts.modified());
        changed.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age > KEPT))
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if old(&entry.path()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
