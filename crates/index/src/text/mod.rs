//! The full-text index: which words occur in which passages, stored by tantivy, and a table of stems.
//!
//! Words are indexed unstemmed (only folded), with positions. Stemming happens at query time: a table from stems to the
//! words that share them expands a query word to its forms. This way one dictionary serves exact words, phrases,
//! prefixes, stems and spelling correction, which needs real words rather than stems.

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

/// The two indexed fields of a passage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields {
    /// Words of the passage.
    pub body: Field,
    /// Words of the document's title and path; only its first passage has them.
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

/// The tokenizers that the schema refers to.
pub(crate) fn tokenizers() -> TokenizerManager {
    let manager = TokenizerManager::new();
    manager.register(TOKENIZER, WordTokenizer);
    manager
}

/// A passage as a tantivy document. No phrase reaches from its lead into its text.
pub(crate) fn document(fields: Fields, lead: &str, body: &str, name: Option<&str>) -> TantivyDocument {
    let mut document = TantivyDocument::default();
    if !lead.is_empty() {
        document.add_text(fields.body, lead);
    }
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
        _ => Err(tantivy::TantivyError::SystemError("expected exactly one segment".into())),
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
