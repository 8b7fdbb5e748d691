//! The bytes of a backup: sections one after another, each with its hash, and an end that vouches for all of them.
//! `FORMAT.md` describes them. Reading and writing go through the file once, with a small buffer.

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Read, Seek, Write},
    path::Path,
};

use shelf_base::{Digest, Kind};

use crate::{Error, Result};

const MAGIC: &[u8; 8] = b"SHELFBK1";
/// The magic bytes without the digit of the version.
const FAMILY: &[u8] = b"SHELFBK";
const HASH: usize = 32;
const HEADER: usize = 16;
const END: usize = 8 + 32 + 8 + 32;
/// Bytes that are moved at once.
const PIECE: usize = 256 << 10;

/// What a section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    /// A copy of the catalog, as `recovery/catalog.copy` is one.
    Catalog = 1,
    /// A pack.
    Pack = 2,
    /// The end of the backup.
    End = 3,
}

impl Section {
    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Catalog, Self::Pack, Self::End].into_iter().find(|section| *section as u8 == byte)
    }
}

/// What the end of a backup says of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Summary {
    /// The last journal record.
    pub sequence: u64,
    /// Its seal.
    pub seal: Digest,
    /// Number of packs.
    pub packs: u64,
}

/// Writes a backup: sections are begun, written piece by piece, and ended.
pub(super) struct Writer<W: Write> {
    out: BufWriter<W>,
    section: blake3::Hasher,
    /// The name of the present section, and the bytes that are still to come.
    left: (String, u64),
    /// Over the hashes of all sections so far.
    chain: blake3::Hasher,
    packs: u64,
    bytes: u64,
}

impl<W: Write> Writer<W> {
    pub(super) fn begin(out: W) -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(PIECE, out);
        out.write_all(MAGIC)?;
        let (section, chain) = (blake3::Hasher::new(), blake3::Hasher::new());
        Ok(Self { out, section, left: (String::new(), 0), chain, packs: 0, bytes: MAGIC.len() as u64 })
    }

    /// Begins a section of `length` bytes.
    pub(super) fn begin_section(&mut self, section: Section, name: &str, length: u64) -> io::Result<()> {
        let head = header(section, name, length);
        self.section = blake3::Hasher::new();
        self.section.update(&head);
        self.left = (name.to_owned(), length);
        self.packs += u64::from(section == Section::Pack);
        self.bytes += (head.len() + HASH) as u64 + length;
        self.out.write_all(&head)
    }

    /// Writes a piece of the present section.
    pub(super) fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        let left = self.left.1.checked_sub(piece.len() as u64);
        self.left.1 = left.ok_or_else(|| changed_length(&self.left.0))?;
        self.section.update(piece);
        self.out.write_all(piece)
    }

    /// Ends the present section.
    pub(super) fn end_section(&mut self) -> io::Result<()> {
        if self.left.1 > 0 {
            return Err(changed_length(&self.left.0));
        }
        let hash = self.section.finalize();
        self.chain.update(hash.as_bytes());
        self.out.write_all(hash.as_bytes())
    }

    /// Writes the end; the bytes of the whole backup.
    pub(super) fn finish(mut self, sequence: u64, seal: &Digest) -> io::Result<(W, u64)> {
        let mut end = Vec::with_capacity(END);
        end.extend_from_slice(&sequence.to_le_bytes());
        end.extend_from_slice(seal.as_bytes());
        end.extend_from_slice(&self.packs.to_le_bytes());
        end.extend_from_slice(self.chain.finalize().as_bytes());
        self.begin_section(Section::End, "", END as u64)?;
        self.write(&end)?;
        self.end_section()?;
        let bytes = self.bytes;
        Ok((self.out.into_inner().map_err(io::IntoInnerError::into_error)?, bytes))
    }
}

fn changed_length(name: &str) -> io::Error {
    io::Error::other(format!("{name} changed its length while it was copied"))
}

fn header(section: Section, name: &str, length: u64) -> Vec<u8> {
    let mut head = vec![section as u8, name.len().min(255) as u8, 0, 0, 0, 0, 0, 0];
    head.extend_from_slice(&length.to_le_bytes());
    head.extend_from_slice(&name.as_bytes()[..name.len().min(255)]);
    head
}

/// Where a section's content is in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub section: Section,
    pub name: String,
    pub offset: u64,
    pub length: u64,
    /// What precedes the content, which its hash covers too.
    head: Vec<u8>,
}

/// Reads a backup from its beginning to its end, and compares every hash.
pub(super) struct Reader {
    file: BufReader<File>,
    path: String,
    chain: blake3::Hasher,
    packs: u64,
    offset: u64,
    length: u64,
}

impl Reader {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let shown = path.display().to_string();
        let failed = |source| Error::reading(shown.clone(), source);
        let mut file = BufReader::with_capacity(PIECE, File::open(path).map_err(failed)?);
        let length = file.seek(io::SeekFrom::End(0)).map_err(failed)?;
        file.rewind().map_err(failed)?;
        let mut reader =
            Self { file, path: shown, chain: blake3::Hasher::new(), packs: 0, offset: 0, length };
        let mut magic = [0; MAGIC.len()];
        if length < MAGIC.len() as u64 {
            return Err(reader.unusable("it is not a backup of a library"));
        }
        reader.fill(&mut magic)?;
        if &magic != MAGIC {
            let is_newer = magic.starts_with(FAMILY);
            let what =
                if is_newer { "a newer version of shelf made it" } else { "it is not a backup of a library" };
            return Err(reader.unusable(what));
        }
        Ok(reader)
    }

    /// The next section, whose [`content`](Self::content) must be read then; at the end, what that says.
    pub(super) fn next(&mut self) -> Result<Result<Found, Summary>> {
        let mut head = vec![0; HEADER];
        self.fill(&mut head)?;
        let length = u64::from_le_bytes(std::array::from_fn(|at| head[8 + at]));
        let section = Section::from_byte(head[0]).filter(|_| head[2..8] == [0; 6]);
        let Some(section) = section else { return Err(self.changed("an unknown section")) };
        let mut name = vec![0; usize::from(head[1])];
        self.fill(&mut name)?;
        head.extend_from_slice(&name);
        let Ok(name) = String::from_utf8(name) else { return Err(self.changed("the name of a section")) };
        let is_sound = match section {
            Section::Catalog => true,
            Section::Pack => is_pack(&name),
            Section::End => length == END as u64,
        };
        if !is_sound {
            return Err(self.changed("the head of a section"));
        }
        if length > self.length.saturating_sub(self.offset) {
            return Err(self.cut());
        }
        let found = Found { section, name, offset: self.offset, length, head };
        if section != Section::End {
            return Ok(Ok(found));
        }
        let (chain, mut end) = (self.chain.finalize(), Vec::new());
        self.content(&found, |piece| {
            end.extend_from_slice(piece);
            Ok(())
        })?;
        self.summary(&end, &chain).map(Err)
    }

    /// Reads the content of the section that comes next, piece by piece, and compares it with its hash.
    pub(super) fn content(&mut self, found: &Found, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&found.head);
        let mut piece = vec![0; PIECE.min(found.length as usize)];
        let mut left = found.length;
        while left > 0 {
            let now = left.min(PIECE as u64) as usize;
            self.fill(&mut piece[..now])?;
            hasher.update(&piece[..now]);
            take(&piece[..now])?;
            left -= now as u64;
        }
        let mut hash = [0; HASH];
        self.fill(&mut hash)?;
        if hasher.finalize().as_bytes() != &hash {
            let what = if found.name.is_empty() { "its end" } else { &found.name };
            return Err(self.changed(what));
        }
        self.chain.update(&hash);
        self.packs += u64::from(found.section == Section::Pack);
        Ok(())
    }

    fn summary(&self, end: &[u8], chain: &blake3::Hash) -> Result<Summary> {
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| end[at + byte]));
        let summary = Summary {
            sequence: number(0),
            seal: Digest::from_slice(&end[8..40]).ok_or_else(|| self.changed("its end"))?,
            packs: number(40),
        };
        if end[48..] != chain.as_bytes()[..] || summary.packs != self.packs || self.offset != self.length {
            return Err(self.changed("its end"));
        }
        Ok(summary)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.file.read_exact(bytes).map_err(|source| match source.kind() {
            io::ErrorKind::UnexpectedEof => self.cut(),
            _ => Error::reading(self.path.clone(), source),
        })?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    fn cut(&self) -> Error {
        self.unusable(&format!("it is cut off after {} bytes", self.length))
    }

    fn changed(&self, what: &str) -> Error {
        self.unusable(&format!("{what} is not what was written (near byte {})", self.offset))
    }

    fn unusable(&self, what: &str) -> Error {
        Error::Backup {
            what: format!("the backup '{}' cannot be used: {what}", self.path),
            kind: Kind::Corrupt,
            hint: "nothing was restored; use another copy of it, or another backup".into(),
        }
    }
}

/// Whether a section has the name that a pack has: it becomes the name of a file.
fn is_pack(name: &str) -> bool {
    name.strip_suffix(".pack")
        .is_some_and(|stem| stem.len() == 32 && stem.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut writer = Writer::begin(Vec::new()).unwrap();
        let pack = format!("{}.pack", "0a".repeat(16));
        for (section, name, content) in
            [(Section::Catalog, "catalog", "catalog"), (Section::Pack, &pack, "pack")]
        {
            writer.begin_section(section, name, content.len() as u64).unwrap();
            content.bytes().for_each(|byte| writer.write(&[byte]).unwrap());
            writer.end_section().unwrap();
        }
        let (bytes, length) = writer.finish(9, &Digest::of(b"seal")).unwrap();
        assert_eq!(bytes.len() as u64, length);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<(Vec<Found>, Summary), String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("backup");
        std::fs::write(&path, bytes).unwrap();
        let mut reader = Reader::open(&path).map_err(|error| error.to_string())?;
        let mut all = Vec::new();
        loop {
            match reader.next().map_err(|error| error.to_string())? {
                Ok(found) => {
                    reader.content(&found, |_| Ok(())).map_err(|error| error.to_string())?;
                    all.push(found);
                }
                Err(summary) => return Ok((all, summary)),
            }
        }
    }

    #[test]
    fn what_was_written_is_read_and_every_other_byte_is_noticed() {
        let bytes = sample();
        let (found, summary) = read(&bytes).unwrap();
        assert_eq!((summary.sequence, summary.packs, found.len()), (9, 1, 2));
        assert_eq!(&bytes[found[1].offset as usize..][..4], b"pack");
        for at in 0..bytes.len() {
            let error = read(&bytes[..at]).unwrap_err();
            assert!(error.contains("is cut off") || at < 8, "{at}: {error}");
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                assert!(read(&changed).is_err(), "bit {bit} of byte {at}");
            }
        }
        let longer = [&bytes[..], b"x"].concat();
        assert!(read(&longer).unwrap_err().contains("its end is not what was written"));
    }

    #[test]
    fn lengths_must_be_those_that_were_announced() {
        let mut writer = Writer::begin(Vec::new()).unwrap();
        writer.begin_section(Section::Catalog, "c", 3).unwrap();
        assert!(writer.end_section().unwrap_err().to_string().contains("c changed its length"));
        assert!(writer.write(b"four").unwrap_err().to_string().contains("c changed its length"));
    }
}
