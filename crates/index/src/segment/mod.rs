//! A segment: an immutable set of documents with everything that searches need.
//!
//! [`Builder`] collects documents, [`archive`] seals their parts into one file (or keeps them in memory), and
//! [`Segment`] reads them. A segment never changes; which of its documents are still live is recorded elsewhere.

pub(crate) mod archive;
mod build;
mod leads;
mod mentions;
mod merge;
mod tables;
#[cfg(test)]
mod tests;
mod vocabulary;

use std::{path::PathBuf, sync::Arc};

use archive::Archive;
pub use build::{Builder, Built, Entry, EntryPassage, Grep, Part};
use leads::Leads;
use mentions::Mentions;
pub(crate) use merge::{merge, with_vectors};
use parking_lot::Mutex;
use shelf_base::ids::CollectionId;
pub use tables::Span;
use tables::{CONVERTED, Tables};
pub(crate) use tables::{DocumentRow, PassageRow};
use tantivy::{
    Index, InvertedIndexReader, SegmentReader, directory::OwnedBytes, postings::TermInfo,
    schema::IndexRecordOption,
};
use vocabulary::{Sort, Vocabulary};

use crate::{
    DerivedKey, Error, Result,
    bits::Bits,
    text::{self, Fields, Stems},
    trigram::{Needs, Trigrams, Word},
    vector::Vectors,
};

/// A prefix that more words share than this is not worth looking up.
const BEGINNINGS: usize = 256;
/// Reading this few candidates is faster than narrowing them down.
const FEW: usize = 2;
/// Reading this few candidates is faster than scanning a vocabulary.
const FEW_FOR_LETTERS: usize = 16;
/// Reading this few candidates is faster than building a vocabulary.
const FEW_AT_FIRST: usize = 64;
/// A substring that more words contain than this is not worth looking up.
const ALIKE: usize = 4_096;

/// A sealed segment.
pub(crate) struct Segment {
    archive: Archive,
    index: Index,
    reader: SegmentReader,
    fields: Fields,
    tables: Tables,
    numbers: OwnedBytes,
    paths: OwnedBytes,
    trigrams: Trigrams,
    pub(crate) mentions: Mentions,
    pub(crate) vectors: Vectors,
    leads: Leads,
    pub(crate) stems: Stems,
    plain: Gathered,
    identifiers: Gathered,
}

/// The vocabulary of one kind: not needed yet (`None`), too large (`Some(None)`), or built.
type Gathered = Mutex<Option<Option<Arc<Vocabulary>>>>;

impl Segment {
    pub(crate) fn open(archive: Archive) -> Result<Self> {
        let mut index = Index::open(archive.clone())?;
        index.set_tokenizers(text::tokenizers());
        let reader = text::only_segment(&index)?;
        let tables = Tables::open(archive.part("documents")?, archive.part("passages")?)?;
        let vectors = Vectors::open([
            archive.part("vector.bytes")?,
            archive.part("vector.scales")?,
            archive.part("vector.codes")?,
            archive.part("vector.deep")?,
        ])?;
        if vectors.count() != tables.passages() || reader.max_doc() as usize != tables.passages() {
            return Err(Error::damaged("segment", "its parts have different numbers of passages"));
        }
        let numbers = archive.part("numbers")?;
        if numbers.len() != 12 * tables.documents() {
            return Err(Error::damaged("numbers", "its length does not match the number of documents"));
        }
        let mentions = Mentions::open(
            archive.part("facts")?,
            archive.part("facts.ends")?,
            archive.part("mentions")?,
            tables.documents(),
        )?;
        let leads = Leads::open(archive.part("leads")?, archive.part("leads.places")?, tables.passages())?;
        Ok(Self {
            mentions,
            fields: text::schema().1,
            index,
            reader,
            tables,
            numbers,
            vectors,
            leads,
            paths: archive.part("paths")?,
            trigrams: Trigrams::open(archive.part("trigrams")?)?,
            stems: Stems::open(archive.part("stems")?)?,
            plain: Gathered::default(),
            identifiers: Gathered::default(),
            archive,
        })
    }

    /// The name of its file, if it is on disk.
    pub(crate) fn file_name(&self) -> Option<&str> {
        self.archive.file_name()
    }

    pub(crate) fn documents(&self) -> usize {
        self.tables.documents()
    }

    pub(crate) fn passages(&self) -> usize {
        self.tables.passages()
    }

    pub(crate) fn document(&self, at: usize) -> DocumentRow {
        self.tables.document(at)
    }

    pub(crate) fn passage(&self, at: usize) -> PassageRow {
        self.tables.passage(at)
    }

    pub(crate) fn document_of(&self, passage: usize) -> usize {
        self.tables.document_of(passage)
    }

    pub(crate) fn tokens_of(&self, passage: usize) -> u32 {
        self.tables.tokens_of(passage)
    }

    /// The words of a passage that stand elsewhere.
    pub(crate) fn lead(&self, passage: usize) -> &str {
        self.leads.of(passage)
    }

    /// The number of tokens of all documents.
    pub(crate) const fn tokens(&self) -> u64 {
        self.tables.tokens
    }

    pub(crate) fn number(&self, document: usize) -> i64 {
        self.tables.number(document)
    }

    pub(crate) fn path(&self, document: &DocumentRow) -> &str {
        let (at, length) = document.path;
        let bytes = self.paths.get(at as usize..at as usize + length as usize).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    /// Where the derived data has the text of a document, if it differs from the document's bytes.
    pub(crate) fn text_key(&self, document: &DocumentRow) -> Option<DerivedKey> {
        let is_converted = document.flags & CONVERTED != 0;
        is_converted.then_some(DerivedKey { content: document.hash, variant: document.text_variant })
    }

    /// The rows of the document with this number: one, or one for each of its pieces.
    pub(crate) fn find(&self, number: i64) -> impl Iterator<Item = usize> {
        let rows = self.numbers.as_chunks::<12>().0;
        let number_of = |row: &[u8; 12]| row.first_chunk::<8>().map_or(0, |bytes| i64::from_le_bytes(*bytes));
        let first = rows.partition_point(|row| number_of(row) < number);
        let own = rows[first..].iter().take_while(move |row| number_of(row) == number);
        own.filter_map(|row| row.last_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes) as usize))
    }

    /// Whether any document has several rows.
    pub(crate) const fn has_pieces(&self) -> bool {
        self.tables.has_pieces
    }

    /// The number of documents among these rows, not counting later pieces.
    pub(crate) fn count(&self, live: &Bits) -> usize {
        if !self.tables.has_pieces {
            return live.count();
        }
        live.iter().filter(|row| !self.tables.later.has(*row)).count()
    }

    /// Keeps only one row of each document.
    pub(crate) fn drop_later_pieces(&self, documents: &mut Bits) {
        if self.tables.has_pieces {
            self.tables.later.iter().for_each(|row| documents.clear(row));
        }
    }

    /// The inverted index of passage bodies.
    pub(crate) fn body(&self) -> Result<Arc<InvertedIndexReader>> {
        Ok(self.reader.inverted_index(self.fields.body)?)
    }

    /// The inverted index of document names.
    pub(crate) fn name(&self) -> Result<Arc<InvertedIndexReader>> {
        Ok(self.reader.inverted_index(self.fields.name)?)
    }

    /// Documents that a pattern with these needs may match. Words narrow the candidates further where that pays off,
    /// except for documents whose indexed words are not exactly those of their bytes.
    pub(crate) fn candidates(&self, needs: &Needs, words: &[Word]) -> Result<Bits> {
        let mut bits = needs.documents(&self.trigrams, self.documents());
        bits.unite(&self.tables.always);
        bits.intersect(&self.tables.patterns);
        for word in words {
            if bits.count() <= self.too_few_for(word) {
                continue;
            }
            let Some(mut holders) = self.holders(word)? else { continue };
            for at in bits.iter().filter(|at| !self.tables.worded.has(*at)) {
                holders.set(at);
            }
            bits.intersect(&holders);
        }
        Ok(bits)
    }

    /// Documents with this word in their text; `None` if it is not selective enough.
    fn holders(&self, word: &Word) -> Result<Option<Bits>> {
        let words = self.body()?;
        let infos: Vec<TermInfo> = match word {
            Word::Whole(word) => words.terms().get(word.as_bytes())?.into_iter().collect(),
            Word::Beginning(start) => {
                let mut infos = Vec::new();
                let mut found = words.terms().range().ge(start.as_bytes()).into_stream()?;
                while found.advance() && found.key().starts_with(start.as_bytes()) {
                    if infos.len() == BEGINNINGS {
                        return Ok(None);
                    }
                    infos.push(found.value().clone());
                }
                infos
            }
            Word::Inside(letters) | Word::End(letters) => {
                let Some(vocabulary) = self.vocabulary(sort_of(letters))? else { return Ok(None) };
                let at_end = matches!(word, Word::End(_));
                let Some(found) = vocabulary.with(letters, at_end, ALIKE) else { return Ok(None) };
                let mut infos = vocabulary.cut.clone();
                infos.extend(found);
                infos
            }
        };
        // A word that occurs in most passages does not narrow anything.
        let passages: u64 = infos.iter().map(|info| u64::from(info.doc_freq)).sum();
        if 2 * passages > self.passages() as u64 {
            return Ok(None);
        }
        let mut bits = Bits::none(self.documents());
        for info in infos {
            let mut postings = words.read_block_postings_from_terminfo(&info, IndexRecordOption::Basic)?;
            while !postings.docs().is_empty() {
                postings.docs().iter().for_each(|passage| bits.set(self.document_of(*passage as usize)));
                postings.advance();
            }
        }
        Ok(Some(bits))
    }

    /// With this many candidates or fewer, it is not worth looking up the word.
    fn too_few_for(&self, word: &Word) -> usize {
        match word {
            Word::Whole(_) | Word::Beginning(_) => FEW,
            Word::Inside(letters) | Word::End(letters)
                if self.gathered(sort_of(letters)).lock().is_some() =>
            {
                FEW_FOR_LETTERS
            }
            Word::Inside(_) | Word::End(_) => FEW_AT_FIRST,
        }
    }

    const fn gathered(&self, sort: Sort) -> &Gathered {
        match sort {
            Sort::Plain => &self.plain,
            Sort::Identifiers => &self.identifiers,
        }
    }

    /// The vocabulary of one kind, built on first use.
    fn vocabulary(&self, sort: Sort) -> Result<Option<Arc<Vocabulary>>> {
        if let Some(known) = &*self.gathered(sort).lock() {
            return Ok(known.clone());
        }
        let made = Vocabulary::of(&*self.body()?, sort)?.map(Arc::new);
        Ok(self.gathered(sort).lock().get_or_insert(made).clone())
    }

    /// The number of these documents that can be searched by pattern.
    pub(crate) fn searchable(&self, documents: &Bits) -> u64 {
        let mut searchable = self.tables.patterns.clone();
        searchable.intersect(documents);
        searchable.count() as u64
    }

    /// Keeps only documents that cannot be searched by pattern.
    pub(crate) fn keep_silent(&self, documents: &mut Bits) {
        documents.remove(&self.tables.patterns);
    }

    /// Keeps only documents of collections that `allowed` accepts.
    pub(crate) fn keep_collections(&self, documents: &mut Bits, allowed: impl Fn(&CollectionId) -> bool) {
        let allowed: Vec<bool> = self.tables.collections.iter().map(allowed).collect();
        if allowed.iter().all(|allowed| *allowed) {
            return;
        }
        for (at, place) in self.tables.collection_of.iter().enumerate() {
            if !allowed[*place as usize] {
                documents.clear(at);
            }
        }
    }

    /// Releases the resident pages of the mapped file.
    pub(crate) fn release_pages(&self) {
        self.archive.release_pages();
    }

    /// Drops the vocabularies.
    pub(crate) fn forget_words(&self) {
        *self.plain.lock() = None;
        *self.identifiers.lock() = None;
    }

    /// Verifies every part against its hash.
    pub(crate) fn verify(&self) -> Result<()> {
        self.archive.verify()
    }

    /// The total size in bytes of the parts whose names start with `prefix`.
    pub(crate) fn sizes(&self, prefix: &str) -> u64 {
        self.archive.sizes(prefix)
    }
}

fn sort_of(letters: &str) -> Sort {
    if letters.contains('_') { Sort::Identifiers } else { Sort::Plain }
}

/// Tantivy's files of an index that was written as one segment.
fn word_files(index: &Index) -> Result<Vec<PathBuf>> {
    let directory = index.directory();
    let mut names: Vec<PathBuf> = directory.list_managed_files().into_iter().collect();
    names.extend(["meta.json", ".managed.json"].map(PathBuf::from));
    names.sort();
    names.dedup();
    names.retain(|name| tantivy::Directory::exists(directory, name).unwrap_or(false));
    Ok(names)
}
