//! Tantivy used directly: the baseline of an in-process search engine on the same words.

use std::borrow::Cow;
use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use rust_stemmers::Algorithm;
use tantivy::collector::TopDocs;
use tantivy::query::QueryParser;
use tantivy::schema::{Field, IndexRecordOption, STORED, Schema, TextFieldIndexing, TextOptions};
use tantivy::snippet::SnippetGenerator;
use tantivy::tokenizer::{
    LowerCaser, RemoveLongFilter, SimpleTokenizer, TextAnalyzer, Token, TokenFilter, TokenStream, Tokenizer,
};
use tantivy::{Index, IndexWriter, Searcher, TantivyDocument, doc};

use super::engines::{Engine, TOP};

/// The name of our analyzer.
const ANALYSIS: &str = "english";
/// The memory budget of the single writer thread in bytes; when it is used up, a segment is written.
const GATHERED: usize = 128 << 20;
/// Longer words are dropped, as in tantivy's default analyzer.
const LONGEST: usize = 40;

/// An index of passages on disk, open for reading.
pub struct Tantivy {
    searcher: Searcher,
    parser: QueryParser,
    text: Field,
}

/// An index under construction.
pub struct Maker {
    index: Index,
    writer: IndexWriter,
    path: Field,
    text: Field,
}

impl Engine for Tantivy {
    type Maker = Maker;

    const NAME: &'static str = "tantivy";

    fn version() -> String {
        format!("{}, in process, one thread, English stemmer", tantivy::version_string())
    }

    fn create(folder: &Path) -> Result<Maker> {
        fs::create_dir_all(folder)?;
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(ANALYSIS)
            .set_index_option(IndexRecordOption::WithFreqsAndPositions);
        let mut schema = Schema::builder();
        let path = schema.add_text_field("path", STORED);
        let text =
            schema.add_text_field("text", TextOptions::default().set_indexing_options(indexing).set_stored());
        let index = Index::create_in_dir(folder, schema.build())?;
        index.tokenizers().register(ANALYSIS, analysis());
        let writer = index.writer_with_num_threads(1, GATHERED)?;
        Ok(Maker { index, writer, path, text })
    }

    fn add(maker: &mut Maker, path: &str, passage: &str) -> Result<()> {
        maker.writer.add_document(doc!(maker.path => path, maker.text => passage))?;
        Ok(())
    }

    fn finish(maker: Maker) -> Result<Self> {
        let Maker { index, mut writer, text, .. } = maker;
        writer.commit()?;
        writer.wait_merging_threads()?;
        let searcher = index.reader()?.searcher();
        Ok(Self { searcher, parser: QueryParser::for_index(&index, vec![text]), text })
    }

    fn search(&mut self, query: &str) -> Result<f64> {
        let start = Instant::now();
        let query = self.parser.parse_query(query)?;
        let top = self.searcher.search(&query, &TopDocs::with_limit(TOP).order_by_score())?;
        let snippets = SnippetGenerator::create(&self.searcher, &query, self.text)?;
        for (_, address) in top {
            let document: TantivyDocument = self.searcher.doc(address)?;
            std::hint::black_box(snippets.snippet_from_doc(&document).to_html());
        }
        Ok(start.elapsed().as_secs_f64() * 1e3)
    }
}

fn analysis() -> TextAnalyzer {
    TextAnalyzer::builder(SimpleTokenizer::default())
        .filter(RemoveLongFilter::limit(LONGEST))
        .filter(LowerCaser)
        .filter(Stemmer)
        .build()
}

/// Stems words; tantivy's own filter is behind a feature that the workspace does not enable.
#[derive(Clone)]
struct Stemmer;

impl TokenFilter for Stemmer {
    type Tokenizer<T: Tokenizer> = Stemming<T>;

    fn transform<T: Tokenizer>(self, inner: T) -> Stemming<T> {
        Stemming { inner }
    }
}

#[derive(Clone)]
struct Stemming<T> {
    inner: T,
}

impl<T: Tokenizer> Tokenizer for Stemming<T> {
    type TokenStream<'a> = Stems<T::TokenStream<'a>>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Self::TokenStream<'a> {
        let stemmer = rust_stemmers::Stemmer::create(Algorithm::English);
        Stems { inner: self.inner.token_stream(text), stemmer }
    }
}

struct Stems<T> {
    inner: T,
    stemmer: rust_stemmers::Stemmer,
}

impl<T: TokenStream> TokenStream for Stems<T> {
    fn advance(&mut self) -> bool {
        if !self.inner.advance() {
            return false;
        }
        let token = self.inner.token_mut();
        match self.stemmer.stem(&token.text) {
            // A borrowed stem is nearly always a prefix of the word.
            Cow::Borrowed(stem) if token.text.starts_with(stem) => {
                let length = stem.len();
                token.text.truncate(length);
            }
            Cow::Borrowed(stem) => token.text = stem.to_owned(),
            Cow::Owned(stem) => token.text = stem,
        }
        true
    }

    fn token(&self) -> &Token {
        self.inner.token()
    }

    fn token_mut(&mut self) -> &mut Token {
        self.inner.token_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::{Engine, Tantivy, analysis};
    use crate::scratch::Scratch;

    #[test]
    fn words_become_lower_case_stems() {
        let mut analysis = analysis();
        let mut stream = analysis.token_stream("Searching the libraries_count");
        let mut words = Vec::new();
        while let Some(token) = stream.next() {
            words.push(token.text.clone());
        }
        assert_eq!(words, ["search", "the", "librari", "count"]);
    }

    #[test]
    fn passages_are_found() {
        let scratch = Scratch::new("tantivy").unwrap();
        let mut maker = Tantivy::create(scratch.path()).unwrap();
        Tantivy::add(&mut maker, "a.md", "the tea is hot\n").unwrap();
        let mut made = Tantivy::finish(maker).unwrap();
        assert_eq!(made.searcher.num_docs(), 1);
        assert!(made.search("hot coffee").unwrap() > 0.0);
    }
}
