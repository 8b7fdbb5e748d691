//! Searching in words: by words, by meaning, by both, or by hash.
//!
//! The index ranks and gives places; the catalog says what stands there now; the content gives the lines that are
//! shown. Who may see what is part of the question to the index, and the catalog is asked within the same scope again.

mod counts;
mod passages;
mod seen;
mod snippet;

use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
};

pub use passages::{FoundPassage, PassageReply, PassageRequest};
use shelf_base::{
    Address, CallContext, ErrorInfo, Kind,
    address::{Modality, Place},
    bounds,
};
use shelf_catalog::{Document, Filter, Scope};
use shelf_index::{
    Correcting, Filter as IndexFilter, Hit, Hits, Question, Resolved, Search, Span, Unit, View, Wanted,
};
pub use shelf_index::{Correction, Kind as SearchKind};
pub use snippet::{Snippet, SnippetLine};

use crate::{
    Caller, Error, Library, Result,
    blobs::Fetched,
    follow::Follower,
    indexing::{KnownWords, Meant},
    pattern::Patterns,
    times::as_asked,
    validate,
};

/// The longest extension of a file name.
const EXTENSION: usize = 8;
/// Documents with the same hash that are told at most.
const HASH_HITS: usize = 1_000;

/// A request to search.
#[derive(Clone, Debug)]
pub struct SearchRequest {
    /// What to look for.
    pub query: String,
    /// Which legs.
    pub kind: SearchKind,
    /// How similar a corrected word must be; `None` corrects nothing.
    pub similarity: Option<f32>,
    /// Look for content by its hash first.
    pub hash: Option<String>,
    /// Which documents.
    pub filter: Filter,
    /// The bounds of times in the filter as the caller wrote them; none when the filter says them itself. A cursor belongs to
    /// what was written, and keeps what that meant on the first page.
    pub times: Vec<Option<String>>,
    /// Path patterns of which one must fit.
    pub patterns: Vec<String>,
    /// Further path patterns of which one must fit too.
    pub include: Vec<String>,
    /// Lines of context before a match.
    pub before: usize,
    /// Lines of context after a match.
    pub after: usize,
    /// Show exactly the matching line and its context, not a preview.
    pub exact_lines: bool,
    /// Read the lines to show; without it snippets are empty.
    pub show: bool,
    /// Only hits with at least this score, from 0 to 1.
    pub min_score: f32,
    /// At most so many hits.
    pub limit: usize,
    /// Go on where a page ended.
    pub cursor: Option<String>,
}

impl SearchRequest {
    /// A hybrid search that corrects typing errors.
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            kind: SearchKind::Hybrid,
            similarity: Some(0.7),
            hash: None,
            filter: Filter::default(),
            times: Vec::new(),
            patterns: Vec::new(),
            include: Vec::new(),
            before: 0,
            after: 0,
            exact_lines: false,
            show: true,
            min_score: 0.0,
            limit: 10,
            cursor: None,
        }
    }
}

/// What really searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Searched {
    /// The legs of this kind.
    Legs(SearchKind),
    /// Hashes.
    Hash,
}

impl Searched {
    /// The word in replies.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Legs(SearchKind::Keyword) => "keyword",
            Self::Legs(SearchKind::Semantic) => "semantic",
            Self::Legs(SearchKind::Hybrid) => "hybrid",
            Self::Hash => "hash",
        }
    }
}

/// One hit.
#[derive(Clone, Debug)]
pub struct SearchHit {
    /// The document. Its version is the one that was found.
    pub document: Document,
    /// Its place among all hits, from 0.
    pub rank: usize,
    /// From 0 to 1, to be compared within one answer.
    pub score: f32,
    /// The word leg's own score.
    pub keyword: Option<f32>,
    /// The cosine.
    pub semantic: Option<f32>,
    /// Where the passage lies; `None` for a document that has no text.
    pub span: Option<Span>,
    /// The citation address.
    pub address: String,
    /// Where on its first page the passage stands: left, top, right, bottom from 0 to 1, from the top left.
    pub bbox: Option<[f64; 4]>,
    /// What to show.
    pub snippet: Snippet,
}

/// One page of hits.
#[derive(Clone, Debug)]
pub struct SearchReply {
    /// How many documents match.
    pub total: u64,
    /// What searched.
    pub searched: Searched,
    /// The page.
    pub hits: Vec<SearchHit>,
    /// Words that were corrected.
    pub corrections: Vec<Correction>,
    /// The model whose vectors were compared, when meaning was.
    pub model: Option<String>,
    /// What the caller should know.
    pub note: Option<String>,
    /// Cursor of the next page.
    pub next_cursor: Option<String>,
}

/// What the index said to a request.
struct Asked<'v> {
    search: Search<'v>,
    found: Hits,
    meant: Option<Meant>,
    /// Whether nothing has the quoted phrases, so that their words were looked for.
    phrases_given_up: bool,
}

impl Library {
    /// Searches the caller's documents.
    pub fn search(
        &self,
        caller: &Caller,
        request: &SearchRequest,
        call: &CallContext,
    ) -> Result<SearchReply> {
        caller.must_read()?;
        check(request)?;
        validate::filter(&request.filter)?;
        let request = &*self.as_first_asked(caller, request)?;
        if let Some(name) = &request.filter.collection {
            self.known_collection(caller, name)?;
        }
        if let Some(prefix) = hash_of(request)
            && let Some(found) = self.search_hash(caller, request, &prefix, call)?
        {
            return Ok(found);
        }
        let mut found = self.with_index_repair(call, || self.search_index(caller, request, call))?;
        if let Some(hash) = &request.hash {
            let nothing = format!("no document has the hash {hash}; the query was searched instead");
            found.note = Some(found.note.map_or(nothing.clone(), |note| format!("{nothing}; {note}")));
        }
        Ok(found)
    }

    /// Asks the index; one that turns out to be damaged is built anew and asked again.
    pub(crate) fn with_index_repair<T>(&self, call: &CallContext, ask: impl Fn() -> Result<T>) -> Result<T> {
        match catch_unwind(AssertUnwindSafe(&ask)) {
            Ok(Err(Error::Index(error))) if error.kind() == Kind::Corrupt => {
                tracing::warn!(%error, "the search index is damaged and is built anew");
            }
            Ok(result) => return result,
            // What is sealed and has its hash does not panic; so this one has not.
            Err(panic) if self.indexing.damage().is_none() => std::panic::resume_unwind(panic),
            Err(_) => tracing::warn!("the search index is damaged and is built anew"),
        }
        self.indexing.discard(call)?;
        ask()
    }

    fn search_index(
        &self,
        caller: &Caller,
        request: &SearchRequest,
        call: &CallContext,
    ) -> Result<SearchReply> {
        let seen = self.seen(caller, request)?;
        let view = self.indexing.view(call)?;
        // One more tells whether there is another page.
        let limit = request.limit.saturating_add(seen.len()).saturating_add(1);
        let Asked { search, mut found, meant, mut phrases_given_up } =
            self.ask_index(caller, request, &view, limit, call)?;
        found.hits.retain(|hit| !seen.contains(&hit.number));
        let has_more = found.hits.len() > request.limit;
        found.hits.truncate(request.limit);
        let hits = self.show(caller, request, &search, &found.hits, seen.len(), call)?;
        let next_cursor = if has_more { Some(self.search_cursor(caller, request, &hits)?) } else { None };
        let mut resolved = search.resolved;
        if request.kind == SearchKind::Semantic {
            // Only these have changed what was asked of the vectors, and no words were looked for.
            resolved.corrections.retain(|correction| correction.is_sure);
            (phrases_given_up, resolved.left_out, resolved.cut_prefix) = (false, 0, None);
        }
        let of_model = meant.as_ref().and_then(|meant| meant.note.clone());
        Ok(SearchReply {
            total: found.total,
            searched: Searched::Legs(request.kind),
            hits,
            note: note(phrases_given_up, found.total, &resolved, of_model),
            corrections: resolved.corrections,
            model: meant.map(|meant| meant.model),
            next_cursor,
        })
    }

    /// The best documents of a view by the request's kind, words and filter.
    fn ask_index<'v>(
        &self,
        caller: &Caller,
        request: &SearchRequest,
        view: &'v View,
        limit: usize,
        call: &CallContext,
    ) -> Result<Asked<'v>> {
        let filter =
            self.index_filter(caller, view, &request.filter, &[&request.patterns, &request.include])?;
        let correcting = request.similarity.map(|similarity| Correcting { similarity, words: &KnownWords });
        let question = Question::new(&request.query);
        let mut search = view.search(&question, correcting, &filter)?;
        let mut phrases_given_up = false;
        if question.has_quotes() && !search.has_words()? {
            search = view.search(&Question::relaxed(&request.query), correcting, &filter)?;
            phrases_given_up = true;
        }
        let corrected = search.resolved.corrected(&request.query);
        let (vector, meant) = match request.kind {
            SearchKind::Keyword => (None, None),
            _ => {
                let meant = self.indexing.meant(view, &filter, caller.pass.scope(), &corrected, call)?;
                (Some(self.indexing.questions.vector(&corrected)), Some(meant))
            }
        };
        let found = search.page(&Wanted {
            kind: request.kind,
            unit: Unit::Document,
            vector: vector.as_deref(),
            has_words: says_something(&question, &search)?,
            named: named(&request.query),
            cosines: meant.as_ref().and_then(|meant| meant.cosines.as_ref()),
            min_score: request.min_score,
            from: 0,
            limit,
        })?;
        Ok(Asked { search, found, meant, phrases_given_up })
    }

    /// What the caller and the filter leave, in the index's terms.
    pub(crate) fn index_filter(
        &self,
        caller: &Caller,
        view: &View,
        filter: &Filter,
        patterns: &[&[String]],
    ) -> Result<IndexFilter> {
        let scope = caller.pass.scope();
        let collections = match (scope, &filter.collection) {
            (Scope::Library, None) => None,
            _ => {
                Some(self.catalog.collection_ids(scope, filter.collection.as_deref())?.into_iter().collect())
            }
        };
        let mut allowed = IndexFilter { collections, numbers: None };
        let only_collection = Filter { collection: filter.collection.clone(), ..Filter::default() };
        if *filter != only_collection {
            let numbers = self.catalog.numbers(scope, filter)?;
            allowed.numbers = Some(numbers.into_iter().map(|number| number as usize).collect());
        }
        for patterns in patterns.iter().filter(|patterns| !patterns.is_empty()) {
            let patterns = Patterns::with_folders("the path pattern", patterns)?;
            allowed.numbers = Some(view.numbers_where(&allowed, &|path| patterns.fits(path)));
        }
        Ok(allowed)
    }

    /// Hydrates hits. A document that was deleted meanwhile is left out.
    fn show(
        &self,
        caller: &Caller,
        request: &SearchRequest,
        search: &Search<'_>,
        hits: &[Hit],
        from: usize,
        call: &CallContext,
    ) -> Result<Vec<SearchHit>> {
        let numbers: Vec<i64> = hits.iter().map(|hit| hit.number).collect();
        let documents = self.catalog.numbered(caller.pass.scope(), &numbers)?;
        let mut documents: HashMap<i64, Document> =
            documents.into_iter().map(|document| (document.number, document)).collect();
        let fetched = if request.show {
            let stored = hits.iter().filter(|hit| search.text_key(hit).is_none());
            let stored = stored.filter_map(|hit| documents.get(&hit.number));
            self.blobs.fetch(stored.map(|document| (document.version.hash, document.version.size)))?
        } else {
            Fetched::default()
        };
        let mut shown = Vec::with_capacity(hits.len());
        for (rank, hit) in (from..).zip(hits) {
            call.check()?;
            let Some(mut document) = documents.remove(&hit.number) else { continue };
            if document.version.hash != hit.hash {
                let versions = self.catalog.versions(caller.pass.scope(), document.id)?;
                if let Some(found) = versions.into_iter().rev().find(|version| version.hash == hit.hash) {
                    document.version = found;
                }
            }
            let span = (hit.span.end > hit.span.start).then_some(hit.span);
            let snippet = match span {
                Some(span) if request.show => {
                    self.snippet(request, search, hit, (&document, &fetched), span, call)?
                }
                _ => Snippet::default(),
            };
            let bbox = match span {
                Some(span) if request.show && span.first_page > 0 => {
                    let text = self.converted(search, hit, &document, call)?;
                    text.and_then(|text| text.layout.bbox(&text.pages, span.start..span.end))
                }
                _ => None,
            };
            shown.push(SearchHit {
                address: address(&document, span.as_ref()),
                bbox: bbox.map(|(_, bbox)| bbox),
                document,
                rank,
                score: hit.score,
                keyword: hit.keyword,
                semantic: hit.semantic,
                span,
                snippet,
            });
        }
        Ok(shown)
    }

    /// Documents by hash; `None` when there is none.
    fn search_hash(
        &self,
        caller: &Caller,
        request: &SearchRequest,
        prefix: &str,
        call: &CallContext,
    ) -> Result<Option<SearchReply>> {
        let scope = caller.pass.scope();
        let mut found = self.catalog.hashed(scope, &prefix.to_lowercase(), HASH_HITS)?;
        let numbers: Option<Vec<i64>> = if request.filter == Filter::default() {
            None
        } else {
            Some(self.catalog.numbers(scope, &request.filter)?)
        };
        for patterns in
            [&request.patterns, &request.include].into_iter().filter(|patterns| !patterns.is_empty())
        {
            let patterns = Patterns::with_folders("the path pattern", patterns)?;
            found.retain(|(document, _)| patterns.fits(&document.path));
        }
        found.retain(|(document, _)| {
            numbers.as_ref().is_none_or(|numbers| numbers.binary_search(&document.number).is_ok())
        });
        if found.is_empty() {
            return Ok(None);
        }
        let total = found.len() as u64;
        let seen = self.seen(caller, request)?;
        found.retain(|(document, _)| !seen.contains(&document.number));
        let has_more = found.len() > request.limit;
        found.truncate(request.limit);
        let fetched = self.blobs.fetch(found.iter().map(|(_, version)| (version.hash, version.size)))?;
        let mut hits = Vec::new();
        for (rank, (mut document, version)) in (seen.len()..).zip(found) {
            call.check()?;
            document.version = version;
            let snippet = if document.is_text && request.show {
                self.opening((&document, &fetched), call)?
            } else {
                Snippet::default()
            };
            hits.push(SearchHit {
                address: address(&document, None),
                bbox: None,
                document,
                rank,
                score: 1.0,
                keyword: None,
                semantic: None,
                span: None,
                snippet,
            });
        }
        let next_cursor = if has_more { Some(self.search_cursor(caller, request, &hits)?) } else { None };
        Ok(Some(SearchReply {
            total,
            searched: Searched::Hash,
            hits,
            corrections: Vec::new(),
            model: None,
            note: None,
            next_cursor,
        }))
    }
}

/// Whether the built-in vector of a question says anything: a word of it is one of the model's language or, as it stands or
/// corrected, one of the library.
pub(crate) fn says_something(question: &Question, search: &Search<'_>) -> Result<bool> {
    // The model reads English: it has characters of other scripts, but knows nothing of them.
    let is_latin = |word: &str| word.contains(|letter: char| letter.is_ascii_alphanumeric());
    let is_known = |word: &str| is_latin(word) && shelf_embed::is_word(word);
    Ok(question.words().any(is_known) || (question.words().any(is_latin) && search.has_words()?))
}

/// The query as the name of a document, if it is written like one: a word without spaces, or with an extension or a folder.
pub(crate) fn named(query: &str) -> Option<&str> {
    let name = query.trim().trim_matches(['"', '\'', '`']);
    let has_extension = || {
        name.rsplit_once('.').is_some_and(|(stem, extension)| {
            !stem.is_empty()
                && (1..=EXTENSION).contains(&extension.len())
                && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
    };
    let is_name = !name.contains(['\n', '*', '?'])
        && (!name.contains(char::is_whitespace) || name.contains('/') || has_extension());
    (is_name && (1..=bounds::PATH_BYTES).contains(&name.len())).then_some(name)
}

/// What a caller should know about an answer.
fn note(phrases_given_up: bool, total: u64, resolved: &Resolved, of_model: Option<String>) -> Option<String> {
    let phrases = phrases_given_up.then(|| {
        "no document has the quoted phrase as it stands; its words were searched instead".to_owned()
    });
    let left_out = (resolved.left_out > 0).then(|| {
        format!("the query is long: its rarest words were searched, and {} more left out", resolved.left_out)
    });
    let prefix = resolved.cut_prefix.as_ref().map(|prefix| {
        format!("more words begin with '{prefix}' than can be searched at once; use a longer prefix for all of them")
    });
    let nothing = (total == 0).then(|| {
        "nothing matches: try other or fewer words, drop filters, or use grep for an exact piece of text"
            .to_owned()
    });
    let notes: Vec<String> =
        phrases.into_iter().chain(left_out).chain(prefix).chain(nothing).chain(of_model).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

fn check(request: &SearchRequest) -> Result<()> {
    if request.query.trim().is_empty() && request.hash.is_none() {
        return Err(Error::invalid("query", "must not be empty"));
    }
    if request.query.len() > bounds::QUERY_BYTES {
        return Err(Error::TooLarge {
            what: "query".into(),
            limit: format!("{} bytes", bounds::QUERY_BYTES),
        });
    }
    if request.similarity.is_some_and(|similarity| !(0.0..=1.0).contains(&similarity)) {
        return Err(Error::invalid("similarity", "must be from 0.0 to 1.0"));
    }
    if !(0.0..=1.0).contains(&request.min_score) {
        return Err(Error::invalid("min_score", "must be from 0.0 to 1.0"));
    }
    if let Some(hash) = &request.hash {
        let digits = hash.len() >= bounds::HASH_PREFIX_CHARS && hash.len() <= 64;
        if !digits || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(Error::invalid("hash", "must be 8 to 64 hexadecimal digits"));
        }
    }
    Ok(())
}

/// The hash that is asked for: the argument, or a query that looks like one.
fn hash_of(request: &SearchRequest) -> Option<String> {
    if let Some(hash) = &request.hash {
        return Some(hash.clone());
    }
    let query = request.query.trim();
    let fits = (bounds::HASH_PREFIX_CHARS..=64).contains(&query.len())
        && query.bytes().all(|byte| byte.is_ascii_hexdigit())
        && query.bytes().any(|byte| byte.is_ascii_digit())
        && query.bytes().any(|byte| byte.is_ascii_alphabetic());
    fits.then(|| query.to_owned())
}

/// The address of a passage, or of the whole document.
fn address(document: &Document, span: Option<&Span>) -> String {
    let id = document.resource_id.clone().unwrap_or_else(|| document.id.to_string());
    let address = match span {
        Some(span) if span.first_page > 0 => Address::pages(id, span.first_page, span.last_page),
        Some(span) => Address::lines(id, span.first_line, span.last_line),
        None => Address::new(id, Place::whole(modality(&document.mime))),
    };
    address.map(|address| address.to_string()).unwrap_or_default()
}

fn modality(mime: &str) -> Modality {
    match mime.split('/').next() {
        _ if mime == "application/pdf" => Modality::Document,
        Some("image") => Modality::Image,
        Some("video") => Modality::Video,
        Some("audio") => Modality::Audio,
        _ => Modality::Text,
    }
}

/// Everything that decides which hits come in which order.
fn question(request: &SearchRequest) -> String {
    let SearchRequest {
        query,
        kind,
        similarity,
        hash,
        filter,
        times,
        patterns,
        include,
        before: _,
        after: _,
        exact_lines: _,
        show: _,
        min_score,
        limit: _,
        cursor: _,
    } = request;
    let filter = as_asked(filter, times);
    format!("search {query:?} {kind:?} {similarity:?} {hash:?} {filter} {patterns:?} {include:?} {min_score}")
}
