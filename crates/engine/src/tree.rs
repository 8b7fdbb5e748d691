//! The listing of a snapshot: `(path → blob, mode, time)`, and the Merkle root of its tree. `FORMAT.md` has the bytes.

use std::{collections::BTreeMap, ops::Range};

use shelf_base::{Digest, DigestWriter, Moment};
use shelf_blocks::patch::Part;

const FILES_ONLY: &[u8; 8] = b"SHELFTR1";
const WITH_LINKS: &[u8; 8] = b"SHELFTR2";
/// In place of the length of a link's target: the entry is a file.
const NO_LINK: u32 = u32::MAX;
/// Bytes before the first entry.
const HEADER: usize = 16;
/// Bytes of an entry between its path and its link.
const FACTS: usize = 32 + 8 + 4 + 8;

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
    /// Where a symbolic link points. Then `hash` and `size` are of this text, and no blob has it.
    pub link: Option<String>,
}

impl Entry {
    /// A symbolic link.
    pub fn link_to(path: String, target: String, modified_at: Moment) -> Self {
        let (hash, size) = (Digest::of(target.as_bytes()), target.len() as u64);
        Self { path, hash, size, mode: 0o777, modified_at, link: Some(target) }
    }

    /// Whether it is a symbolic link.
    pub const fn is_link(&self) -> bool {
        self.link.is_some()
    }
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

    /// The files; symbolic links left out.
    pub fn files(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| !entry.is_link())
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files().map(|entry| entry.size).sum()
    }

    /// Writes the listing.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(16 + self.entries.len() * 120);
        let has_links = self.entries.iter().any(Entry::is_link);
        bytes.extend_from_slice(if has_links { WITH_LINKS } else { FILES_ONLY });
        bytes.extend_from_slice(&(self.entries.len() as u64).to_le_bytes());
        for entry in &self.entries {
            bytes.extend_from_slice(&(entry.path.len() as u32).to_le_bytes());
            bytes.extend_from_slice(entry.path.as_bytes());
            bytes.extend_from_slice(entry.hash.as_bytes());
            bytes.extend_from_slice(&entry.size.to_le_bytes());
            bytes.extend_from_slice(&entry.mode.to_le_bytes());
            bytes.extend_from_slice(&entry.modified_at.nanos().to_le_bytes());
            if has_links {
                let target = entry.link.as_deref();
                let length = target.map_or(NO_LINK, |target| target.len() as u32);
                bytes.extend_from_slice(&length.to_le_bytes());
                bytes.extend_from_slice(target.unwrap_or_default().as_bytes());
            }
        }
        bytes
    }

    /// Reads what [`Listing::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        let mut rest = bytes;
        let magic = take(&mut rest, 8)?;
        let has_links = magic == WITH_LINKS;
        if magic != FILES_ONLY && !has_links {
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
                link: if has_links { read_link(&mut rest)? } else { None },
            });
        }
        if rest.is_empty() { Ok(Self { entries }) } else { Err("it is longer than it says") }
    }

    /// A written listing as parts of an earlier one, and the entries that are not in it. `None` unless both are listings of
    /// one version.
    pub(crate) fn parts(earlier: &[u8], new: &[u8]) -> Option<Vec<Part>> {
        if earlier.get(..8)? != new.get(..8)? {
            return None;
        }
        let mut known = spans(earlier).ok()?.into_iter().peekable();
        let mut parts = vec![Part::New(0..HEADER)];
        for (path, span) in spans(new).ok()? {
            while known.next_if(|(earlier, _)| *earlier < path).is_some() {}
            let same = known.next_if(|(_, found)| earlier[found.clone()] == new[span.clone()]);
            match (parts.last_mut(), same) {
                (Some(Part::Kept(last)), Some((_, found))) if last.end == found.start => last.end = found.end,
                (_, Some((_, found))) => parts.push(Part::Kept(found)),
                (Some(Part::New(last)), None) => last.end = span.end,
                (_, None) => parts.push(Part::New(span)),
            }
        }
        Some(parts)
    }

    /// The Merkle root: a folder's hash is over the sorted names, kinds and hashes of what it holds. Times and modes
    /// stay outside, so equal content has an equal root.
    pub fn merkle_root(&self) -> Digest {
        let mut root = Folder::default();
        for entry in &self.entries {
            root.insert(&entry.path, (entry.is_link(), entry.hash));
        }
        root.hash()
    }
}

#[derive(Default)]
struct Folder {
    /// Files and symbolic links.
    files: BTreeMap<String, (bool, Digest)>,
    folders: BTreeMap<String, Folder>,
}

impl Folder {
    fn insert(&mut self, path: &str, file: (bool, Digest)) {
        match path.split_once('/') {
            Some((folder, rest)) => self.folders.entry(folder.to_owned()).or_default().insert(rest, file),
            None => {
                self.files.insert(path.to_owned(), file);
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
        for (name, (is_link, hash)) in &self.files {
            line(if *is_link { b"l" } else { b"f" }, name, hash);
        }
        for (name, folder) in &self.folders {
            line(b"d", name, &folder.hash());
        }
        writer.finish()
    }
}

/// The path of each entry of a written listing, and its place in the bytes.
fn spans(bytes: &[u8]) -> Result<Vec<(&str, Range<usize>)>, &'static str> {
    let mut rest = bytes;
    let has_links = take(&mut rest, 8)? == WITH_LINKS;
    let count = u64::from_le_bytes(array(&mut rest)?);
    let mut spans = Vec::new();
    for _ in 0..count {
        let start = bytes.len() - rest.len();
        let length = u32::from_le_bytes(array(&mut rest)?) as usize;
        let path = std::str::from_utf8(take(&mut rest, length)?).map_err(|_| "a path is no text")?;
        take(&mut rest, FACTS)?;
        if has_links {
            read_link(&mut rest)?;
        }
        spans.push((path, start..bytes.len() - rest.len()));
    }
    Ok(spans)
}

fn read_link(rest: &mut &[u8]) -> Result<Option<String>, &'static str> {
    let length = u32::from_le_bytes(array(rest)?);
    if length == NO_LINK {
        return Ok(None);
    }
    let target = std::str::from_utf8(take(rest, length as usize)?).map_err(|_| "a link leads to no text")?;
    Ok(Some(target.to_owned()))
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], &'static str> {
    let (taken, after) = rest.split_at_checked(length).ok_or("it ends too early")?;
    *rest = after;
    Ok(taken)
}

fn array<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], &'static str> {
    take(rest, N)?.try_into().map_err(|_| "it ends too early")
}
