//! Unpacking a ZIP file before it is imported. Its names come from a stranger: one that leads outside, or is a link, is
//! refused with the whole file.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Component, Path, PathBuf},
};

use shelf_base::CallContext;

use super::{Answer, BookError};
use crate::{Error, Result};

/// Bytes that a ZIP file may unpack to, and files in it.
const MOST_BYTES: u64 = 16 << 30;
const MOST_FILES: usize = 200_000;

/// A folder with what was in a ZIP file; it is removed when this is dropped.
pub(super) struct Unpacked(PathBuf);

impl Unpacked {
    pub(super) fn folder(&self) -> &Path {
        &self.0
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Unpacks a ZIP file into a new folder below `room`.
pub(super) fn unpack(archive: &Path, room: &Path, call: &CallContext) -> Answer<Unpacked> {
    let shown = archive.display().to_string();
    let engine = |error: Error| BookError::Engine { path: shown.clone(), error };
    let damaged = |error: zip::result::ZipError| BookError::Validation {
        path: shown.clone(),
        message: format!("the file is not a ZIP archive that can be read: {error}"),
    };
    let file = File::open(archive).map_err(|error| engine(Error::reading(&shown, error)))?;
    let mut archive = zip::ZipArchive::new(io::BufReader::new(file)).map_err(damaged)?;
    if archive.len() > MOST_FILES {
        let message = format!("the archive has {} files; at most {MOST_FILES} are allowed", archive.len());
        return Err(BookError::Validation { path: shown, message });
    }
    let random = crate::library::random().map_err(engine)?;
    let unpacked = Unpacked(room.join(format!("import-{}", shelf_base::hex::encode(&random[..8]))));
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(unpacked.folder());
    made.map_err(|error| engine(Error::writing("uploads", error)))?;
    let mut left = MOST_BYTES;
    for number in 0..archive.len() {
        call.check().map_err(|stopped| engine(stopped.into()))?;
        let mut entry = archive.by_index(number).map_err(damaged)?;
        if entry.is_dir() {
            continue;
        }
        let name = entry.name().map_err(damaged)?.into_owned();
        if !is_safe(&name) || entry.is_symlink() {
            let shown: String = name.chars().filter(|letter| !letter.is_control()).take(255).collect();
            let message = format!("Invalid path: '{shown}' in the archive leads outside it or is a link");
            return Err(BookError::InvalidPath { path: shown, message });
        }
        left = write(&mut entry, &unpacked.folder().join(&name), left).map_err(engine)?;
        if left == 0 {
            let message = format!("the archive unpacks to more than {} GiB", MOST_BYTES >> 30);
            return Err(BookError::Validation { path: shown, message });
        }
    }
    Ok(unpacked)
}

/// Whether a name stays below the folder that it is unpacked into.
fn is_safe(name: &str) -> bool {
    !name.is_empty()
        && !name.contains(['\\', '\0'])
        && Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
}

/// Writes a file; how many bytes may still be written.
fn write(entry: &mut impl Read, target: &Path, left: u64) -> Result<u64> {
    let failed = |error| Error::writing("uploads", error);
    if let Some(parent) = target.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(failed)?;
    }
    let mut options = OpenOptions::new();
    let mut output = options.write(true).create_new(true).mode(0o600).open(target).map_err(failed)?;
    let written = io::copy(&mut entry.take(left), &mut output).map_err(failed)?;
    Ok(left - written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_outside_are_not_safe() {
        for name in ["../x", "a/../../x", "/etc/passwd", "..\\x", "a\0b", "", "C:\\x"] {
            assert!(!is_safe(name), "{name:?}");
        }
        assert!(is_safe("lessons/größe 1.md"));
    }
}
