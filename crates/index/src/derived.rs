//! A log of what has been learnt from contents, in one file beside the index: text of a PDF, and later outlines, symbols
//! and links. Each record is made once per content and reader, is found by both, and can be made again at any time.
//!
//! `FORMAT.md` gives the bytes. Processes share the file: each scans what others appended, appends are made under a lock
//! on the file, and a record is compared with its checksum whenever it is read. A record that is damaged or torn counts
//! as absent. Nothing is synced: what a power cut takes is made again.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt},
    path::PathBuf,
};

use parking_lot::Mutex;
use rustix::fs::{FlockOperation, flock};
use shelf_base::Digest;

use crate::{Error, Result};

const MAGIC: &[u8; 8] = b"SHELFDR1";
/// Content hash, variant, length.
const HEAD: usize = 32 + 8 + 4;
const SUM: usize = 16;
/// Bytes of one record at most.
const LARGEST: usize = 256 << 20;

/// What a record is about: a content, and which reader made what of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DerivedKey {
    /// The SHA-256 of the content.
    pub content: Digest,
    /// The reader, its version, and what else decides how the content is read.
    pub variant: u64,
}

/// The log.
pub struct Derived {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    file: Option<File>,
    inode: u64,
    /// How far the file has been scanned.
    end: u64,
    records: HashMap<DerivedKey, (u64, u32)>,
}

impl Derived {
    /// The log at `path`. Nothing is read yet.
    pub fn new(path: PathBuf) -> Self {
        Self { path, state: Mutex::default() }
    }

    /// A record; `None` when there is none that is whole.
    pub fn get(&self, key: &DerivedKey) -> Result<Option<Vec<u8>>> {
        let mut state = self.state.lock();
        if !state.records.contains_key(key) {
            self.refresh(&mut state)?;
        }
        let (Some((at, length)), Some(file)) = (state.records.get(key).copied(), &state.file) else {
            return Ok(None);
        };
        let mut bytes = vec![0; HEAD + length as usize + SUM];
        let is_whole = file.read_exact_at(&mut bytes, at).is_ok() && is_sound(&bytes);
        if !is_whole {
            state.records.remove(key);
            return Ok(None);
        }
        bytes.truncate(HEAD + length as usize);
        Ok(Some(bytes.split_off(HEAD)))
    }

    /// Keeps a record, unless there is one.
    pub fn put(&self, key: &DerivedKey, content: &[u8]) -> Result<()> {
        if content.len() > LARGEST {
            return Ok(());
        }
        let mut state = self.state.lock();
        let file = self.locked()?;
        self.refresh(&mut state)?;
        if state.records.contains_key(key) {
            return Ok(());
        }
        let mut bytes = Vec::with_capacity(HEAD + content.len() + SUM + MAGIC.len());
        bytes.extend_from_slice(key.content.as_bytes());
        bytes.extend_from_slice(&key.variant.to_le_bytes());
        bytes.extend_from_slice(&(content.len() as u32).to_le_bytes());
        bytes.extend_from_slice(content);
        let sum = blake3::hash(&bytes);
        bytes.extend_from_slice(&sum.as_bytes()[..SUM]);
        if state.end == 0 {
            bytes.splice(0..0, *MAGIC);
        }
        // Whatever follows the last whole record is an append that was cut off.
        file.set_len(state.end)?;
        file.write_all_at(&bytes, state.end)?;
        self.refresh(&mut state)
    }

    /// Drops the records of contents that are not kept; the bytes that were freed.
    pub fn retain(&self, keeps: impl Fn(&Digest) -> bool) -> Result<u64> {
        let mut state = self.state.lock();
        if !self.path.exists() {
            return Ok(0);
        }
        let _locked = self.locked()?;
        self.refresh(&mut state)?;
        let before = state.end;
        let dead = state.records.keys().filter(|key| !keeps(&key.content)).count();
        let Some(file) = state.file.as_ref().filter(|_| dead > 0) else { return Ok(0) };
        let folder = self.path.parent().unwrap_or(&self.path);
        let mut fresh = tempfile::Builder::new().prefix("derived-").tempfile_in(folder)?;
        fresh.write_all(MAGIC)?;
        let mut kept: Vec<(u64, u32)> =
            state.records.iter().filter(|(key, _)| keeps(&key.content)).map(|(_, place)| *place).collect();
        kept.sort_unstable();
        let mut length = MAGIC.len() as u64;
        for (at, size) in kept {
            let mut bytes = vec![0; HEAD + size as usize + SUM];
            if file.read_exact_at(&mut bytes, at).is_ok() && is_sound(&bytes) {
                fresh.write_all(&bytes)?;
                length += bytes.len() as u64;
            }
        }
        fresh.persist(&self.path).map_err(|error| error.error)?;
        self.refresh(&mut state)?;
        Ok(before.saturating_sub(length))
    }

    /// Compares every record with its checksum.
    pub fn check(&self) -> Result<()> {
        let mut state = self.state.lock();
        *state = State::default();
        self.refresh(&mut state)?;
        let Some(file) = &state.file else { return Ok(()) };
        for (at, length) in state.records.values() {
            let mut bytes = vec![0; HEAD + *length as usize + SUM];
            if file.read_exact_at(&mut bytes, *at).is_err() || !is_sound(&bytes) {
                return Err(Error::damaged("derived data", "a record does not match its checksum"));
            }
        }
        if state.end < file.metadata()?.len() {
            return Err(Error::damaged("derived data", "its end cannot be read"));
        }
        Ok(())
    }

    /// Removes the log; everything is derived again when it is needed.
    pub fn wipe(&self) -> Result<()> {
        *self.state.lock() = State::default();
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Bytes on disk.
    pub fn bytes(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |facts| facts.len())
    }

    /// The file, locked against other writers until it is dropped. A file that was replaced meanwhile is left.
    fn locked(&self) -> Result<File> {
        if let Some(folder) = self.path.parent() {
            crate::store::make_folder(folder)?;
        }
        loop {
            let mut open = OpenOptions::new();
            let file =
                open.create(true).truncate(false).read(true).write(true).mode(0o600).open(&self.path)?;
            flock(&file, FlockOperation::LockExclusive).map_err(io::Error::from)?;
            if fs::metadata(&self.path).is_ok_and(|facts| Some(facts.ino()) == inode(&file)) {
                return Ok(file);
            }
        }
    }

    /// Scans what was appended since the last time.
    fn refresh(&self, state: &mut State) -> Result<()> {
        let facts = match fs::metadata(&self.path) {
            Ok(facts) => facts,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                *state = State::default();
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        if state.file.is_none() || facts.ino() != state.inode || facts.len() < state.end {
            let file = File::open(&self.path)?;
            *state = State { inode: inode(&file).unwrap_or(0), file: Some(file), ..State::default() };
        }
        let Some(file) = &state.file else { return Ok(()) };
        let length = file.metadata()?.len();
        if state.end == 0 {
            let mut magic = [0; MAGIC.len()];
            if file.read_exact_at(&mut magic, 0).is_err() || magic != *MAGIC {
                return Ok(());
            }
            state.end = MAGIC.len() as u64;
        }
        let mut head = [0; HEAD];
        while state.end + (HEAD + SUM) as u64 <= length && file.read_exact_at(&mut head, state.end).is_ok() {
            let Some((key, size)) = parse_head(&head) else { break };
            let next = state.end + (HEAD + size as usize + SUM) as u64;
            if next > length {
                break;
            }
            state.records.insert(key, (state.end, size));
            state.end = next;
        }
        Ok(())
    }
}

fn inode(file: &File) -> Option<u64> {
    file.metadata().ok().map(|facts| facts.ino())
}

fn parse_head(head: &[u8; HEAD]) -> Option<(DerivedKey, u32)> {
    let content = Digest::from_slice(&head[..32])?;
    let variant = u64::from_le_bytes(head[32..40].try_into().ok()?);
    let size = u32::from_le_bytes(head[40..].try_into().ok()?);
    (size as usize <= LARGEST).then_some((DerivedKey { content, variant }, size))
}

fn is_sound(record: &[u8]) -> bool {
    let (body, sum) = record.split_at(record.len() - SUM);
    blake3::hash(body).as_bytes()[..SUM] == *sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> DerivedKey {
        DerivedKey { content: Digest::of(&[number]), variant: u64::from(number) }
    }

    #[test]
    fn records_come_back_in_every_process_and_a_torn_end_is_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("derived.log");
        let (one, other) = (Derived::new(path.clone()), Derived::new(path.clone()));
        assert_eq!(other.get(&key(1)).unwrap(), None);
        one.put(&key(1), b"first").unwrap();
        assert_eq!(other.get(&key(1)).unwrap().unwrap(), b"first");
        let length = fs::metadata(&path).unwrap().len();
        other.put(&key(2), &[7; 1_000]).unwrap();
        OpenOptions::new().write(true).open(&path).unwrap().set_len(length + 500).unwrap();
        let fresh = Derived::new(path);
        assert_eq!(fresh.get(&key(2)).unwrap(), None, "torn");
        fresh.put(&key(3), b"third").unwrap();
        assert_eq!(one.get(&key(3)).unwrap().unwrap(), b"third");
        assert_eq!(one.get(&key(1)).unwrap().unwrap(), b"first");
        one.check().unwrap();
    }

    #[test]
    fn damage_counts_as_absence_and_what_nothing_needs_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("derived.log");
        let (one, other) = (Derived::new(path.clone()), Derived::new(path.clone()));
        for number in 0..9 {
            one.put(&key(number), &[number; 100]).unwrap();
        }
        assert_eq!(other.get(&key(4)).unwrap().unwrap(), [4; 100]);
        let keeps = |content: &Digest| *content != Digest::of(&[4]);
        assert!(one.retain(keeps).unwrap() > 100);
        assert_eq!((one.get(&key(4)).unwrap(), one.get(&key(5)).unwrap().unwrap()), (None, vec![5; 100]));
        other.put(&key(10), b"after").unwrap();
        assert_eq!(one.get(&key(10)).unwrap().unwrap(), b"after");
        let mut bytes = fs::read(&path).unwrap();
        let at = bytes.len() - 200;
        bytes[at] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let fresh = Derived::new(path);
        assert!(fresh.check().is_err());
        assert_eq!(fresh.get(&key(8)).unwrap(), None);
        assert_eq!(fresh.get(&key(0)).unwrap().unwrap(), [0; 100]);
        fresh.wipe().unwrap();
        assert_eq!(fresh.get(&key(0)).unwrap(), None);
    }
}
