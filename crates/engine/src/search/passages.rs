//! Passages within a budget of tokens: what an agent puts into its context.
//!
//! The text that is counted is the text that is given, headings and addresses included, by the tokenizer that ships
//! with the program. So the budget holds exactly, and `tokens` is not an estimate.

use std::collections::HashMap;

use shelf_base::{CallContext, ids::DocumentId};
use shelf_catalog::{Document, Filter};
use shelf_embed::TokenCount;
use shelf_index::{Correcting, Hit, Question, Search, Unit, Wanted};

use super::{SearchKind, SearchRequest, address, check};
use crate::{Caller, Library, Result, indexing::KnownWords};

/// How similar a corrected word must be.
const SIMILARITY: f32 = 0.7;

/// A request for passages.
#[derive(Clone, Debug)]
pub struct PassageRequest {
    /// What to look for.
    pub query: String,
    /// Most passages.
    pub limit: usize,
    /// Most tokens of all that is given.
    pub tokens: usize,
    /// Only in the collection with this id.
    pub collection: Option<String>,
}

/// A passage that was found.
#[derive(Clone, Debug)]
pub struct FoundPassage {
    /// Its document.
    pub document: Document,
    /// Which passage of the document, from 0.
    pub ordinal: u32,
    /// Its text.
    pub content: String,
    /// From 0 to 1, to be compared within one answer.
    pub score: f32,
    /// Its citation address.
    pub address: String,
    /// Whether the text was cut to fit.
    pub is_cut: bool,
    /// What stands above it in the context.
    heading: Heading,
}

/// What stands above a passage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heading {
    /// The title, score and address.
    Whole,
    /// The title only: there was no room for more.
    Title,
    /// Nothing.
    None,
}

/// The passages that fit the budget.
#[derive(Clone, Debug, Default)]
pub struct PassageReply {
    /// Best first.
    pub passages: Vec<FoundPassage>,
    /// How many passages match in all.
    pub total: u64,
    /// Tokens of `context`.
    pub tokens: usize,
    /// The passages by document, under headings.
    pub context: String,
}

impl Library {
    /// The best passages for a question, as many as fit.
    pub fn search_passages(
        &self,
        caller: &Caller,
        request: &PassageRequest,
        call: &CallContext,
    ) -> Result<PassageReply> {
        caller.must_read()?;
        check(&SearchRequest::new(request.query.as_str()))?;
        let caller = self.looking_at(caller, request.collection.as_deref())?;
        self.with_index_repair(call, || self.find_passages(&caller, request, call))
    }

    fn find_passages(
        &self,
        caller: &Caller,
        request: &PassageRequest,
        call: &CallContext,
    ) -> Result<PassageReply> {
        let view = self.indexing.view(call)?;
        let filter = self.index_filter(caller, &view, &Filter::default(), &[])?;
        let correcting = Some(Correcting { similarity: SIMILARITY, words: &KnownWords });
        let question = Question::new(&request.query);
        let mut search = view.search(&question, correcting, &filter)?;
        if question.has_quotes() && !search.has_words()? {
            search = view.search(&Question::relaxed(&request.query), correcting, &filter)?;
        }
        let corrected = search.resolved.corrected(&request.query);
        let meant = self.indexing.meant(&view, &filter, caller.pass.scope(), &corrected, call)?;
        let vector = self.indexing.questions.vector(&corrected);
        let wanted = Wanted {
            kind: SearchKind::Hybrid,
            unit: Unit::Passage,
            vector: Some(&vector),
            has_words: super::says_something(&question, &search)?,
            named: super::named(&request.query),
            cosines: meant.cosines.as_ref(),
            min_score: 0.0,
            from: 0,
            limit: request.limit,
        };
        let found = search.page(&wanted)?;
        let passages = self.read_passages(caller, &search, &found.hits, call)?;
        let mut budget = Budget::new(request.tokens);
        for passage in passages {
            call.check()?;
            budget.take(&passage);
        }
        Ok(budget.reply(found.total))
    }

    /// Hydrates hits. A document that was deleted meanwhile is left out.
    fn read_passages(
        &self,
        caller: &Caller,
        search: &Search<'_>,
        hits: &[Hit],
        call: &CallContext,
    ) -> Result<Vec<FoundPassage>> {
        let numbers: Vec<i64> = hits.iter().map(|hit| hit.number).collect();
        let documents = self.catalog.numbered(caller.pass.scope(), &numbers)?;
        let documents: HashMap<i64, Document> =
            documents.into_iter().map(|document| (document.number, document)).collect();
        let stored = hits.iter().filter(|hit| search.text_key(hit).is_none());
        let stored = stored.filter_map(|hit| Some((hit.hash, documents.get(&hit.number)?.version.size)));
        let fetched = self.blobs.fetch(stored)?;
        let mut passages = Vec::with_capacity(hits.len());
        for hit in hits {
            let Some(document) = documents.get(&hit.number) else { continue };
            let span = (hit.span.end > hit.span.start).then_some(hit.span);
            let content = match (self.converted(search, hit, document, call)?, span) {
                (_, None) => String::new(),
                (Some(text), Some(span)) => {
                    text.text.get(span.start as usize..span.end as usize).unwrap_or_default().to_owned()
                }
                (None, Some(span)) => {
                    let range = u64::from(span.start)..u64::from(span.end);
                    let bytes = self.blobs.read_fetched(call, &fetched, &hit.hash, range)?;
                    String::from_utf8_lossy(&bytes).into_owned()
                }
            };
            passages.push(FoundPassage {
                address: address(document, span.as_ref()),
                document: document.clone(),
                ordinal: hit.ordinal,
                content,
                score: hit.score,
                is_cut: false,
                heading: Heading::Whole,
            });
        }
        Ok(passages)
    }
}

/// What has been taken, and the room that there is.
struct Budget {
    most: usize,
    /// In the order in which they were taken.
    taken: Vec<FoundPassage>,
    /// The same by document, as the context has them.
    sections: Vec<Section>,
    tokens: usize,
}

/// The passages of one document in the context.
struct Section {
    document: DocumentId,
    heading: TokenCount,
    /// The place of each in the document and its tokens, in the document's order.
    passages: Vec<(u32, TokenCount)>,
}

impl Budget {
    fn new(most: usize) -> Self {
        Self { most, taken: Vec::new(), sections: Vec::new(), tokens: 0 }
    }

    /// Takes a passage when it fits. The first one is cut rather than left out; where not even its heading fits, it
    /// comes without.
    fn take(&mut self, passage: &FoundPassage) {
        if self.try_take(passage) || !self.taken.is_empty() {
            return;
        }
        for heading in [Heading::Whole, Heading::Title, Heading::None] {
            let passage = FoundPassage { heading, ..passage.clone() };
            let end = self.fitting(&passage);
            if end > 0 && self.try_take(&cut(&passage, end)) {
                return;
            }
        }
    }

    /// How much of a passage fits, by halving: more text never has fewer tokens by more than a word's pieces.
    fn fitting(&self, passage: &FoundPassage) -> usize {
        let borders: Vec<usize> = passage.content.char_indices().map(|(at, _)| at).collect();
        let (mut low, mut high) = (0, borders.len());
        while low < high {
            let middle = (low + high).div_ceil(2);
            let end = borders.get(middle).copied().unwrap_or(passage.content.len());
            if self.fits(&cut(passage, end)) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        borders.get(low).copied().unwrap_or(passage.content.len())
    }

    fn fits(&self, passage: &FoundPassage) -> bool {
        TokenCount::of(&format_passages(std::slice::from_ref(passage))).tokens() <= self.most
    }

    /// Takes a passage when it fits; whether it does. Only the passage itself is read: what has been taken was counted
    /// before.
    fn try_take(&mut self, passage: &FoundPassage) -> bool {
        let (section, place) = self.insert(passage);
        let tokens = self.count(passage.heading != Heading::None);
        if tokens > self.most {
            self.remove(section, place);
            return false;
        }
        self.tokens = tokens;
        self.taken.push(passage.clone());
        true
    }

    /// Puts a passage where the context would have it, and says where that is.
    fn insert(&mut self, passage: &FoundPassage) -> (usize, usize) {
        let document = &passage.document;
        let known = self.sections.iter().position(|section| section.document == document.id);
        let at = known.unwrap_or_else(|| {
            let heading = TokenCount::of(&heading_of(document));
            self.sections.push(Section { document: document.id, heading, passages: Vec::new() });
            self.sections.len() - 1
        });
        let own = &mut self.sections[at].passages;
        let place = own.partition_point(|(ordinal, _)| *ordinal <= passage.ordinal);
        own.insert(place, (passage.ordinal, TokenCount::of(&block_of(passage))));
        (at, place)
    }

    fn remove(&mut self, section: usize, place: usize) {
        self.sections[section].passages.remove(place);
        if self.sections[section].passages.is_empty() {
            self.sections.remove(section);
        }
    }

    /// The tokens of the context as [`format_passages`] would write it.
    fn count(&self, next_has_heading: bool) -> usize {
        let has_headings = next_has_heading && all_have_headings(&self.taken);
        let separator = TokenCount::of("\n");
        let mut whole = TokenCount::default();
        for (number, section) in self.sections.iter().enumerate() {
            if number > 0 {
                whole = whole.followed_by(separator);
            }
            if has_headings {
                whole = whole.followed_by(section.heading);
            }
            let passages = section.passages.iter().map(|(_, tokens)| *tokens);
            whole = passages.fold(whole, TokenCount::followed_by);
        }
        whole.tokens()
    }

    fn reply(self, total: u64) -> PassageReply {
        let context = format_passages(&self.taken);
        PassageReply { passages: self.taken, total, tokens: self.tokens, context }
    }
}

fn cut(passage: &FoundPassage, end: usize) -> FoundPassage {
    let content = passage.content[..end].trim_end().to_owned();
    FoundPassage { content, is_cut: true, ..passage.clone() }
}

/// Passages by document, documents by their best passage, passages in the order of the document. All that is put together
/// here ends with a line end, where tokens end too.
fn format_passages(passages: &[FoundPassage]) -> String {
    let mut sections: Vec<(&Document, Vec<&FoundPassage>)> = Vec::new();
    for passage in passages {
        match sections.iter_mut().find(|(document, _)| document.id == passage.document.id) {
            Some((_, own)) => own.push(passage),
            None => sections.push((&passage.document, vec![passage])),
        }
    }
    let has_headings = all_have_headings(passages);
    let mut context = String::new();
    for (document, mut own) in sections {
        if !context.is_empty() {
            context.push('\n');
        }
        if has_headings {
            context.push_str(&heading_of(document));
        }
        own.sort_by_key(|passage| passage.ordinal);
        own.into_iter().for_each(|passage| context.push_str(&block_of(passage)));
    }
    context
}

/// Where one passage had no room for its title, none has a title.
fn all_have_headings(passages: &[FoundPassage]) -> bool {
    passages.iter().all(|passage| passage.heading != Heading::None)
}

/// What stands above the passages of a document.
fn heading_of(document: &Document) -> String {
    format!("## {}\n", document.title)
}

/// A passage under its score and address.
fn block_of(passage: &FoundPassage) -> String {
    let ending = if passage.is_cut { " …" } else { "" };
    let above = match passage.heading {
        Heading::Whole => format!("\n[{} score {:.2}]\n", passage.address, passage.score),
        Heading::Title | Heading::None => String::new(),
    };
    format!("{above}{}{ending}\n", passage.content)
}

#[cfg(test)]
mod tests;
