//! The fixed-width tables of a segment: its documents and its passages.

use shelf_base::{Digest, ids::CollectionId};
use tantivy::directory::OwnedBytes;

use crate::{Error, Result, bits::Bits};

/// Bytes of a document's row.
pub(super) const DOCUMENT: usize = 96;
/// Bytes of a passage's row.
pub(super) const PASSAGE: usize = 32;

/// The document can be searched by pattern.
pub(super) const PATTERNS: u8 = 1;
/// It can be searched by pattern but has no trigrams, so it is always a candidate.
pub(super) const ALWAYS: u8 = 2;
/// Its text differs from the document's bytes and is found in the derived data.
pub(super) const CONVERTED: u8 = 4;
/// Every word of the document's bytes is indexed.
pub(super) const WORDED: u8 = 8;

/// The first of several rows of one large document.
pub(super) const FIRST_PIECE: u8 = 16;
/// A later row of a large document: it has no name and does not count as a document.
pub(super) const LATER_PIECE: u8 = 32;

/// A document of a segment, or a piece of a large one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DocumentRow {
    pub number: i64,
    pub hash: Digest,
    pub collection: CollectionId,
    pub first_passage: u32,
    pub passages: u32,
    pub tokens: u32,
    pub flags: u8,
    /// The ordinal of its first passage in the document; 0 except for later pieces.
    pub first_ordinal: u32,
    /// Offset and length of its path in the part `paths`.
    pub path: (u64, u32),
    /// The variant of its text in the derived data; 0 when its text is the document's bytes.
    pub text_variant: u64,
}

impl DocumentRow {
    /// Whether it is one of several rows of its document.
    pub(crate) const fn is_piece(&self) -> bool {
        self.flags & (FIRST_PIECE | LATER_PIECE) != 0
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.number.to_le_bytes());
        bytes.extend_from_slice(self.hash.as_bytes());
        bytes.extend_from_slice(self.collection.as_bytes());
        for number in [self.first_passage, self.passages, self.tokens, u32::from(self.flags)] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let (at, length) = self.path;
        bytes.extend_from_slice(&at.to_le_bytes());
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&self.first_ordinal.to_le_bytes());
        bytes.extend_from_slice(&self.text_variant.to_le_bytes());
    }
}

/// The location of a passage in its document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First byte in the text.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
    /// First line, from 1.
    pub first_line: u32,
    /// Last line.
    pub last_line: u32,
    /// First page, from 1; 0 if the document has no pages.
    pub first_page: u32,
    /// Last page.
    pub last_page: u32,
}

/// A passage of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PassageRow {
    pub document: u32,
    pub tokens: u32,
    pub span: Span,
}

impl PassageRow {
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        let Span { start, end, first_line, last_line, first_page, last_page } = self.span;
        for number in [self.document, self.tokens, start, end, first_line, last_line, first_page, last_page] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }
}

/// The rows of both tables.
pub(super) struct Tables {
    documents: OwnedBytes,
    passages: OwnedBytes,
    /// The collections of the segment, and the index of each document's collection.
    pub(super) collections: Vec<CollectionId>,
    pub(super) collection_of: Vec<u32>,
    /// Tokens of all documents.
    pub(super) tokens: u64,
    /// Documents that can be searched by pattern, and those of them without trigrams.
    pub(super) patterns: Bits,
    pub(super) always: Bits,
    /// Documents whose indexed words are exactly those of their bytes.
    pub(super) worded: Bits,
    /// Rows that are later pieces of a document, and whether there are any pieces at all.
    pub(super) later: Bits,
    pub(super) has_pieces: bool,
}

impl Tables {
    pub(super) fn open(documents: OwnedBytes, passages: OwnedBytes) -> Result<Self> {
        if !documents.len().is_multiple_of(DOCUMENT) || !passages.len().is_multiple_of(PASSAGE) {
            return Err(Error::damaged("tables", "a row is incomplete"));
        }
        let count = documents.len() / DOCUMENT;
        let mut tables = Self {
            documents,
            passages,
            collections: Vec::new(),
            collection_of: Vec::with_capacity(count),
            tokens: 0,
            patterns: Bits::none(count),
            always: Bits::none(count),
            worded: Bits::none(count),
            later: Bits::none(count),
            has_pieces: false,
        };
        let mut next = 0;
        for at in 0..count {
            let row = tables.document(at);
            if row.first_passage != next {
                return Err(Error::damaged("tables", "documents and passages are inconsistent"));
            }
            next += row.passages;
            tables.tokens += u64::from(row.tokens);
            tables.note(at, &row);
        }
        if next as usize == tables.passages() {
            Ok(tables)
        } else {
            Err(Error::damaged("tables", "passages are missing"))
        }
    }

    /// Caches the attributes of a document that every search needs.
    fn note(&mut self, at: usize, row: &DocumentRow) {
        if row.flags & PATTERNS != 0 {
            self.patterns.set(at);
        }
        if row.flags & ALWAYS != 0 {
            self.always.set(at);
        }
        if row.flags & WORDED != 0 {
            self.worded.set(at);
        }
        if row.flags & LATER_PIECE != 0 {
            self.later.set(at);
        }
        self.has_pieces |= row.flags & (FIRST_PIECE | LATER_PIECE) != 0;
        let same = |known: &CollectionId| *known == row.collection;
        // Neighbours are mostly in the same collection.
        let last = self.collection_of.last().copied().filter(|last| same(&self.collections[*last as usize]));
        let place = last.or_else(|| self.collections.iter().position(same).map(|place| place as u32));
        let place = place.unwrap_or_else(|| {
            self.collections.push(row.collection);
            self.collections.len() as u32 - 1
        });
        self.collection_of.push(place);
    }

    pub(super) fn documents(&self) -> usize {
        self.documents.len() / DOCUMENT
    }

    pub(super) fn passages(&self) -> usize {
        self.passages.len() / PASSAGE
    }

    pub(super) fn document(&self, at: usize) -> DocumentRow {
        let row = &self.documents[at * DOCUMENT..][..DOCUMENT];
        let mut hash = [0; 32];
        hash.copy_from_slice(&row[8..40]);
        DocumentRow {
            number: long(row, 0) as i64,
            hash: Digest::new(hash),
            collection: CollectionId::from_slice(&row[40..56])
                .unwrap_or(CollectionId::new(Default::default())),
            first_passage: short(row, 56),
            passages: short(row, 60),
            tokens: short(row, 64),
            flags: short(row, 68) as u8,
            path: (long(row, 72), short(row, 80)),
            first_ordinal: short(row, 84),
            text_variant: long(row, 88),
        }
    }

    pub(super) fn number(&self, at: usize) -> i64 {
        long(&self.documents, at * DOCUMENT) as i64
    }

    pub(super) fn document_of(&self, passage: usize) -> usize {
        short(&self.passages, passage * PASSAGE) as usize
    }

    pub(super) fn tokens_of(&self, passage: usize) -> u32 {
        short(&self.passages, passage * PASSAGE + 4)
    }

    pub(super) fn passage(&self, at: usize) -> PassageRow {
        let row = &self.passages[at * PASSAGE..][..PASSAGE];
        PassageRow {
            document: short(row, 0),
            tokens: short(row, 4),
            span: Span {
                start: short(row, 8),
                end: short(row, 12),
                first_line: short(row, 16),
                last_line: short(row, 20),
                first_page: short(row, 24),
                last_page: short(row, 28),
            },
        }
    }
}

fn short(bytes: &[u8], at: usize) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(four)
}

fn long(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(eight)
}
