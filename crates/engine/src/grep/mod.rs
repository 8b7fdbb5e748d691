//! Searching the text of documents with a regular expression, line by line, with ripgrep's own searcher: every flag
//! means what it means there. Always complete: every document that can match is read and every count is true,
//! whatever part of it a page shows.

mod file;

use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    thread,
};

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use shelf_base::{Call, Digest, Fault, Kind, bounds};
use shelf_catalog::{Chosen, Filter};
use shelf_index::{Needs, Word, needed_words};

use crate::{Caller, Error, FailedFile, House, Result, pattern::Patterns};

/// Documents that are searched before their results are put in order: enough to keep the threads busy.
const RUN: usize = 1_024;
/// The same for later pages, which end early.
const LATER_RUN: usize = 128;
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
struct Position(String, i64, u64);

/// Where a page ended, and what the first page counted: later pages need not count again.
#[derive(Debug, Serialize, Deserialize)]
struct Bookmark {
    after: Position,
    total_matches: u64,
    total_files: u64,
    searched: u64,
}

impl House {
    /// Searches the caller's documents. The first page counts everything; later ones read only what they show.
    pub fn grep(&self, caller: &Caller, request: &GrepRequest, call: &Call) -> Result<GrepReply> {
        caller.must_read()?;
        let matcher = compile(request)?;
        let bookmark: Option<Bookmark> = match &request.cursor {
            Some(cursor) => Some(self.open_cursor(caller, &question(request), cursor)?),
            None => None,
        };
        let (mut documents, searched) = self.documents_to_search(caller, request, call)?;
        let total = documents.len() as u64;
        let after = bookmark.as_ref().map_or_else(Position::default, |bookmark| bookmark.after.clone());
        documents.retain(|document| (&document.path, document.number) >= (&after.0, after.1));
        let mut page = Page::new(request, after);
        let run_length = if bookmark.is_some() { LATER_RUN } else { RUN };
        for (done, run) in documents.chunks(run_length).enumerate() {
            call.check()?;
            let place = ((done * run_length) as u64, total);
            for (document, found) in run.iter().zip(self.search_run(run, request, &matcher, call, place)?) {
                page.take(document, found);
            }
            if page.end.is_some() && bookmark.is_some() {
                break;
            }
        }
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

    /// The documents that may match, and how many were in question. Where the pattern needs certain bytes, the index
    /// names the few documents that hold them; the pattern itself decides afterwards, on the stored bytes.
    fn documents_to_search(
        &self,
        caller: &Caller,
        request: &GrepRequest,
        call: &Call,
    ) -> Result<(Vec<Chosen>, u64)> {
        if let Some(name) = &request.collection {
            self.known_collection(caller, name)?;
        }
        let mut filter =
            Filter { collection: request.collection.clone(), is_text: Some(true), ..Filter::default() };
        let paths = Paths::new(&request.paths)?;
        let (needs, words) = needs(request);
        if !needs.is_anything() {
            let view = self.indexing.view(call)?;
            let only = Filter { collection: request.collection.clone(), ..Filter::default() };
            let allowed = self.index_filter(caller, &view, &only, &[])?;
            let (found, mut searched) = view.candidates_with(&needs, &words, &allowed)?;
            if !request.paths.is_empty() {
                let all = view.candidates(&Needs::Anything, &allowed)?.0;
                searched = all.iter().filter(|one| paths.fit(&one.path)).count() as u64;
            }
            let found = found.iter().filter(|one| paths.fit(&one.path)).map(|one| one.number).collect();
            filter.numbers = Some(found);
            return Ok((self.catalog.choose(caller.pass.scope(), &filter)?, searched));
        }
        let mut documents = self.catalog.choose(caller.pass.scope(), &filter)?;
        documents.retain(|document| paths.fit(&document.path));
        let searched = documents.len() as u64;
        Ok((documents, searched))
    }

    /// Searches a run of documents with as many threads as there are processors; results in the run's order.
    fn search_run(
        &self,
        run: &[Chosen],
        request: &GrepRequest,
        matcher: &RegexMatcher,
        call: &Call,
        (base, total): (u64, u64),
    ) -> Result<Vec<file::Found>> {
        let (next, searched) = (AtomicUsize::new(0), AtomicU64::new(0));
        let done = Mutex::new(Vec::with_capacity(run.len()));
        let work = || -> Result<()> {
            let mut searcher = file::searcher(request);
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(document) = run.get(at) else { return Ok(()) };
                call.check()?;
                let found = match self.blobs.read_blocks(call, &document.version.hash, document.version.size)
                {
                    Ok(bytes) => {
                        file::search(&mut searcher, matcher, request, &bytes, call).map_err(|error| {
                            call.check().map_or_else(Error::Stopped, |()| {
                                Error::reading(document.path.clone(), error)
                            })
                        })?
                    }
                    // A damaged document is named; the others are searched all the same.
                    Err(error) if error.kind() == Kind::Corrupt => {
                        file::Found { fault: Some(error.to_string()), ..file::Found::default() }
                    }
                    Err(error) => return Err(error),
                };
                call.report(base + searched.fetch_add(1, Ordering::Relaxed), Some(total), "searching");
                done.lock().push((at, found));
            }
        };
        let threads =
            thread::available_parallelism().map_or(1, usize::from).min(run.len().div_ceil(32)).max(1);
        thread::scope(|scope| {
            let workers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let own = work();
            let others = workers
                .into_iter()
                .map(|worker| worker.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
            others.fold(own, Result::and)
        })?;
        let mut done = done.into_inner();
        done.sort_by_key(|(at, _)| *at);
        Ok(done.into_iter().map(|(_, found)| found).collect())
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
        Error::invalid("pattern", format!("is not a regular expression: {first}"))
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
        page_chars: _,
        cursor: _,
    } = request;
    format!(
        "grep {pattern:?} {paths:?} {collection:?} {before} {after} {ignore_case} {word} {invert} {max_count:?} {show:?}"
    )
}

/// Fills a page until it is full, and goes on counting.
struct Page<'a> {
    request: &'a GrepRequest,
    after: Position,
    reply: GrepReply,
    characters: usize,
    end: Option<Position>,
    last: Position,
}

impl<'a> Page<'a> {
    fn new(request: &'a GrepRequest, after: Position) -> Self {
        Self { request, last: after.clone(), after, reply: GrepReply::default(), characters: 0, end: None }
    }

    fn take(&mut self, document: &Chosen, found: file::Found) {
        if let Some(reason) = found.fault {
            self.reply.failed.push(FailedFile { path: document.path.clone(), reason });
            return;
        }
        let hit = (found.count > 0) != (self.request.show == GrepShow::FilesWithoutMatch);
        if !hit {
            return;
        }
        self.reply.total_files += 1;
        self.reply.total_matches += found.count;
        let place = |line| Position(document.path.clone(), document.number, line);
        if self.request.show != GrepShow::Lines {
            if place(u64::MAX) > self.after && self.has_room(document.path.len() + 100, place(u64::MAX)) {
                self.reply.files.push(file_of(document, found.count));
            }
            return;
        }
        let mut shown = false;
        for line in found.lines {
            let here = place(line.number);
            if here <= self.after {
                continue;
            }
            // The text stands in the page twice: as a field and as a terminal would show it.
            let context: usize = line.before.iter().chain(&line.after).map(|text| written(text) + 4).sum();
            let colors = 40 + 22 * line.spans.len();
            if !self
                .has_room(2 * (written(&line.text) + context) + 2 * document.path.len() + 220 + colors, here)
            {
                break;
            }
            self.reply.lines.push(line.of(document));
            shown = true;
        }
        if shown {
            self.reply.files.push(file_of(document, found.count));
        }
    }

    /// Takes the room for one more; the first that finds none ends the page.
    fn has_room(&mut self, characters: usize, place: Position) -> bool {
        if self.end.is_some() {
            return false;
        }
        let empty = self.characters == 0;
        self.characters += characters;
        if self.characters > self.request.page_chars.saturating_sub(1_000) && !empty {
            self.end = Some(self.last.clone());
            return false;
        }
        self.last = place;
        true
    }
}

fn file_of(document: &Chosen, count: u64) -> GrepFile {
    GrepFile { path: document.path.clone(), hash: document.version.hash, count }
}

/// Characters of a text as JSON writes it.
fn written(text: &str) -> usize {
    let extra = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 1,
        0..32 => 5,
        _ => 0,
    };
    text.len() + text.bytes().map(extra).sum::<usize>()
}
