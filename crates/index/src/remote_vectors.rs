//! Vectors of a configured remote model, in addition to the built-in vectors in the segments.
//!
//! They are computed elsewhere and arrive later, so they have a separate file: one record per passage, appended on
//! arrival. They are used only when every passage in question has one; until then the built-in vectors are used.
//! `FORMAT.md` specifies the byte layout.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use shelf_base::Digest;

use crate::{
    DerivedKey, Error, Filter, Lease, Result, View,
    vector::{quantized, row_dot},
};

const MAGIC: &[u8; 8] = b"SHELFDV1";
/// A record's header (document number, ordinal, scale, hash); the vector's bytes and a checksum follow.
const HEAD: usize = 8 + 4 + 4 + 32;
const SUM: usize = 8;

/// A passage: its document's number and its ordinal in the document.
type Key = (i64, u32);

/// The vectors of one model.
pub struct RemoteVectors {
    path: PathBuf,
    model: String,
    /// The number of bytes of the file that have been read.
    read: u64,
    dimensions: usize,
    vectors: HashMap<Key, Vector>,
}

struct Vector {
    hash: Digest,
    scale: f32,
    bytes: Box<[u8]>,
}

/// A passage that does not have a vector of the model yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The document's number.
    pub number: i64,
    /// The SHA-256 of the document's content.
    pub hash: Digest,
    /// The passage's ordinal, from 0.
    pub ordinal: u32,
    /// The byte range of the passage in the document's text: start and exclusive end.
    pub bytes: (u32, u32),
    /// The document's segment and row, for [`View::text_key_at`].
    pub place: (usize, usize),
}

impl RemoteVectors {
    /// The vectors of `model` in the folder of an index. Nothing is read yet.
    pub fn new(folder: &Path, model: &str) -> Self {
        let name = format!("deep-{}.vectors", &blake3::hash(model.as_bytes()).to_hex()[..16]);
        Self {
            path: folder.join(name),
            model: model.to_owned(),
            read: 0,
            dimensions: 0,
            vectors: HashMap::new(),
        }
    }

    /// Reads the records appended since the last refresh. A torn or damaged tail is ignored until it is overwritten.
    pub fn refresh(&mut self) -> Result<()> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.read = 0;
                self.vectors.clear();
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        if file.metadata()?.len() < self.read {
            (self.read, self.dimensions) = (0, 0);
            self.vectors.clear();
        }
        if self.read == 0 && !self.read_header(&mut file)? {
            return Ok(());
        }
        io::Seek::seek(&mut file, io::SeekFrom::Start(self.read))?;
        let mut record = vec![0; HEAD + self.dimensions + SUM];
        let mut file = io::BufReader::with_capacity(1 << 18, file);
        while file.read_exact(&mut record).is_ok() && self.take(&record) {
            self.read += record.len() as u64;
        }
        Ok(())
    }

    fn read_header(&mut self, file: &mut File) -> Result<bool> {
        let mut head = [0; 16];
        if file.read_exact(&mut head).is_err() || &head[..8] != MAGIC {
            return Ok(false);
        }
        let number =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize;
        let (dimensions, length) = (number(8), number(12));
        let mut model = vec![0; length.min(4_096)];
        if dimensions == 0 || file.read_exact(&mut model).is_err() || model != self.model.as_bytes() {
            return Ok(false);
        }
        (self.dimensions, self.read) = (dimensions, (16 + length) as u64);
        Ok(true)
    }

    fn take(&mut self, record: &[u8]) -> bool {
        let (body, sum) = record.split_at(record.len() - SUM);
        if blake3::hash(body).as_bytes()[..SUM] != *sum {
            return false;
        }
        let (Some(number), Some(ordinal), Some(scale), Some(hash)) = (
            body.first_chunk::<8>().map(|bytes| i64::from_le_bytes(*bytes)),
            body[8..].first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes)),
            body[12..].first_chunk::<4>().map(|bytes| f32::from_le_bytes(*bytes)),
            Digest::from_slice(&body[16..HEAD]),
        ) else {
            return false;
        };
        self.vectors.insert((number, ordinal), Vector { hash, scale, bytes: body[HEAD..].into() });
        true
    }

    /// Appends vectors; all must have the same length as the vectors in the file.
    pub fn append(&mut self, _lease: &Lease, found: &[(Missing, Vec<f32>)]) -> Result<()> {
        self.refresh()?;
        let Some(dimensions) = found.first().map(|(_, vector)| vector.len()) else { return Ok(()) };
        if self.read == 0 {
            self.begin(dimensions)?;
        }
        if found.iter().any(|(_, vector)| vector.len() != self.dimensions) {
            return Err(Error::damaged(
                "remote vectors",
                "the model now returns vectors of a different length",
            ));
        }
        let mut bytes = Vec::new();
        for (missing, vector) in found {
            let start = bytes.len();
            let (scale, quantized) = quantized(vector);
            bytes.extend_from_slice(&missing.number.to_le_bytes());
            bytes.extend_from_slice(&missing.ordinal.to_le_bytes());
            bytes.extend_from_slice(&scale.to_le_bytes());
            bytes.extend_from_slice(missing.hash.as_bytes());
            bytes.extend_from_slice(&quantized);
            let sum = blake3::hash(&bytes[start..]);
            bytes.extend_from_slice(&sum.as_bytes()[..SUM]);
        }
        let mut file = OpenOptions::new().write(true).open(&self.path)?;
        // Anything after the last complete record is an unfinished write.
        file.set_len(self.read)?;
        io::Seek::seek(&mut file, io::SeekFrom::End(0))?;
        file.write_all(&bytes)?;
        file.sync_data()?;
        self.refresh()
    }

    fn begin(&mut self, dimensions: usize) -> Result<()> {
        let mut header = MAGIC.to_vec();
        header.extend_from_slice(&(dimensions as u32).to_le_bytes());
        header.extend_from_slice(&(self.model.len() as u32).to_le_bytes());
        header.extend_from_slice(self.model.as_bytes());
        fs::write(&self.path, &header)?;
        (self.dimensions, self.read) = (dimensions, header.len() as u64);
        self.vectors.clear();
        Ok(())
    }

    /// Passages within the filter that have no vector yet, at most `most` of them.
    pub fn missing(&self, view: &View, filter: &Filter, most: usize) -> Vec<Missing> {
        let mut missing = Vec::new();
        for (at, (placed, allowed)) in view.segments.iter().zip(view.allowed(filter)).enumerate() {
            for document in allowed.iter() {
                let row = placed.segment.document(document);
                for ordinal in 0..row.passages {
                    let span = placed.segment.passage((row.first_passage + ordinal) as usize).span;
                    if span.end == span.start
                        || self.find(row.number, row.first_ordinal + ordinal, &row.hash).is_some()
                    {
                        continue;
                    }
                    if missing.len() == most {
                        return missing;
                    }
                    missing.push(Missing {
                        number: row.number,
                        hash: row.hash,
                        ordinal: row.first_ordinal + ordinal,
                        bytes: (span.start, span.end),
                        place: (at, document),
                    });
                }
            }
        }
        missing
    }

    fn find(&self, number: i64, ordinal: u32, hash: &Digest) -> Option<&Vector> {
        self.vectors.get(&(number, ordinal)).filter(|vector| vector.hash == *hash)
    }

    /// The cosine of every passage within the filter with a query; `None` if any of them lacks a vector.
    pub fn cosines(&self, view: &View, filter: &Filter, query: &[f32]) -> Option<Cosines> {
        if query.len() != self.dimensions {
            return None;
        }
        let mut all = Vec::new();
        for (placed, allowed) in view.segments.iter().zip(view.allowed(filter)) {
            let mut cosines = vec![NONE; placed.segment.passages()];
            for document in allowed.iter() {
                let row = placed.segment.document(document);
                for ordinal in 0..row.passages {
                    let passage = (row.first_passage + ordinal) as usize;
                    let span = placed.segment.passage(passage).span;
                    if span.end > span.start {
                        let vector = self.find(row.number, row.first_ordinal + ordinal, &row.hash)?;
                        cosines[passage] = row_dot(query, &vector.bytes) * vector.scale;
                    }
                }
            }
            all.push(cosines);
        }
        Some(Cosines(all))
    }
}

/// The cosine of a passage that has no text or is excluded by the filter.
const NONE: f32 = -1.0;

/// Cosines computed from a remote model's vectors, by segment and passage.
pub struct Cosines(pub(crate) Vec<Vec<f32>>);

impl View {
    /// Where the derived data has the text of the document at the place of a [`Missing`] passage, if it differs from the
    /// document's bytes.
    pub fn text_key_at(&self, place: (usize, usize)) -> Option<DerivedKey> {
        let placed = self.segments.get(place.0)?;
        placed.segment.text_key(&placed.segment.document(place.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Index;

    fn missing(number: i64) -> Missing {
        Missing { number, hash: Digest::of(b"x"), ordinal: 0, bytes: (0, 1), place: (0, 0) }
    }

    #[test]
    fn vectors_come_back_and_a_torn_end_is_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let index = Index::new(
            folder.path().to_owned(),
            "test",
            std::sync::Arc::new(shelf_base::MemoryLocks::default()),
        );
        let lease = index.try_lease().unwrap().unwrap();
        let mut remote = RemoteVectors::new(folder.path(), "model@host");
        remote
            .append(&lease, &[(missing(1), vec![0.6, 0.8, 0.0]), (missing(2), vec![0.0, 0.0, 1.0])])
            .unwrap();
        let whole = fs::read(&remote.path).unwrap();
        fs::write(&remote.path, [&whole[..], b"torn"].concat()).unwrap();
        let mut other = RemoteVectors::new(folder.path(), "model@host");
        other.refresh().unwrap();
        assert_eq!(other.vectors.len(), 2);
        other.append(&lease, &[(missing(3), vec![1.0, 0.0, 0.0])]).unwrap();
        remote.refresh().unwrap();
        assert_eq!((remote.vectors.len(), remote.dimensions), (3, 3));
        let found = remote.find(1, 0, &Digest::of(b"x")).unwrap();
        assert!((row_dot(&[0.6, 0.8, 0.0], &found.bytes) * found.scale - 1.0).abs() < 0.02);
        assert!(remote.find(1, 0, &Digest::of(b"other content")).is_none());
        assert!(remote.append(&lease, &[(missing(4), vec![1.0])]).is_err());
    }
}
