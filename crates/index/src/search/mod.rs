//! Searching a view by keywords, by meaning, or by both.

mod fusion;
mod keyword;
mod meaning;
mod question;
mod rank;
mod resolve;

pub use question::Question;
pub use rank::{Hit, Hits, Kind, Unit};
pub use resolve::{Correcting, Correction, Lexicon, Marker, Resolved, folded};

use crate::{Cosines, DerivedKey, Filter, Result, View, bits::Bits, vector::DIMENSIONS};

/// A search in progress: the view, the documents that may be seen, and the resolved query.
pub struct Search<'a> {
    pub(crate) view: &'a View,
    pub(crate) allowed: Vec<Bits>,
    /// The query, resolved to words of the library.
    pub resolved: Resolved,
}

/// A request for one page of hits.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// Which legs to search: keyword, vector or both.
    pub kind: Kind,
    /// What counts as one hit.
    pub unit: Unit,
    /// The query's vector, if the vector leg is searched.
    pub vector: Option<&'a [f32; DIMENSIONS]>,
    /// Whether any word of the query is a word of the language or of the library. If none is, the built-in vectors are
    /// not searched.
    pub has_words: bool,
    /// The name of a document, if the query looks like one: documents whose path is or ends with it come first.
    pub named: Option<&'a str>,
    /// Cosines of a remote model, used instead of the built-in vectors.
    pub cosines: Option<&'a Cosines>,
    /// The minimum score of a hit, from 0 to 1.
    pub min_score: f32,
    /// The number of hits to skip.
    pub from: usize,
    /// The maximum number of hits.
    pub limit: usize,
}

impl View {
    /// Starts a search among the documents that pass `filter`. Typing errors are corrected if allowed.
    pub fn search(
        &self,
        question: &Question,
        correcting: Option<Correcting<'_>>,
        filter: &Filter,
    ) -> Result<Search<'_>> {
        let allowed = self.allowed(filter);
        let resolved = self.resolve(question, correcting, &allowed)?;
        Ok(Search { view: self, allowed, resolved })
    }
}

impl Search<'_> {
    /// Whether any document has what the query requires.
    pub fn has_words(&self) -> Result<bool> {
        rank::has_words(self)
    }

    /// Ranks the hits and returns one page.
    pub fn page(&self, wanted: &Wanted<'_>) -> Result<Hits> {
        rank::page(self, wanted)
    }

    /// Where the derived data has the text of a hit's document, if it differs from the document's bytes.
    pub fn text_key(&self, hit: &Hit) -> Option<DerivedKey> {
        let placed = self.view.segments.get(hit.segment)?;
        placed.segment.text_key(&placed.segment.document(hit.document))
    }
}
