//! The word leg: which words stand in which passages, kept by tantivy; stems beside them.
//!
//! Words are indexed exactly as they stand (folded), with positions. Stemming happens when a query is asked: a table
//! from stems to the words that share them widens a query word to its forms. So one list of words serves exact words,
//! phrases, prefixes, stems and the correction of typing errors, which needs real words and not stems.

mod stems;
pub(crate) mod words;

pub(crate) use stems::{Stems, StemsBuilder, stem};
use tantivy::{
    Index, TantivyDocument,
    schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions},
    tokenizer::{Token, TokenStream, Tokenizer, TokenizerManager},
};
use words::Words;

const TOKENIZER: &str = "shelf";

/// The two fields of a passage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields {
    /// Words of the passage.
    pub body: Field,
    /// Words of the document's title and path, on its first passage only.
    pub name: Field,
}

/// The schema of every segment; it is the same for all, so that segments can be merged.
pub(crate) fn schema() -> (Schema, Fields) {
    let mut builder = Schema::builder();
    let indexing = |record| {
        TextFieldIndexing::default().set_tokenizer(TOKENIZER).set_fieldnorms(false).set_index_option(record)
    };
    let options = |record| TextOptions::default().set_indexing_options(indexing(record));
    let body = builder.add_text_field("body", options(IndexRecordOption::WithFreqsAndPositions));
    let name = builder.add_text_field("name", options(IndexRecordOption::Basic));
    (builder.build(), Fields { body, name })
}

/// The tokenizers that the schema names.
pub(crate) fn tokenizers() -> TokenizerManager {
    let manager = TokenizerManager::new();
    manager.register(TOKENIZER, WordTokenizer);
    manager
}

/// A passage as tantivy takes it.
pub(crate) fn document(fields: Fields, body: &str, name: Option<&str>) -> TantivyDocument {
    let mut document = TantivyDocument::default();
    document.add_text(fields.body, body);
    if let Some(name) = name {
        document.add_text(fields.name, name);
    }
    document
}

/// The only segment of an index that was written or merged as one.
pub(crate) fn only_segment(index: &Index) -> tantivy::Result<tantivy::SegmentReader> {
    let segments = index.searchable_segments()?;
    match &segments[..] {
        [segment] => tantivy::SegmentReader::open(segment),
        _ => Err(tantivy::TantivyError::SystemError("not one segment".into())),
    }
}

#[derive(Clone)]
struct WordTokenizer;

struct WordStream<'a> {
    words: Words<'a>,
    token: Token,
}

impl Tokenizer for WordTokenizer {
    type TokenStream<'a> = WordStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> WordStream<'a> {
        WordStream { words: Words::new(text), token: Token::default() }
    }
}

impl TokenStream for WordStream<'_> {
    fn advance(&mut self) -> bool {
        let Some(place) = self.words.next(&mut self.token.text) else { return false };
        self.token.position = place.position;
        self.token.offset_from = place.bytes.start;
        self.token.offset_to = place.bytes.end;
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}
