//! The vector cache file. `FORMAT.md` specifies its format.
//!
//! Records are appended, and the oldest are dropped when there are too many. Any number of processes may use the file at
//! once. A writer holds the file's lock, truncates whatever a killed process left incomplete, and appends whole records.
//! Readers take no lock and detect new records by the file's length. Nothing is synced, since every vector can be requested again: a record damaged by a power failure
//! fails its checksum and counts as missing.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use shelf_base::Digest;

use crate::{Error, Result};

const MAGIC: &[u8; 8] = b"SHELFVEC";
/// Header version of files with f32 values.
const FLOATS: u32 = 1;
/// Header version of files with signed bytes and a scale.
const BYTES: u32 = 2;
/// Length of the header without the model's id, which follows it.
const HEADER: usize = 24;
const KEY: usize = 32;
const CHECKSUM: usize = 4;
const SCALE: usize = 4;

/// How vectors are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    /// As they are.
    Floats,
    /// As signed bytes with one scale, a quarter as large: enough for vectors that are compared in bytes anyway.
    Bytes,
}

impl Precision {
    const fn version(self) -> u32 {
        match self {
            Self::Floats => FLOATS,
            Self::Bytes => BYTES,
        }
    }

    const fn record_length(self, dimensions: usize) -> usize {
        match self {
            Self::Floats => KEY + dimensions * 4 + CHECKSUM,
            Self::Bytes => KEY + SCALE + dimensions + CHECKSUM,
        }
    }
}

/// The cached vectors of one model.
pub(crate) struct Vectors {
    file: File,
    path: PathBuf,
    model: String,
    precision: Precision,
    /// Known once the file has a header.
    dimensions: Option<usize>,
    /// The offset of each text's record; a later record replaces an earlier one.
    places: HashMap<Digest, u64>,
    /// How much of the file `places` covers, in bytes.
    known: u64,
}

impl Vectors {
    /// Opens the file of `model` in `folder`, creating both if missing. Records are read when they are needed.
    pub(crate) fn open(folder: &Path, model: &str, precision: Precision) -> Result<Self> {
        let name = Digest::of(model.as_bytes()).to_string();
        let path = folder.join(format!("vectors-{}.cache", &name[..16]));
        let opened = fs::create_dir_all(folder)
            .and_then(|()| OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&path));
        let file = opened.map_err(|source| Error::Cache { action: "open", file: path.clone(), source })?;
        let (places, dimensions) = (HashMap::new(), None);
        let model = model.to_owned();
        let mut vectors = Self { file, path, model, precision, dimensions, places, known: 0 };
        vectors.locked("repair", Self::repair)?;
        Ok(vectors)
    }

    pub(crate) fn dimensions(&self) -> Option<usize> {
        self.dimensions
    }

    /// Picks up the records that this or another process has appended.
    pub(crate) fn refresh(&mut self) -> Result<()> {
        self.read_on().map_err(|source| self.failed("read", source))
    }

    /// The cached vector of a text; `None` when it is missing or damaged.
    pub(crate) fn get(&self, key: &Digest) -> Result<Option<Vec<f32>>> {
        let (Some(&place), Some(dimensions)) = (self.places.get(key), self.dimensions) else {
            return Ok(None);
        };
        let mut record = vec![0; self.precision.record_length(dimensions)];
        match self.file.read_exact_at(&mut record, place) {
            Ok(()) => Ok(decode(&record, key, self.precision)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(source) => Err(self.failed("read", source)),
        }
    }

    /// Stores vectors, which must all have the same dimensions, and those of the file unless it is new.
    pub(crate) fn append(&mut self, records: &[(Digest, &[f32])]) -> Result<()> {
        let Some(found) = records.first().map(|(_, vector)| vector.len()) else { return Ok(()) };
        if let Some((_, other)) = records.iter().find(|(_, vector)| vector.len() != found) {
            return Err(self.changed(found, other.len()));
        }
        let bytes: Vec<u8> =
            records.iter().flat_map(|(key, vector)| encode(key, vector, self.precision)).collect();
        self.locked("write", |vectors| {
            vectors.repair()?;
            // Another process may have written the header since the file was opened; its dimensions count.
            if *vectors.dimensions.get_or_insert(found) != found {
                return Ok(());
            }
            if vectors.file.metadata()?.len() == 0 {
                (&vectors.file).write_all(&header(&vectors.model, found, vectors.precision))?;
            }
            (&vectors.file).write_all(&bytes)?;
            vectors.read_on()
        })?;
        match self.dimensions {
            Some(expected) if expected != found => Err(self.changed(expected, found)),
            _ => Ok(()),
        }
    }

    /// Drops the oldest records when there are more than `most`, so that half as many are left.
    ///
    /// If the process is killed half-way, some records are in the file twice. A process that reads meanwhile finds other
    /// keys where it looks, and takes those vectors for missing.
    pub(crate) fn trim(&mut self, most: u64) -> Result<()> {
        self.locked("trim", |vectors| {
            vectors.repair()?;
            let Some(dimensions) = vectors.dimensions else { return Ok(()) };
            let record = vectors.precision.record_length(dimensions) as u64;
            let (first, length) = (vectors.first(), vectors.file.metadata()?.len());
            if (length - first) / record <= most {
                return Ok(());
            }
            let left = most / 2 * record;
            // The file itself is open for appending only.
            let mut from = OpenOptions::new().read(true).open(&vectors.path)?;
            let mut to = OpenOptions::new().write(true).open(&vectors.path)?;
            from.seek(SeekFrom::Start(length - left))?;
            to.seek(SeekFrom::Start(first))?;
            io::copy(&mut from.take(left), &mut to)?;
            to.set_len(first + left)?;
            vectors.forget();
            vectors.read_on()
        })
    }

    /// Runs `work` while holding the file's lock.
    fn locked(&mut self, action: &'static str, work: impl FnOnce(&mut Self) -> io::Result<()>) -> Result<()> {
        self.file.lock().map_err(|source| self.failed("lock", source))?;
        let worked = work(self);
        let unlocked = self.file.unlock();
        worked.and(unlocked).map_err(|source| self.failed(action, source))
    }

    /// Truncates the file to its last whole record, or to nothing when it does not begin with this model's header.
    fn repair(&mut self) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        self.dimensions = self.read_header()?;
        let sound = match self.dimensions {
            Some(dimensions) => {
                length - (length - self.first()) % self.precision.record_length(dimensions) as u64
            }
            None => {
                self.forget();
                0
            }
        };
        if sound < length { self.file.set_len(sound) } else { Ok(()) }
    }

    fn forget(&mut self) {
        self.places.clear();
        self.known = 0;
    }

    fn read_on(&mut self) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        if length < self.known || self.dimensions.is_none() {
            // Another process has written the header or started the file over.
            self.forget();
            self.dimensions = self.read_header()?;
        }
        let Some(dimensions) = self.dimensions else { return Ok(()) };
        let record = self.precision.record_length(dimensions) as u64;
        let mut place = self.known.max(self.first());
        let mut key = [0; KEY];
        while place + record <= length {
            self.file.read_exact_at(&mut key, place)?;
            self.places.insert(Digest::new(key), place);
            place += record;
        }
        self.known = place;
        Ok(())
    }

    /// The dimensions in the header; `None` when there is no valid header for this model.
    fn read_header(&self) -> io::Result<Option<usize>> {
        let mut found = vec![0; self.first() as usize];
        match self.file.read_exact_at(&mut found, 0) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
        let dimensions = u32::from_le_bytes([found[12], found[13], found[14], found[15]]) as usize;
        Ok((dimensions > 0 && found == header(&self.model, dimensions, self.precision)).then_some(dimensions))
    }

    /// The offset of the first record.
    fn first(&self) -> u64 {
        (HEADER + self.model.len()) as u64
    }

    fn changed(&self, expected: usize, found: usize) -> Error {
        Error::Dimensions { model: self.model.clone(), expected, found }
    }

    fn failed(&self, action: &'static str, source: io::Error) -> Error {
        Error::Cache { action, file: self.path.clone(), source }
    }
}

fn header(model: &str, dimensions: usize, precision: Precision) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + model.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&precision.version().to_le_bytes());
    bytes.extend_from_slice(&(dimensions as u32).to_le_bytes());
    bytes.extend_from_slice(&(model.len() as u32).to_le_bytes());
    let checksum = checksum(&[&bytes, model.as_bytes()].concat());
    bytes.extend_from_slice(&checksum);
    bytes.extend_from_slice(model.as_bytes());
    bytes
}

fn encode(key: &Digest, vector: &[f32], precision: Precision) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(precision.record_length(vector.len()));
    bytes.extend_from_slice(key.as_bytes());
    match precision {
        Precision::Floats => bytes.extend(vector.iter().flat_map(|value| value.to_le_bytes())),
        Precision::Bytes => {
            let most = vector.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
            let scale = if most > 0.0 { most / 127.0 } else { 1.0 };
            bytes.extend_from_slice(&scale.to_le_bytes());
            bytes.extend(vector.iter().map(|value| (value / scale).round() as i8 as u8));
        }
    }
    bytes.extend_from_slice(&checksum(&bytes));
    bytes
}

fn decode(record: &[u8], key: &Digest, precision: Precision) -> Option<Vec<f32>> {
    let (body, found) = record.split_last_chunk::<CHECKSUM>()?;
    let (name, values) = body.split_first_chunk::<KEY>()?;
    if name != key.as_bytes() || *found != checksum(body) {
        return None;
    }
    match precision {
        Precision::Floats => {
            Some(values.as_chunks::<4>().0.iter().map(|value| f32::from_le_bytes(*value)).collect())
        }
        Precision::Bytes => {
            let (scale, values) = values.split_first_chunk::<SCALE>()?;
            let scale = f32::from_le_bytes(*scale);
            Some(values.iter().map(|value| f32::from(*value as i8) * scale).collect())
        }
    }
}

/// The first bytes of the SHA-256: enough to detect accidental damage, without a second algorithm to specify.
fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    let [first, second, third, fourth, ..] = *Digest::of(bytes).as_bytes();
    [first, second, third, fourth]
}

#[cfg(test)]
mod tests;
