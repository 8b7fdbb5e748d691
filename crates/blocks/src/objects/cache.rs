//! Copies of remote objects on the local disk, bounded, verified on every read, and kept over restarts.
//!
//! Objects are copied in chunks, so that a small document costs a small transfer and a pack that is read often comes to
//! lie here whole. A chunk is a file with its hash at the end; one that does not fit its hash is thrown away and fetched
//! anew. When the copies exceed their bound, those that were used least recently go. Several processes may share the
//! folder: there is no state besides the files and their times.
//!
//! A copy is never the truth. Whether an object exists is asked of the store, and a check reads the store itself
//! ([`Objects::source`]).

use std::{
    collections::HashMap,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::SystemTime,
};

use parking_lot::{Mutex, RwLock};

use super::{ByteRange, Listed, Objects};

/// Bytes of a chunk.
const CHUNK: u64 = 256 << 10;
const HASH: usize = 32;
/// After so large a part of the bound was added, the folder is looked at.
const LOOK_AFTER: u64 = 16;
const UNFINISHED: &str = ".part";

/// How often a copy served, and how often the store had to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheFigures {
    /// Chunks that were read from the disk.
    pub hits: u64,
    /// Chunks that were fetched.
    pub misses: u64,
    /// Chunks that did not fit their hash and were thrown away.
    pub damaged: u64,
}

/// A store with copies of its objects in a folder.
pub struct Cached {
    inner: Arc<dyn Objects>,
    folder: PathBuf,
    /// Bytes of copies, at most.
    bound: u64,
    /// The lengths of objects, as far as they are known: objects do not change.
    lengths: RwLock<HashMap<String, u64>>,
    /// Bytes added since the folder was last looked at.
    added: AtomicU64,
    was_looked_at: AtomicBool,
    looking: Mutex<()>,
    counter: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    damaged: AtomicU64,
}

impl Cached {
    /// Keeps copies of at most `bound` bytes in `folder`, which is made when first needed.
    pub fn new(inner: Arc<dyn Objects>, folder: impl Into<PathBuf>, bound: u64) -> Self {
        Self {
            inner,
            folder: folder.into(),
            bound,
            lengths: RwLock::default(),
            added: AtomicU64::new(0),
            was_looked_at: AtomicBool::new(false),
            looking: Mutex::default(),
            counter: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            damaged: AtomicU64::new(0),
        }
    }

    /// How often copies served in this process.
    pub fn figures(&self) -> CacheFigures {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CacheFigures { hits: count(&self.hits), misses: count(&self.misses), damaged: count(&self.damaged) }
    }

    fn known_length(&self, name: &str) -> io::Result<u64> {
        let known = self.lengths.read().get(name).copied();
        known.map_or_else(|| self.length(name), Ok)
    }

    fn chunk_path(&self, name: &str, chunk: u64) -> PathBuf {
        self.folder.join(name).join(chunk.to_string())
    }

    /// A copy of a chunk that fits its hash.
    fn copy(&self, name: &str, chunk: u64, length: usize) -> Option<Vec<u8>> {
        let path = self.chunk_path(name, chunk);
        let mut file = File::open(&path).ok()?;
        let mut bytes = Vec::with_capacity(length + HASH);
        let read = file.read_to_end(&mut bytes);
        let hash = bytes.split_off(bytes.len().saturating_sub(HASH));
        if read.is_err() || bytes.len() != length || blake3::hash(&bytes).as_bytes()[..] != hash[..] {
            tracing::warn!(name, chunk, "a cached copy was damaged and is fetched anew");
            self.damaged.fetch_add(1, Ordering::Relaxed);
            let _ = fs::remove_file(&path);
            return None;
        }
        // The time of its last use, by which the least used is found.
        let _ = file.set_modified(SystemTime::now());
        Some(bytes)
    }

    /// Keeps a copy. A failure costs speed, nothing else.
    fn keep(&self, name: &str, chunk: u64, bytes: &[u8]) {
        if let Err(error) = self.write(name, chunk, bytes) {
            tracing::debug!(%error, name, "a copy could not be cached");
            return;
        }
        let added = self.added.fetch_add((bytes.len() + HASH) as u64, Ordering::Relaxed);
        if added > self.bound / LOOK_AFTER || !self.was_looked_at.swap(true, Ordering::Relaxed) {
            self.make_room();
        }
    }

    fn write(&self, name: &str, chunk: u64, bytes: &[u8]) -> io::Result<()> {
        let path = self.chunk_path(name, chunk);
        let number = self.counter.fetch_add(1, Ordering::Relaxed);
        let unfinished = path.with_file_name(format!("{chunk}.{}-{number}{UNFINISHED}", std::process::id()));
        let open = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished);
        let mut file = open().or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                DirBuilder::new().recursive(true).mode(0o700).create(self.folder.join(name))?;
                open()
            }
            _ => Err(error),
        })?;
        // No sync: what a power cut leaves does not fit its hash.
        let written = file.write_all(bytes).and_then(|()| file.write_all(blake3::hash(bytes).as_bytes()));
        let done = written.and_then(|()| fs::rename(&unfinished, &path));
        if done.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        done
    }

    /// Removes the copies that were used least recently, down to seven eighths of the bound.
    fn make_room(&self) {
        let Some(_alone) = self.looking.try_lock() else { return };
        self.added.store(0, Ordering::Relaxed);
        let mut copies = copies_in(&self.folder);
        let mut total: u64 = copies.iter().map(|(_, size, _)| size).sum();
        metrics::gauge!("shelf_cache_bytes").set(total as f64);
        if total <= self.bound {
            return;
        }
        copies.sort_unstable();
        for (_, size, path) in copies {
            if total <= self.bound / 8 * 7 {
                break;
            }
            if fs::remove_file(&path).is_ok() {
                total -= size;
            }
            // Goes when it was the last of its object.
            let _ = path.parent().map(fs::remove_dir);
        }
        metrics::gauge!("shelf_cache_bytes").set(total as f64);
    }

    fn forget(&self, name: &str) -> bool {
        self.lengths.write().remove(name);
        fs::remove_dir_all(self.folder.join(name)).is_ok()
    }

    /// The chunks that these ranges need: those that are here, and the rest, fetched with one call.
    fn chunks(&self, name: &str, ranges: &[ByteRange], length: u64) -> io::Result<HashMap<u64, Vec<u8>>> {
        let mut chunks = HashMap::new();
        let mut missing = Vec::new();
        for range in ranges.iter().filter(|range| range.length > 0) {
            for chunk in range.offset / CHUNK..=(range.offset + range.length as u64 - 1) / CHUNK {
                if chunks.contains_key(&chunk) || missing.contains(&chunk) {
                    continue;
                }
                match self.copy(name, chunk, extent(chunk, length).length) {
                    Some(bytes) => drop(chunks.insert(chunk, bytes)),
                    None => missing.push(chunk),
                }
            }
        }
        self.count(chunks.len(), missing.len());
        if missing.is_empty() {
            return Ok(chunks);
        }
        let wanted: Vec<ByteRange> = missing.iter().map(|chunk| extent(*chunk, length)).collect();
        let fetched = self.inner.read(name, &wanted)?;
        for (chunk, bytes) in missing.into_iter().zip(fetched) {
            self.keep(name, chunk, &bytes);
            chunks.insert(chunk, bytes);
        }
        Ok(chunks)
    }

    fn count(&self, hits: usize, misses: usize) {
        self.hits.fetch_add(hits as u64, Ordering::Relaxed);
        self.misses.fetch_add(misses as u64, Ordering::Relaxed);
        metrics::counter!("shelf_cache_hits_total").increment(hits as u64);
        metrics::counter!("shelf_cache_misses_total").increment(misses as u64);
    }
}

/// Where a chunk of an object is.
fn extent(chunk: u64, length: u64) -> ByteRange {
    let offset = chunk * CHUNK;
    ByteRange { offset, length: length.saturating_sub(offset).min(CHUNK) as usize }
}

/// All copies with the time of their last use and their size.
fn copies_in(folder: &Path) -> Vec<(SystemTime, u64, PathBuf)> {
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    let files = entries(folder).flat_map(|object| entries(&object.path()));
    let facts = files.filter_map(|file| {
        let facts = file.metadata().ok()?;
        Some((facts.modified().ok()?, facts.len(), file.path()))
    });
    facts.collect()
}

impl Objects for Cached {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn is_remote(&self) -> bool {
        self.inner.is_remote()
    }

    fn ping(&self) -> io::Result<()> {
        self.inner.ping()
    }

    fn parallel(&self) -> usize {
        self.inner.parallel()
    }

    fn source(&self) -> Option<&dyn Objects> {
        Some(self.inner.source().unwrap_or(&*self.inner))
    }

    fn distrust(&self, name: &str) -> bool {
        self.forget(name)
    }

    /// What was just written is read soon, by whoever indexes it: it is copied on the way.
    fn put(&self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        self.inner.put(name, parts)?;
        self.forget(name);
        let bytes = parts.concat();
        for (chunk, part) in bytes.chunks(CHUNK as usize).enumerate() {
            self.keep(name, chunk as u64, part);
        }
        self.lengths.write().insert(name.to_owned(), bytes.len() as u64);
        Ok(())
    }

    fn put_new(&self, name: &str, parts: &[&[u8]]) -> io::Result<bool> {
        self.inner.put_new(name, parts)
    }

    fn read(&self, name: &str, ranges: &[ByteRange]) -> io::Result<Vec<Vec<u8>>> {
        let length = self.known_length(name)?;
        let is_inside = |range: &ByteRange| {
            range.offset.checked_add(range.length as u64).is_some_and(|end| end <= length)
        };
        if !ranges.iter().all(is_inside) {
            // The length may be that of an object which was replaced.
            self.forget(name);
            return self.inner.read(name, ranges);
        }
        let chunks = self.chunks(name, ranges, length)?;
        let gather = |range: &ByteRange| {
            let mut bytes = Vec::with_capacity(range.length);
            let mut at = range.offset;
            while bytes.len() < range.length {
                let chunk = chunks.get(&(at / CHUNK)).map(Vec::as_slice).unwrap_or_default();
                let from = (at % CHUNK) as usize;
                let to = chunk.len().min(from + range.length - bytes.len());
                let part = chunk.get(from..to).filter(|part| !part.is_empty());
                bytes.extend_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
                at = range.offset + bytes.len() as u64;
            }
            Ok(bytes)
        };
        ranges.iter().map(gather).collect()
    }

    fn length(&self, name: &str) -> io::Result<u64> {
        match self.inner.length(name) {
            Ok(length) => {
                self.lengths.write().insert(name.to_owned(), length);
                Ok(length)
            }
            Err(error) => {
                if error.kind() == io::ErrorKind::NotFound {
                    self.forget(name);
                }
                Err(error)
            }
        }
    }

    fn list(&self, after: &str) -> io::Result<Vec<Listed>> {
        let page = self.inner.list(after)?;
        self.lengths.write().extend(page.iter().map(|found| (found.name.clone(), found.size)));
        Ok(page)
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        self.inner.delete(name)?;
        self.forget(name);
        Ok(())
    }

    fn sweep(&self) -> io::Result<u64> {
        self.inner.sweep()
    }
}
