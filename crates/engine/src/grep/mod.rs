//! Searching the text of documents with a regular expression, line by line, with ripgrep's own searcher: every flag
//! means what it means there. Always complete: every document that can match is read and every count is true,
//! whatever part of it a page shows.

mod file;
mod large;
mod page;
mod run;

use std::borrow::Cow;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use run::Searching;
use serde::{Deserialize, Serialize};
use shelf_base::{CallContext, Digest, ErrorInfo, Kind, bounds};
use shelf_catalog::{Chosen, Filter};
use shelf_index::{Needs, View, Word, needed_words};

use crate::{Caller, Error, FailedFile, Library, Result, pattern::Patterns};

/// Bytes that a compiled pattern may take.
const REGEX_SIZE: usize = 16 << 20;

/// What a page shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GrepShow {
    /// The matching lines.
    #[default]
    Lines,
    /// Only how many lines match, by document.
    Counts,
    /// Only documents with a match.
    FilesWithMatches,
    /// Only documents without one.
    FilesWithoutMatch,
}

/// What a page as text has beside the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrepOutput {
    /// Before each line, the path of its document.
    pub with_path: bool,
    /// Colours.
    pub color: bool,
}

/// A request to search by pattern.
#[derive(Clone, Debug, Default)]
pub struct GrepRequest {
    /// The regular expression.
    pub pattern: String,
    /// Globs, folders or names; empty means everything.
    pub paths: Vec<String>,
    /// Only this collection.
    pub collection: Option<String>,
    /// Lines of context before a match.
    pub before: usize,
    /// Lines of context after a match.
    pub after: usize,
    /// Upper and lower case are the same.
    pub ignore_case: bool,
    /// Whole words only.
    pub word: bool,
    /// Lines that do not match.
    pub invert: bool,
    /// Stop after so many matching lines of a document.
    pub max_count: Option<u64>,
    /// What a page shows.
    pub show: GrepShow,
    /// Of the matching lines only the parts that match, each as a line of its own and whole.
    pub parts: bool,
    /// The page is given as text too, which takes room.
    pub output: Option<GrepOutput>,
    /// Characters that a page may hold.
    pub page_chars: usize,
    /// Go on where a page ended.
    pub cursor: Option<String>,
}

/// One matching line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrepLine {
    /// The document's path.
    pub path: String,
    /// Its content.
    pub hash: Digest,
    /// The line's number, from 1.
    pub number: u64,
    /// Which part of the line this is, from 1, when only the matching parts are asked for; 0 for the line.
    pub part: u64,
    /// The line without its end.
    pub text: String,
    /// Where in `text` the pattern matches.
    pub spans: Vec<(usize, usize)>,
    /// Lines before it, oldest first.
    pub before: Vec<String>,
    /// Lines after it.
    pub after: Vec<String>,
    /// Whether the text was too long to be shown whole.
    pub shortened: bool,
}

/// A document of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrepFile {
    /// Its path.
    pub path: String,
    /// Its content.
    pub hash: Digest,
    /// Matching lines in it.
    pub count: u64,
}

/// A page of matches and the true counts of all.
#[derive(Clone, Debug, Default)]
pub struct GrepReply {
    /// Matching lines of this page.
    pub lines: Vec<GrepLine>,
    /// Documents of this page.
    pub files: Vec<GrepFile>,
    /// Matching lines in all.
    pub total_matches: u64,
    /// Documents with a match, or without one when those were asked for.
    pub total_files: u64,
    /// Documents that were searched.
    pub searched: u64,
    /// Documents that could not be read, and why.
    pub failed: Vec<FailedFile>,
    /// Cursor of the next page.
    pub next_cursor: Option<String>,
}

/// A place in the order of results: path and number of a document, and a line of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Position(String, i64, LinePlace);

/// A line, and a part of it or 0 for all of it.
type LinePlace = (u64, u64);

/// Where a page ended, and what the first page counted: later pages need not count again.
#[derive(Debug, Serialize, Deserialize)]
struct Bookmark {
    after: Position,
    total_matches: u64,
    total_files: u64,
    searched: u64,
}

/// A document that may match, as it is at the moment of the search.
struct Sought<'v> {
    number: i64,
    path: Cow<'v, str>,
    hash: Digest,
}

impl Library {
    /// Searches the caller's documents. The first page counts everything; later ones read only what they show.
    pub fn grep(&self, caller: &Caller, request: &GrepRequest, call: &CallContext) -> Result<GrepReply> {
        caller.must_read()?;
        self.with_index_repair(call, || self.grep_index(caller, request, call))
    }

    fn grep_index(&self, caller: &Caller, request: &GrepRequest, call: &CallContext) -> Result<GrepReply> {
        let matcher = compile(request)?;
        let bookmark: Option<Bookmark> = match &request.cursor {
            Some(cursor) => Some(self.open_cursor(caller, &question(request), cursor)?),
            None => None,
        };
        let (needs, words) = needs(request);
        let view = if needs.is_anything() {
            None
        } else {
            match self.indexing.view(call) {
                // Without room for the index every document is read instead.
                Err(error) if error.kind() == Kind::StorageFull => None,
                view => Some(view?),
            }
        };
        let (mut documents, searched) = match &view {
            Some(view) => self.documents_of_view(caller, request, view, &needs, &words)?,
            None => self.documents_of_catalog(caller, request)?,
        };
        let after = bookmark.as_ref().map_or_else(Position::default, |bookmark| bookmark.after.clone());
        documents.retain(|document| (&*document.path, document.number) >= (&after.0, after.1));
        let searching = Searching { library: self, caller, matcher: &matcher, call, after };
        let page = searching.fill(request, &documents, bookmark.is_none())?;
        let mut reply = page.reply;
        reply.searched = searched;
        if let Some(bookmark) = bookmark {
            reply.total_matches = bookmark.total_matches;
            reply.total_files = bookmark.total_files;
            reply.searched = bookmark.searched;
        }
        if let Some(after) = page.end {
            let (total_matches, total_files, searched) =
                (reply.total_matches, reply.total_files, reply.searched);
            let bookmark = Bookmark { after, total_matches, total_files, searched };
            reply.next_cursor = Some(self.seal_cursor(caller, &question(request), &bookmark)?);
        }
        Ok(reply)
    }

    /// The documents that hold what the pattern needs, and how many were in question. The index names them, within the
    /// caller's collections; the pattern itself decides afterwards, on the stored bytes.
    fn documents_of_view<'v>(
        &self,
        caller: &Caller,
        request: &GrepRequest,
        view: &'v View,
        needs: &Needs,
        words: &[Word],
    ) -> Result<(Vec<Sought<'v>>, u64)> {
        if let Some(name) = &request.collection {
            self.known_collection(caller, name)?;
        }
        let only = Filter { collection: request.collection.clone(), ..Filter::default() };
        let allowed = self.index_filter(caller, view, &only, &[])?;
        let paths = Paths::new(&request.paths)?;
        let (mut found, mut searched) = view.candidates_with(needs, words, &allowed)?;
        if !request.paths.is_empty() {
            let all = view.candidates(&Needs::Anything, &allowed)?.0;
            searched = all.iter().filter(|one| paths.fit(one.path)).count() as u64;
            found.retain(|one| paths.fit(one.path));
        }
        // Each segment is in order already, nearly: a sort that finds ordered runs has little to do.
        found.sort_by(|a, b| (a.path, a.number).cmp(&(b.path, b.number)));
        let sought =
            found.iter().map(|one| Sought { number: one.number, path: one.path.into(), hash: one.hash });
        Ok((sought.collect(), searched))
    }

    /// Every text document of the caller.
    fn documents_of_catalog(
        &self,
        caller: &Caller,
        request: &GrepRequest,
    ) -> Result<(Vec<Sought<'static>>, u64)> {
        if let Some(name) = &request.collection {
            self.known_collection(caller, name)?;
        }
        let filter =
            Filter { collection: request.collection.clone(), is_text: Some(true), ..Filter::default() };
        let paths = Paths::new(&request.paths)?;
        let chosen = self.catalog.choose(caller.pass.scope(), &filter)?;
        let fitting = chosen.into_iter().filter(|document| paths.fit(&document.path));
        let sought: Vec<_> = fitting.map(Sought::from).collect();
        let searched = sought.len() as u64;
        Ok((sought, searched))
    }
}

impl From<Chosen> for Sought<'static> {
    fn from(chosen: Chosen) -> Self {
        Self { number: chosen.number, path: chosen.path.into(), hash: chosen.version.hash }
    }
}

/// Which paths are searched.
struct Paths<'a> {
    names: &'a [String],
    patterns: Patterns,
}

impl<'a> Paths<'a> {
    fn new(names: &'a [String]) -> Result<Self> {
        Ok(Self { names, patterns: Patterns::with_folders("paths", names)? })
    }

    /// A name means itself too, whatever signs it holds.
    fn fit(&self, path: &str) -> bool {
        let named = |name: &String| {
            path == name || path.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('/'))
        };
        self.names.is_empty() || self.patterns.fits(path) || self.names.iter().any(named)
    }
}

/// What a document must hold for the pattern to match, trigrams and whole words; nothing when lines or documents
/// without it are asked for.
fn needs(request: &GrepRequest) -> (Needs, Vec<Word>) {
    if request.invert || request.show == GrepShow::FilesWithoutMatch {
        return (Needs::Anything, Vec::new());
    }
    let mut parser = regex_syntax::ParserBuilder::new();
    parser.case_insensitive(request.ignore_case).multi_line(true).utf8(false);
    match parser.build().parse(&request.pattern) {
        Ok(pattern) => (Needs::of(&pattern), needed_words(&pattern)),
        Err(_) => (Needs::Anything, Vec::new()),
    }
}

fn compile(request: &GrepRequest) -> Result<RegexMatcher> {
    if request.pattern.is_empty() {
        return Err(Error::invalid("pattern", "must not be empty"));
    }
    if request.pattern.len() > bounds::REGEX_BYTES {
        return Err(Error::TooLarge {
            what: "pattern".into(),
            limit: format!("{} bytes", bounds::REGEX_BYTES),
        });
    }
    let mut builder = RegexMatcherBuilder::new();
    builder.case_insensitive(request.ignore_case).word(request.word).line_terminator(Some(b'\n'));
    builder.size_limit(REGEX_SIZE).dfa_size_limit(REGEX_SIZE);
    builder.build(&request.pattern).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it cannot be read");
        let what = first.strip_prefix("error: ").unwrap_or(first);
        Error::invalid("pattern", format!("is not a regular expression: {what}"))
    })
}

/// Everything that decides which lines are found and in which order.
fn question(request: &GrepRequest) -> String {
    let GrepRequest {
        pattern,
        paths,
        collection,
        before,
        after,
        ignore_case,
        word,
        invert,
        max_count,
        show,
        parts,
        output: _,
        page_chars: _,
        cursor: _,
    } = request;
    format!(
        "grep {pattern:?} {paths:?} {collection:?} {before} {after} {ignore_case} {word} {invert} {max_count:?} {show:?} {parts}"
    )
}
