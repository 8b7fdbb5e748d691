//! The container for all parts of a segment, as one file or in memory.
//!
//! A segment is written once, sealed, and then only read. Its parts (including tantivy's files) are stored one after
//! the other, each aligned to 64 bytes. The file ends with a table of names, offsets and BLAKE3 hashes and a footer
//! with the hash of that table. Opening reads the footer and the table; a full check hashes every part.

use std::{
    collections::BTreeMap,
    fmt,
    fs::{File, OpenOptions},
    io::{self, BufWriter, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use tantivy::{
    Directory, HasLen,
    directory::{
        FileHandle, FileSlice, OwnedBytes, RamDirectory, WatchCallback, WatchHandle, WritePtr,
        error::{DeleteError, OpenReadError, OpenWriteError},
    },
};

use crate::{Error, Result, pages::MappedFile};

const MAGIC: &[u8; 8] = b"SHELFSEG";
/// The version of segment files.
pub(crate) const VERSION: u32 = 1;
/// Length of the table, its hash, version, magic.
const FOOTER: usize = 8 + 32 + 4 + 8;
const ALIGN: usize = 64;
/// The prefix of tantivy's files in the table.
const WORDS: &str = "words/";

/// The source of a part's bytes while it is being written.
pub(crate) enum Content {
    Bytes(Vec<u8>),
    Shared(OwnedBytes),
    File(PathBuf),
}

/// The parts of a segment that is about to be sealed.
pub(crate) type Parts = BTreeMap<String, Content>;

/// Parts by name, each with its hash if it is on disk.
type Sealed = BTreeMap<String, (FileSlice, Option<[u8; 32]>)>;

/// The parts of a sealed segment.
#[derive(Clone)]
pub(crate) struct Archive {
    name: String,
    parts: Arc<Sealed>,
    /// The whole file, if it is mapped.
    mapped: Option<MappedFile>,
}

impl fmt::Debug for Archive {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Archive").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Archive {
    /// Keeps parts in memory.
    pub(crate) fn in_memory(parts: Parts) -> io::Result<Self> {
        let mut kept = BTreeMap::new();
        for (name, content) in parts {
            let slice = match content {
                Content::Bytes(bytes) => FileSlice::from(bytes),
                Content::Shared(bytes) => FileSlice::new(Arc::new(bytes)),
                Content::File(path) => FileSlice::from(std::fs::read(path)?),
            };
            kept.insert(name, (slice, None));
        }
        Ok(Self { name: "memory".into(), parts: Arc::new(kept), mapped: None })
    }

    /// Writes parts to a file and makes it durable; returns the file's length.
    pub(crate) fn write(path: &Path, parts: &Parts) -> io::Result<u64> {
        let mut file = BufWriter::with_capacity(
            1 << 18,
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?,
        );
        let mut table = Vec::new();
        let mut at = 0_usize;
        for (name, content) in parts {
            let (length, hash) = copy(content, &mut file)?;
            table.extend_from_slice(&(name.len() as u16).to_le_bytes());
            table.extend_from_slice(name.as_bytes());
            table.extend_from_slice(&(at as u64).to_le_bytes());
            table.extend_from_slice(&(length as u64).to_le_bytes());
            table.extend_from_slice(hash.as_bytes());
            let padding = length.next_multiple_of(ALIGN) - length;
            file.write_all(&[0; ALIGN][..padding])?;
            at += length + padding;
        }
        file.write_all(&table)?;
        file.write_all(&(table.len() as u64).to_le_bytes())?;
        file.write_all(blake3::hash(&table).as_bytes())?;
        file.write_all(&VERSION.to_le_bytes())?;
        file.write_all(MAGIC)?;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok((at + table.len() + FOOTER) as u64)
    }

    /// Opens and memory-maps a file in a folder.
    pub(crate) fn open(folder: &Path, name: &str, length: u64) -> Result<Self> {
        let damaged = |what: &str| Error::damaged(name, what);
        let mapped = MappedFile::open(folder, name)?;
        let file = mapped.slice();
        if file.len() as u64 != length || file.len() < FOOTER {
            return Err(damaged("its length is wrong"));
        }
        let footer = file.slice_from_end(FOOTER).read_bytes()?;
        let version = footer[40..44].try_into().map(u32::from_le_bytes).unwrap_or_default();
        if &footer[44..] != MAGIC {
            return Err(damaged("its footer is invalid"));
        }
        // The manifest's format is supported, so a different segment version means damage.
        if version != VERSION {
            return Err(damaged("its version does not match the manifest's format"));
        }
        let table_length = footer[..8].try_into().map(u64::from_le_bytes).unwrap_or_default() as usize;
        let body = file.len() - FOOTER;
        if table_length > body {
            return Err(damaged("its table is longer than the file"));
        }
        let table = file.slice(body - table_length..body).read_bytes()?;
        if blake3::hash(&table).as_bytes()[..] != footer[8..40] {
            return Err(damaged("its table does not match its hash"));
        }
        let parts = read_table(&table, &file, body - table_length)
            .ok_or_else(|| damaged("its table is malformed"))?;
        Ok(Self { name: name.to_owned(), parts: Arc::new(parts), mapped: Some(mapped) })
    }

    /// The name of the file, if there is one.
    pub(crate) fn file_name(&self) -> Option<&str> {
        self.mapped.as_ref().map(|_| self.name.as_str())
    }

    /// The bytes of a part.
    pub(crate) fn part(&self, name: &str) -> Result<OwnedBytes> {
        match self.parts.get(name) {
            Some((slice, _)) => Ok(slice.read_bytes()?),
            None => Err(Error::damaged(&self.name, format!("its part {name} is missing"))),
        }
    }

    /// All parts, to be written again without copying them first.
    pub(crate) fn shared(&self) -> Result<Parts> {
        let part = |(name, (slice, _)): (&String, &(FileSlice, _))| {
            Ok((name.clone(), Content::Shared(slice.read_bytes()?)))
        };
        self.parts.iter().map(part).collect()
    }

    /// Releases the resident pages of the mapped file; they are mapped again when needed.
    pub(crate) fn release_pages(&self) {
        if let Some(mapped) = &self.mapped {
            mapped.release();
        }
    }

    /// The total size in bytes of the parts whose names start with `prefix`.
    pub(crate) fn sizes(&self, prefix: &str) -> u64 {
        self.parts
            .iter()
            .filter(|(name, _)| name.starts_with(prefix))
            .map(|(_, (slice, _))| slice.len() as u64)
            .sum()
    }

    /// Verifies every part against its hash.
    pub(crate) fn verify(&self) -> Result<()> {
        for (name, (slice, hash)) in &*self.parts {
            let Some(hash) = hash else { continue };
            if blake3::hash(&slice.read_bytes()?).as_bytes() != hash {
                return Err(Error::damaged(&self.name, format!("its part {name} does not match its hash")));
            }
        }
        Ok(())
    }

    fn words_part(&self, path: &Path) -> Result<&FileSlice, OpenReadError> {
        let name = format!("{WORDS}{}", path.display());
        self.parts
            .get(&name)
            .map(|(slice, _)| slice)
            .ok_or_else(|| OpenReadError::FileDoesNotExist(path.to_owned()))
    }
}

fn copy(content: &Content, to: &mut impl Write) -> io::Result<(usize, blake3::Hash)> {
    match content {
        Content::Bytes(bytes) => {
            to.write_all(bytes)?;
            Ok((bytes.len(), blake3::hash(bytes)))
        }
        Content::Shared(bytes) => {
            to.write_all(bytes)?;
            Ok((bytes.len(), blake3::hash(bytes)))
        }
        Content::File(path) => {
            let mut file = File::open(path)?;
            let (mut hasher, mut buffer, mut length) = (blake3::Hasher::new(), vec![0; 1 << 18], 0);
            loop {
                let read = file.read(&mut buffer)?;
                if read == 0 {
                    return Ok((length, hasher.finalize()));
                }
                hasher.update(&buffer[..read]);
                to.write_all(&buffer[..read])?;
                length += read;
            }
        }
    }
}

fn read_table(mut table: &[u8], file: &FileSlice, end: usize) -> Option<Sealed> {
    let mut parts = BTreeMap::new();
    while !table.is_empty() {
        let (length, rest) = table.split_first_chunk::<2>()?;
        let (name, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        let (at, rest) = rest.split_first_chunk::<8>()?;
        let (length, rest) = rest.split_first_chunk::<8>()?;
        let (hash, rest) = rest.split_first_chunk::<32>()?;
        table = rest;
        let start = usize::try_from(u64::from_le_bytes(*at)).ok()?;
        let stop = start.checked_add(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        if stop > end {
            return None;
        }
        parts.insert(std::str::from_utf8(name).ok()?.to_owned(), (file.slice(start..stop), Some(*hash)));
    }
    Some(parts)
}

/// Collects tantivy's files from memory.
pub(crate) fn words_from_memory(
    directory: &RamDirectory,
    names: &[PathBuf],
    parts: &mut Parts,
) -> Result<()> {
    for name in names {
        let bytes = directory.open_read(name).map_err(unreadable)?.read_bytes()?;
        parts.insert(format!("{WORDS}{}", name.display()), Content::Shared(bytes));
    }
    Ok(())
}

/// Collects tantivy's files from a folder.
pub(crate) fn words_from_folder(folder: &Path, names: &[PathBuf], parts: &mut Parts) {
    for name in names {
        parts.insert(format!("{WORDS}{}", name.display()), Content::File(folder.join(name)));
    }
}

fn unreadable(error: OpenReadError) -> Error {
    Error::Io(io::Error::other(error))
}

/// Read-only, since a sealed segment is never written again.
impl Directory for Archive {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        Ok(Arc::new(self.words_part(path)?.clone()))
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        Err(DeleteError::FileDoesNotExist(path.to_owned()))
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        Ok(self.words_part(path).is_ok())
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let sealed = Arc::new(io::Error::other("a sealed segment is read-only"));
        Err(OpenWriteError::IoError { io_error: sealed, filepath: path.to_owned() })
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        let bytes = self.words_part(path)?.read_bytes();
        bytes
            .map(|bytes| bytes.to_vec())
            .map_err(|error| OpenReadError::IoError { io_error: Arc::new(error), filepath: path.to_owned() })
    }

    fn atomic_write(&self, _: &Path, _: &[u8]) -> io::Result<()> {
        Err(io::Error::other("a sealed segment is read-only"))
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn watch(&self, _: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}
