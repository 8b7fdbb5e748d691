//! The manifest: the one small file that says which segments make up the index and how far it has followed the
//! journal. It is replaced whole, so that a reader sees the index before a change or after it.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::Path,
};

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

const NAME: &str = "manifest";
/// The version of the index as a whole. Another one means: build anew. With 2 large documents came in pieces; 1 left out
/// what followed their first 32 MiB.
const FORMAT: u32 = 2;

/// What makes up the index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub format: u32,
    /// Grows with every change.
    pub generation: u64,
    /// The last journal record that the segments cover.
    pub sequence: u64,
    /// The journal's own mark of that record: an index that followed another journal is not believed.
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
    /// The model whose vectors it has.
    pub model: String,
    /// Rows of documents that live no more, in order.
    pub dead: Vec<u32>,
    /// What the file system said of the file when its bytes were known to be right. A file of which it says something
    /// else is compared with its hashes before it is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<FileStamp>,
}

/// Length, and the times of the last change of bytes and of anything: what no write leaves as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileStamp(u64, i64, i64, i64, i64);

impl FileStamp {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let facts = fs::metadata(path)?;
        Ok(Self(facts.len(), facts.mtime(), facts.mtime_nsec(), facts.ctime(), facts.ctime_nsec()))
    }
}

/// Tells one state of the file from another without reading it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp(u64, i64, i64, u64);

impl Manifest {
    /// The stamp of the file as it is now.
    pub(crate) fn stamp(folder: &Path) -> Result<Stamp> {
        match fs::metadata(folder.join(NAME)) {
            Ok(facts) => Ok(Stamp(facts.ino(), facts.mtime(), facts.mtime_nsec(), facts.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Stamp::default()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the manifest; an absent one, or one of an older format, is an empty index.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let text = match fs::read_to_string(folder.join(NAME)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(damaged("it is no text")),
            Err(error) => return Err(error.into()),
        };
        let (hash, body) = text.split_once('\n').ok_or_else(|| damaged("it is torn"))?;
        if blake3::hash(body.as_bytes()).to_hex().as_str() != hash {
            return Err(damaged("it has another hash"));
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

    /// Removes the manifest: from now on there is no index.
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
