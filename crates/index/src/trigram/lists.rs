//! The encoded posting lists: for each trigram the documents that contain it, as differences or, for frequent trigrams,
//! as a bitmap.

use tantivy::directory::OwnedBytes;

use crate::{Error, Result, bits::Bits};

/// Bytes of a directory row: trigram and the high 8 bits of the offset, the low 32 bits of the offset, count.
const ROW: usize = 12;
/// The bit of the count that marks a list stored as a bitmap.
const AS_BITS: u32 = 1 << 31;

/// Writes lists; they must be added in the order of their trigrams.
pub(crate) struct Writer {
    documents: u32,
    rows: Vec<u8>,
    lists: Vec<u8>,
}

impl Writer {
    pub(crate) fn new(documents: u32) -> Self {
        Self { documents, rows: Vec::new(), lists: Vec::new() }
    }

    pub(crate) fn add(&mut self, gram: u32, list: impl Iterator<Item = u32> + Clone) {
        let offset = self.lists.len() as u64;
        let (mut before, mut count) = (0, 0_u32);
        for document in list.clone() {
            push_number(&mut self.lists, document - before);
            (before, count) = (document, count + 1);
        }
        let bitmap = self.documents.div_ceil(8) as usize;
        if self.lists.len() - offset as usize > bitmap {
            self.lists.truncate(offset as usize);
            self.lists.resize(offset as usize + bitmap, 0);
            let bits = &mut self.lists[offset as usize..];
            list.for_each(|document| bits[document as usize / 8] |= 1 << (document % 8));
            count |= AS_BITS;
        }
        self.rows.extend_from_slice(&(gram | ((offset >> 32) as u32) << 24).to_le_bytes());
        self.rows.extend_from_slice(&(offset as u32).to_le_bytes());
        self.rows.extend_from_slice(&count.to_le_bytes());
    }

    /// Returns the encoding: document count u32, row count u32, the rows, the lists.
    pub(crate) fn finish(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8 + self.rows.len() + self.lists.len());
        bytes.extend_from_slice(&self.documents.to_le_bytes());
        bytes.extend_from_slice(&((self.rows.len() / ROW) as u32).to_le_bytes());
        bytes.extend_from_slice(&self.rows);
        bytes.extend_from_slice(&self.lists);
        bytes
    }
}

fn push_number(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The lists of a segment.
pub(crate) struct Trigrams {
    bytes: OwnedBytes,
    documents: u32,
    rows: usize,
}

struct Row {
    gram: u32,
    offset: usize,
    count: u32,
    as_bits: bool,
}

impl Trigrams {
    pub(crate) fn open(bytes: OwnedBytes) -> Result<Self> {
        let number = |at: usize| bytes.get(at..at + 4).map(|four| number_at(four, 0));
        let (Some(documents), Some(rows)) = (number(0), number(4)) else { return Err(damaged()) };
        let rows = rows as usize;
        if bytes.len() < 8 + rows * ROW {
            return Err(damaged());
        }
        Ok(Self { bytes, documents, rows })
    }

    fn row(&self, at: usize) -> Row {
        let row = &self.bytes[8 + at * ROW..][..ROW];
        let first = number_at(row, 0);
        let count = number_at(row, 8);
        Row {
            gram: first & 0xFF_FFFF,
            offset: (first >> 24) as usize * (1 << 32) + number_at(row, 4) as usize,
            count: count & !AS_BITS,
            as_bits: count & AS_BITS != 0,
        }
    }

    fn list(&self, at: usize) -> (Row, &[u8]) {
        let lists = &self.bytes[8 + self.rows * ROW..];
        let row = self.row(at);
        let end = if at + 1 < self.rows { self.row(at + 1).offset } else { lists.len() };
        let list = lists.get(row.offset..end).unwrap_or_default();
        (row, list)
    }

    fn find(&self, gram: u32) -> Option<usize> {
        let (mut low, mut high) = (0, self.rows);
        while low < high {
            let middle = low.midpoint(high);
            match self.row(middle).gram.cmp(&gram) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(middle),
            }
        }
        None
    }

    /// The number of documents that contain the trigram.
    pub(super) fn count(&self, gram: u32) -> u32 {
        self.find(gram).map_or(0, |at| self.row(at).count)
    }

    /// The documents that contain the trigram.
    pub(super) fn documents(&self, gram: u32) -> Bits {
        let mut bits = Bits::none(self.documents as usize);
        let Some(at) = self.find(gram) else { return bits };
        let (row, list) = self.list(at);
        if row.as_bits {
            bits.unite_bytes(list);
        } else {
            self.each(at, |document| bits.set(document as usize));
        }
        bits
    }

    /// Calls `each` with every document of a list.
    fn each(&self, at: usize, mut each: impl FnMut(u32)) {
        let (row, list) = self.list(at);
        if row.as_bits {
            for (byte, bits) in list.iter().enumerate() {
                (0..8).filter(|bit| bits >> bit & 1 == 1).for_each(|bit| each((8 * byte + bit) as u32));
            }
            return;
        }
        let (mut document, mut rest) = (0_u32, list);
        while let Some((first, after)) = rest.split_first() {
            rest = after;
            let mut number = u32::from(first & 0x7F);
            // Fast path: most differences are below 128 and take one byte.
            if first & 0x80 != 0 {
                let mut shift = 7;
                while let Some((byte, after)) = rest.split_first() {
                    rest = after;
                    number |= u32::from(byte & 0x7F) << shift;
                    if byte & 0x80 == 0 {
                        break;
                    }
                    shift = (shift + 7).min(28);
                }
            }
            document = document.wrapping_add(number);
            if document < self.documents {
                each(document);
            }
        }
    }

    /// Merges the lists of several segments. `places[s][d]` is the new row of document `d` of segment `s`, or `None` if
    /// the document is dropped; new rows are in ascending order.
    pub(crate) fn merge(segments: &[&Self], places: &[Vec<Option<u32>>], documents: u32) -> Vec<u8> {
        let mut writer = Writer::new(documents);
        let mut next = vec![0; segments.len()];
        let mut merged: Vec<u32> = Vec::new();
        loop {
            let heads = segments.iter().zip(&next).filter(|(segment, at)| **at < segment.rows);
            let Some(gram) = heads.map(|(segment, at)| segment.row(*at).gram).min() else { break };
            merged.clear();
            for ((segment, at), places) in segments.iter().zip(&mut next).zip(places) {
                if *at < segment.rows && segment.row(*at).gram == gram {
                    segment.each(*at, |document| {
                        merged.extend(places.get(document as usize).copied().flatten())
                    });
                    *at += 1;
                }
            }
            if !merged.is_empty() {
                writer.add(gram, merged.iter().copied());
            }
        }
        writer.finish()
    }
}

fn number_at(bytes: &[u8], at: usize) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(four)
}

fn damaged() -> Error {
    Error::damaged("trigrams", "its table is malformed")
}
