//! The manifest: a small file that lists the segments of the index and records how far the index has followed the
//! journal. It is replaced atomically, so a reader sees the index either before or after a change.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::Path,
};

use serde::{Deserialize, Serialize};

use crate::{Error, Followed, Result};

const NAME: &str = "manifest";
/// The version of the index as a whole; an older index is rebuilt. Version 2 indexes large documents in pieces; version
/// 1 ignored everything after their first 32 MiB; version 4 adds facts and mentions; version 5
/// counts titles and headings as words of passages, and marks deep vectors.
pub(crate) const FORMAT: u32 = 5;

/// The content of the manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub format: u32,
    /// Incremented with every change.
    pub generation: u64,
    /// The last journal record that the segments cover.
    pub sequence: u64,
    /// The journal's own mark of that record, to detect an index that followed a different journal.
    pub mark: String,
    pub segments: Vec<SegmentNote>,
}

/// One segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SegmentNote {
    pub name: String,
    pub length: u64,
    pub documents: u32,
    pub text_bytes: u64,
    /// The model that made its vectors.
    pub model: String,
    /// The version of the readers that made its facts.
    #[serde(default)]
    pub reader: u32,
    /// Rows of documents that were replaced or deleted, in ascending order.
    pub dead: Vec<u32>,
    /// The file's metadata when its bytes were known to be correct. If it has changed, the file is verified against its
    /// hashes before use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<FileStamp>,
}

/// Length, mtime and ctime of a file (times in seconds and nanoseconds): any write changes at least one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileStamp(u64, i64, i64, i64, i64);

impl FileStamp {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let facts = fs::metadata(path)?;
        Ok(Self(facts.len(), facts.mtime(), facts.mtime_nsec(), facts.ctime(), facts.ctime_nsec()))
    }
}

/// Identifies a state of the manifest file without reading it: inode, mtime and length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp(u64, i64, i64, u64);

impl Manifest {
    /// How far the segments have followed the journal.
    pub(crate) fn followed(&self) -> Followed {
        Followed { sequence: self.sequence, mark: self.mark.clone() }
    }

    /// The current stamp of the file.
    pub(crate) fn stamp(folder: &Path) -> Result<Stamp> {
        match fs::metadata(folder.join(NAME)) {
            Ok(facts) => Ok(Stamp(facts.ino(), facts.mtime(), facts.mtime_nsec(), facts.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Stamp::default()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the manifest; a missing manifest, or one of an older format, means an empty index.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let text = match fs::read_to_string(folder.join(NAME)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(damaged("it is not UTF-8 text"));
            }
            Err(error) => return Err(error.into()),
        };
        let (hash, body) = text.split_once('\n').ok_or_else(|| damaged("it is incomplete"))?;
        if blake3::hash(body.as_bytes()).to_hex().as_str() != hash {
            return Err(damaged("it does not match its hash"));
        }
        let manifest: Self = serde_json::from_str(body).map_err(|error| damaged(&error.to_string()))?;
        match manifest.format {
            FORMAT => Ok(manifest),
            newer if newer > FORMAT => Err(Error::TooNew { found: newer, known: FORMAT }),
            _ => Ok(Self::default()),
        }
    }

    /// Replaces the manifest durably.
    pub(crate) fn write(&mut self, folder: &Path) -> Result<()> {
        self.format = FORMAT;
        self.generation += 1;
        let body = serde_json::to_string(self).map_err(io::Error::other)?;
        let mut file = tempfile::Builder::new().prefix("manifest-").tempfile_in(folder)?;
        writeln!(file, "{}", blake3::hash(body.as_bytes()).to_hex())?;
        file.write_all(body.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(folder.join(NAME)).map_err(|error| error.error)?;
        File::open(folder)?.sync_all()?;
        Ok(())
    }

    /// Removes the manifest, which makes the index empty.
    pub(crate) fn remove(folder: &Path) -> io::Result<()> {
        match fs::remove_file(folder.join(NAME)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn damaged(what: &str) -> Error {
    Error::damaged(NAME, what)
}
