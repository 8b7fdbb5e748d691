//! Searching a view: words, meaning, or both together.

mod keyword;
mod question;
mod rank;
mod resolve;

pub use question::Question;
pub use rank::{Hit, Hits, Kind, Unit};
pub use resolve::{Correction, Resolved, folded};

use crate::{Cosines, Filter, Result, View, bits::Bits, vector::DIMENSIONS};

/// A search that is under way: the view, what may be seen of it, and the question in the library's own words.
pub struct Search<'a> {
    pub(crate) view: &'a View,
    pub(crate) allowed: Vec<Bits>,
    /// The question in the words of the library.
    pub resolved: Resolved,
}

/// What a page wants.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// Which legs.
    pub kind: Kind,
    /// What counts as one hit.
    pub unit: Unit,
    /// The question's vector, for the legs that need it.
    pub vector: Option<&'a [f32; DIMENSIONS]>,
    /// Cosines of another model, to be used in place of the built-in vectors.
    pub cosines: Option<&'a Cosines>,
    /// Leave out so many first.
    pub from: usize,
    /// At most so many.
    pub limit: usize,
}

impl View {
    /// Begins a search among the documents that `filter` leaves. With a `similarity`, typing errors are corrected.
    pub fn search(
        &self,
        question: &Question,
        similarity: Option<f32>,
        filter: &Filter,
    ) -> Result<Search<'_>> {
        let allowed = self.allowed(filter);
        let resolved = self.resolve(question, similarity, &allowed)?;
        Ok(Search { view: self, allowed, resolved })
    }
}

impl Search<'_> {
    /// Ranks, and gives one page.
    pub fn page(&self, wanted: &Wanted<'_>) -> Result<Hits> {
        rank::page(self, wanted)
    }

    /// The text of a hit's document, when the index keeps it.
    pub fn text(&self, hit: &Hit) -> Result<Option<String>> {
        let Some(placed) = self.view.segments.get(hit.segment) else { return Ok(None) };
        placed.segment.text(&placed.segment.document(hit.document))
    }
}
