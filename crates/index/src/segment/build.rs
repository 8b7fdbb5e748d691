//! Builds segments.

use std::collections::HashSet;

use shelf_base::{Digest, ids::CollectionId};
use tantivy::{IndexBuilder, SingleSegmentIndexWriter, directory::RamDirectory};

use super::{
    Segment,
    archive::{Archive, Content, Parts, words_from_memory},
    leads::LeadsBuilder,
    mentions::MentionsBuilder,
    tables::{ALWAYS, CONVERTED, DocumentRow, FIRST_PIECE, LATER_PIECE, PATTERNS, PassageRow, Span, WORDED},
};
use crate::{
    Result,
    text::{self, Fields, StemsBuilder},
    trigram::{MOST_DOCUMENTS, TrigramsBuilder},
    vector::{DIMENSIONS, VectorsBuilder},
};

/// The memory budget that sizes tantivy's tables; they grow as needed.
const WORD_TABLES: usize = 4 << 20;

/// The memory that a segment may take while it is being built.
const FULL: usize = 88 << 20;

/// How pattern searches treat a document.
#[derive(Clone, Copy, Debug)]
pub enum Grep<'a> {
    /// It is never searched by pattern.
    Never,
    /// It is found by the trigrams of these bytes.
    Bytes(&'a [u8]),
    /// It is always a candidate, because it has no trigrams.
    Always,
}

/// One passage to index.
#[derive(Clone, Debug)]
pub struct EntryPassage {
    /// Its location in the document.
    pub span: Span,
    /// Its number of tokens, those of its lead included.
    pub tokens: u32,
    /// Words that count as its own although they stand elsewhere: the title and the headings above it.
    pub lead: String,
    /// Its vector: a unit vector or zero.
    pub vector: [f32; DIMENSIONS],
}

/// Which part of its document an entry is. Large documents are indexed in pieces, to bound the memory that a document
/// takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// The whole document.
    #[default]
    Whole,
    /// The first piece; more entries with the same number follow.
    First,
    /// A later piece.
    Later {
        /// The offset of its text in the text of the document.
        text_start: u32,
        /// The number of passages in earlier pieces.
        first_ordinal: u32,
    },
}

/// One document to index, or a piece of one.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// Its number in the catalog.
    pub number: i64,
    /// The SHA-256 of its content.
    pub hash: Digest,
    /// Its collection.
    pub collection: CollectionId,
    /// Its path.
    pub path: &'a str,
    /// Searchable in addition to its text: its title, and its path if a person chose it.
    pub name: &'a str,
    /// Its text; empty if it has none.
    pub text: &'a str,
    /// Where the derived data has the text, if it differs from the document's bytes.
    pub text_variant: Option<u64>,
    /// Whether the text covers all of the document's bytes.
    pub is_whole: bool,
    /// The passages of the text.
    pub passages: Vec<EntryPassage>,
    /// How pattern searches treat it; they ignore later pieces.
    pub grep: Grep<'a>,
    /// Which part of its document it is.
    pub part: Part,
    /// What was read from it beside its text, as a record that the index does not look into.
    pub facts: &'a [u8],
    /// Keys of what it mentions.
    pub mentions: &'a [u32],
}

/// Collects documents into a segment.
pub struct Builder {
    words: SingleSegmentIndexWriter,
    directory: RamDirectory,
    fields: Fields,
    numbers: HashSet<i64>,
    documents: Vec<DocumentRow>,
    passages: Vec<u8>,
    passage_count: u32,
    paths: Vec<u8>,
    trigrams: TrigramsBuilder,
    mentions: MentionsBuilder,
    vectors: VectorsBuilder,
    leads: LeadsBuilder,
    text_bytes: usize,
}

impl Builder {
    /// An empty builder.
    pub fn new() -> Result<Self> {
        let (schema, fields) = text::schema();
        let directory = RamDirectory::create();
        let words = IndexBuilder::new()
            .schema(schema)
            .tokenizers(text::tokenizers())
            .single_segment_index_writer(directory.clone(), WORD_TABLES)?;
        Ok(Self {
            words,
            directory,
            fields,
            numbers: HashSet::new(),
            documents: Vec::new(),
            passages: Vec::new(),
            passage_count: 0,
            paths: Vec::new(),
            trigrams: TrigramsBuilder::default(),
            mentions: MentionsBuilder::default(),
            vectors: VectorsBuilder::default(),
            leads: LeadsBuilder::default(),
            text_bytes: 0,
        })
    }

    /// Adds a document; one that was already added is ignored.
    pub fn add(&mut self, entry: &Entry<'_>) -> Result<()> {
        let (text_start, first_ordinal, piece) = match entry.part {
            Part::Whole => (0, 0, 0),
            Part::First => (0, 0, FIRST_PIECE),
            Part::Later { text_start, first_ordinal } => (text_start, first_ordinal, LATER_PIECE),
        };
        let is_later = piece == LATER_PIECE;
        if !self.numbers.insert(entry.number) && !is_later {
            return Ok(());
        }
        let document = self.documents.len() as u32;
        let first_passage = self.passage_count;
        // A document without text is still found by its name, so it gets an empty passage.
        let nothing =
            [EntryPassage { span: NOWHERE, tokens: 0, lead: String::new(), vector: [0.0; DIMENSIONS] }];
        let passages = if entry.passages.is_empty() { &nothing[..] } else { &entry.passages };
        for (at, passage) in passages.iter().enumerate() {
            let within = |at: u32| at.saturating_sub(text_start) as usize;
            let body =
                entry.text.get(within(passage.span.start)..within(passage.span.end)).unwrap_or_default();
            let name = (at == 0 && !is_later).then_some(entry.name);
            self.words.add_document(text::document(self.fields, &passage.lead, body, name))?;
            PassageRow { document, tokens: passage.tokens, span: passage.span }.write(&mut self.passages);
            self.vectors.add(&passage.vector);
            self.leads.add(&passage.lead);
        }
        self.passage_count += passages.len() as u32;
        let (bytes, mut flags) = match entry.grep {
            Grep::Never => (&[][..], 0),
            Grep::Bytes(bytes) => (bytes, PATTERNS),
            Grep::Always => (&[][..], PATTERNS | ALWAYS),
        };
        flags |= piece;
        if entry.is_whole && entry.text_variant.is_none() {
            flags |= WORDED;
        }
        self.trigrams.add(bytes);
        self.mentions.add(entry.facts, entry.mentions.iter().copied());
        if entry.text_variant.is_some() {
            flags |= CONVERTED;
        }
        self.documents.push(DocumentRow {
            number: entry.number,
            hash: entry.hash,
            collection: entry.collection,
            first_passage,
            passages: passages.len() as u32,
            tokens: passages.iter().map(|passage| passage.tokens).sum(),
            flags,
            first_ordinal,
            path: place(&mut self.paths, entry.path.as_bytes()),
            text_variant: entry.text_variant.unwrap_or(0),
        });
        self.text_bytes += entry.text.len();
        Ok(())
    }

    /// The number of documents added so far.
    pub fn documents(&self) -> usize {
        self.documents.len()
    }

    /// Whether the segment is large enough to be written, judged by the memory it takes.
    pub fn is_full(&self) -> bool {
        let vectors = self.passage_count as usize * DIMENSIONS;
        let memory = self.words.mem_usage() + 2 * self.trigrams.memory() + self.mentions.memory() + vectors;
        memory > FULL || self.documents.len() as u32 >= MOST_DOCUMENTS / 2
    }

    /// Finishes the segment.
    pub fn finish(self) -> Result<Built> {
        let index = self.words.finalize()?;
        let mut parts = Parts::new();
        let reader = text::only_segment(&index)?;
        parts.insert("stems".into(), Content::Bytes(stems(&reader, self.fields)?));
        let names = super::word_files(&index)?;
        words_from_memory(&self.directory, &names, &mut parts)?;
        let mut keep = |name: &str, bytes| parts.insert(name.to_owned(), Content::Bytes(bytes));
        for (name, bytes) in
            self.vectors.finish().into_iter().chain(self.mentions.finish()).chain(self.leads.finish())
        {
            keep(name, bytes);
        }
        keep("trigrams", self.trigrams.finish());
        keep("passages", self.passages);
        keep("paths", self.paths);
        keep("numbers", numbers(&self.documents));
        let mut rows = Vec::new();
        self.documents.iter().for_each(|row| row.write(&mut rows));
        keep("documents", rows);
        Ok(Built {
            parts,
            documents: self.documents.len() as u32,
            text_bytes: self.text_bytes as u64,
            folder: None,
        })
    }
}

const NOWHERE: Span = Span { start: 0, end: 0, first_line: 1, last_line: 1, first_page: 0, last_page: 0 };

/// Appends bytes and returns their offset and length.
pub(super) fn place(to: &mut Vec<u8>, bytes: &[u8]) -> (u64, u32) {
    let at = to.len() as u64;
    to.extend_from_slice(bytes);
    (at, bytes.len() as u32)
}

/// The documents' numbers, sorted, each with its row.
pub(super) fn numbers(documents: &[DocumentRow]) -> Vec<u8> {
    let mut order: Vec<(i64, u32)> =
        documents.iter().enumerate().map(|(at, row)| (row.number, at as u32)).collect();
    order.sort_unstable();
    order.iter().flat_map(|(number, at)| [&number.to_le_bytes()[..], &at.to_le_bytes()].concat()).collect()
}

/// The stem table of a segment's words.
pub(super) fn stems(reader: &tantivy::SegmentReader, fields: Fields) -> Result<Vec<u8>> {
    let mut builder = StemsBuilder::default();
    for field in [fields.body, fields.name] {
        let inverted = reader.inverted_index(field)?;
        let mut words = inverted.terms().stream()?;
        while words.advance() {
            if let Ok(word) = std::str::from_utf8(words.key()) {
                builder.add(word);
            }
        }
    }
    Ok(builder.finish())
}

/// A finished segment that has not been written or opened yet.
pub struct Built {
    pub(crate) parts: Parts,
    pub(crate) documents: u32,
    pub(crate) text_bytes: u64,
    /// Keeps the files of a merge alive until they are copied.
    pub(crate) folder: Option<tempfile::TempDir>,
}

impl Built {
    /// Opens the segment in memory.
    pub(crate) fn in_memory(self) -> Result<Segment> {
        let archive = Archive::in_memory(self.parts)?;
        drop(self.folder);
        Segment::open(archive)
    }
}
