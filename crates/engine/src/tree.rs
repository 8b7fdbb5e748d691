//! The listing of a snapshot: `(path → blob, mode, time)`, and the Merkle root of its tree. `FORMAT.md` has the bytes.

use std::collections::BTreeMap;

use shelf_base::{Digest, DigestWriter, Moment};

const MAGIC: &[u8; 8] = b"SHELFTR1";

/// One file of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Path relative to the snapshot's root.
    pub path: String,
    /// Content.
    pub hash: Digest,
    /// Length.
    pub size: u64,
    /// Permission bits; 0 when unknown.
    pub mode: u32,
    /// The file's own time.
    pub modified_at: Moment,
}

/// All files of a snapshot, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Sorted by path; a path stands once.
    pub entries: Vec<Entry>,
}

impl Listing {
    /// Sorts the entries; of two with one path the later wins.
    pub fn new(entries: impl IntoIterator<Item = Entry>) -> Self {
        let by_path: BTreeMap<String, Entry> =
            entries.into_iter().map(|entry| (entry.path.clone(), entry)).collect();
        Self { entries: by_path.into_values().collect() }
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.size).sum()
    }

    /// Writes the listing.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(16 + self.entries.len() * 120);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&(self.entries.len() as u64).to_le_bytes());
        for entry in &self.entries {
            bytes.extend_from_slice(&(entry.path.len() as u32).to_le_bytes());
            bytes.extend_from_slice(entry.path.as_bytes());
            bytes.extend_from_slice(entry.hash.as_bytes());
            bytes.extend_from_slice(&entry.size.to_le_bytes());
            bytes.extend_from_slice(&entry.mode.to_le_bytes());
            bytes.extend_from_slice(&entry.modified_at.nanos().to_le_bytes());
        }
        bytes
    }

    /// Reads what [`Listing::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        let mut rest = bytes;
        if take(&mut rest, 8)? != MAGIC {
            return Err("it is of no known version");
        }
        let count = u64::from_le_bytes(array(&mut rest)?);
        let mut entries = Vec::new();
        for _ in 0..count {
            let length = u32::from_le_bytes(array(&mut rest)?) as usize;
            let path =
                std::str::from_utf8(take(&mut rest, length)?).map_err(|_| "a path is no text")?.to_owned();
            entries.push(Entry {
                path,
                hash: Digest::new(array(&mut rest)?),
                size: u64::from_le_bytes(array(&mut rest)?),
                mode: u32::from_le_bytes(array(&mut rest)?),
                modified_at: Moment::from_nanos(i64::from_le_bytes(array(&mut rest)?)),
            });
        }
        if rest.is_empty() { Ok(Self { entries }) } else { Err("it is longer than it says") }
    }

    /// The Merkle root: a folder's hash is over the sorted names, kinds and hashes of what it holds. Times and modes
    /// stay outside, so equal content has an equal root.
    pub fn merkle_root(&self) -> Digest {
        let mut root = Folder::default();
        for entry in &self.entries {
            root.insert(&entry.path, entry.hash);
        }
        root.hash()
    }
}

#[derive(Default)]
struct Folder {
    files: BTreeMap<String, Digest>,
    folders: BTreeMap<String, Folder>,
}

impl Folder {
    fn insert(&mut self, path: &str, hash: Digest) {
        match path.split_once('/') {
            Some((folder, rest)) => self.folders.entry(folder.to_owned()).or_default().insert(rest, hash),
            None => {
                self.files.insert(path.to_owned(), hash);
            }
        }
    }

    fn hash(&self) -> Digest {
        let mut writer = DigestWriter::new();
        writer.update(b"shelf-tree-1\0");
        let mut line = |kind: &[u8], name: &str, hash: &Digest| {
            writer.update(kind);
            writer.update(&(name.len() as u32).to_le_bytes());
            writer.update(name.as_bytes());
            writer.update(hash.as_bytes());
        };
        for (name, hash) in &self.files {
            line(b"f", name, hash);
        }
        for (name, folder) in &self.folders {
            line(b"d", name, &folder.hash());
        }
        writer.finish()
    }
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], &'static str> {
    let (taken, after) = rest.split_at_checked(length).ok_or("it ends too early")?;
    *rest = after;
    Ok(taken)
}

fn array<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], &'static str> {
    take(rest, N)?.try_into().map_err(|_| "it ends too early")
}
