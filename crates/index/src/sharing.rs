//! One index for several machines: what one of them has on disk, described so that the others can have the same.
//!
//! Segments are sealed files, so they can be copied. They travel in pieces, each named by the hash of its bytes: a piece
//! that has arrived once is not sent again, and whoever receives one can tell whether it is whole. Where pieces are kept
//! in between is not known here.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::Path,
};

use serde::{Deserialize, Serialize};

use crate::{
    Error, Followed, Index, Lease, Result,
    manifest::{FORMAT, FileStamp, Manifest, SegmentNote},
    store::make_folder,
};

/// Bytes of a piece; the last one of a segment may have fewer.
const PIECE: usize = 8 << 20;
/// Bytes of a segment that is taken from others, at most.
const MOST_BYTES: u64 = 16 << 30;

/// The segments of an index, and how far it has followed the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedIndex {
    /// The last journal record that the segments cover.
    pub sequence: u64,
    /// The journal's own mark of that record.
    pub mark: String,
    /// The segments.
    pub segments: Vec<SharedSegment>,
}

/// A segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedSegment {
    /// BLAKE3 of its file, in hexadecimal.
    pub hash: String,
    /// Length of its file.
    pub length: u64,
    /// Number of documents.
    pub documents: u32,
    /// Approximate size of their text.
    pub text_bytes: u64,
    /// Rows of documents that have since been replaced or deleted, ascending.
    pub dead: Vec<u32>,
    /// The pieces of its file in their order: BLAKE3 of each, in hexadecimal.
    pub pieces: Vec<String>,
}

impl SharedIndex {
    /// How far it has followed the journal.
    pub fn followed(&self) -> Followed {
        Followed { sequence: self.sequence, mark: self.mark.clone() }
    }

    /// The names of all pieces.
    pub fn pieces(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().flat_map(|segment| &segment.pieces).map(String::as_str)
    }
}

impl SharedSegment {
    /// The name of its file on a machine that has fetched it.
    fn file_name(&self) -> String {
        format!("segment-{}.seg", self.hash)
    }

    /// Refuses a description that no index has given.
    fn check(&self) -> Result<()> {
        let is_hash = |text: &String| {
            text.len() == 64
                && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
        };
        let count = self.length.div_ceil(PIECE as u64);
        let is_sound = is_hash(&self.hash)
            && self.pieces.iter().all(is_hash)
            && self.length <= MOST_BYTES
            && count == self.pieces.len() as u64
            && self.dead.is_sorted_by(|one, other| one < other)
            && self.dead.last().is_none_or(|last| *last < self.documents);
        if is_sound { Ok(()) } else { Err(Error::damaged("shared index", "a segment is described wrongly")) }
    }

    fn length_of(&self, piece: usize) -> usize {
        (self.length - (piece * PIECE) as u64).min(PIECE as u64) as usize
    }
}

impl Index {
    /// What makes an index one that this program can use as it is: its format, and the versions of what made it.
    pub fn variant(&self) -> String {
        let text = format!("shelf-index {FORMAT} {} {}", self.model(), self.reader());
        blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
    }

    /// Describes what is on disk. Every piece that is not there already, as `has` says, is handed to `put`.
    ///
    /// A segment is compared with its hashes before it is described for the first time, so that damage on this machine
    /// does not travel.
    pub fn share(
        &self,
        has: &dyn Fn(&str) -> bool,
        put: &mut dyn FnMut(&str, &[u8]) -> io::Result<()>,
    ) -> Result<SharedIndex> {
        let (manifest, base) = self.on_disk()?;
        let mut segments = Vec::with_capacity(base.len());
        for (note, segment) in manifest.segments.iter().zip(base) {
            let known = self.described.lock().get(&note.name).cloned();
            let described = match known.filter(|known| known.pieces.iter().all(|piece| has(piece))) {
                Some(known) => known,
                None => {
                    let file = File::open(self.folder().join(&note.name))?;
                    segment.verify()?;
                    describe(file, note, has, put)?
                }
            };
            self.described.lock().insert(note.name.clone(), described.clone());
            segments.push(SharedSegment { dead: note.dead.clone(), ..described });
        }
        self.described.lock().retain(|name, _| manifest.segments.iter().any(|note| note.name == *name));
        Ok(SharedIndex { sequence: manifest.sequence, mark: manifest.mark, segments })
    }

    /// Takes over what another machine has described, if it has followed the journal further than what is on disk here.
    /// `get` fetches a piece of that length. Nothing changes unless all of it arrives and is whole.
    pub fn adopt(
        &self,
        lease: &Lease,
        shared: &SharedIndex,
        get: &mut dyn FnMut(&str, usize) -> io::Result<Vec<u8>>,
    ) -> Result<bool> {
        let (before, _) = self.on_disk()?;
        if shared.sequence <= before.sequence {
            return Ok(false);
        }
        make_folder(self.folder())?;
        let obtain = |segment: &SharedSegment| self.obtain(&before, segment, get);
        let segments = shared.segments.iter().map(obtain).collect::<Result<Vec<_>>>()?;
        File::open(self.folder())?.sync_all()?;
        let manifest =
            Manifest { sequence: shared.sequence, mark: shared.mark.clone(), segments, ..before.clone() };
        self.replace(lease, &before, manifest)?;
        Ok(true)
    }

    /// A segment as a file in the folder: one that is part of the index already, or one that is fetched.
    fn obtain(
        &self,
        before: &Manifest,
        segment: &SharedSegment,
        get: &mut dyn FnMut(&str, usize) -> io::Result<Vec<u8>>,
    ) -> Result<SegmentNote> {
        segment.check()?;
        let name = segment.file_name();
        let is_same = |note: &&SegmentNote| {
            let described = self.described.lock();
            note.name == name || described.get(&note.name).is_some_and(|known| known.hash == segment.hash)
        };
        if let Some(known) = before.segments.iter().find(is_same) {
            return Ok(SegmentNote { dead: segment.dead.clone(), ..known.clone() });
        }
        let path = self.folder().join(&name);
        fetch(self.folder(), &path, segment, get)?;
        let mut described = segment.clone();
        described.dead.clear();
        self.described.lock().insert(name.clone(), described);
        Ok(SegmentNote {
            name,
            length: segment.length,
            documents: segment.documents,
            text_bytes: segment.text_bytes,
            model: self.model().to_owned(),
            reader: self.reader(),
            dead: segment.dead.clone(),
            stamp: FileStamp::of(&path).ok(),
        })
    }
}

/// Reads a file to its end, piece by piece.
fn describe(
    mut file: File,
    note: &SegmentNote,
    has: &dyn Fn(&str) -> bool,
    put: &mut dyn FnMut(&str, &[u8]) -> io::Result<()>,
) -> Result<SharedSegment> {
    let (mut whole, mut pieces, mut bytes) = (blake3::Hasher::new(), Vec::new(), Vec::new());
    loop {
        bytes.clear();
        (&mut file).take(PIECE as u64).read_to_end(&mut bytes)?;
        if bytes.is_empty() {
            break;
        }
        whole.update(&bytes);
        let name = blake3::hash(&bytes).to_hex().to_string();
        if !has(&name) {
            put(&name, &bytes)?;
        }
        pieces.push(name);
    }
    Ok(SharedSegment {
        hash: whole.finalize().to_hex().to_string(),
        length: note.length,
        documents: note.documents,
        text_bytes: note.text_bytes,
        dead: Vec::new(),
        pieces,
    })
}

/// Writes a file from its pieces. It gets its name when it is whole and durable.
fn fetch(
    folder: &Path,
    path: &Path,
    segment: &SharedSegment,
    get: &mut dyn FnMut(&str, usize) -> io::Result<Vec<u8>>,
) -> Result<()> {
    let damaged = |what: &str| Error::damaged(segment.file_name(), what);
    let mut file = tempfile::Builder::new().prefix("segment-").suffix(".part").tempfile_in(folder)?;
    let mut whole = blake3::Hasher::new();
    for (at, piece) in segment.pieces.iter().enumerate() {
        let length = segment.length_of(at);
        let bytes = get(piece, length)?;
        if bytes.len() != length || blake3::hash(&bytes).to_hex().as_str() != piece {
            return Err(damaged("a piece does not match its hash"));
        }
        whole.update(&bytes);
        file.write_all(&bytes)?;
    }
    if whole.finalize().to_hex().as_str() != segment.hash {
        return Err(damaged("it does not match its hash"));
    }
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
