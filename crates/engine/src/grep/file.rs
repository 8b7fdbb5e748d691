//! Searching one document.

use std::{
    collections::BTreeMap,
    io::{self, Read},
};

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use shelf_base::Call;

use super::{GrepLine, GrepRequest, GrepShow, Sought};

/// Characters of one line that are shown, when it has no context.
const LINE_CHARS: usize = 2_000;
/// Characters of a match with all its context, about.
const MATCH_CHARS: usize = 5_000;
/// Matches that are marked in one line.
const MARKED: usize = 100;
/// From this size on a document is searched piece by piece.
const LARGE: usize = 1 << 20;

/// What was found in one document.
#[derive(Default)]
pub(super) struct Found {
    pub count: u64,
    pub lines: Vec<Line>,
    /// Why the document could not be read.
    pub fault: Option<String>,
    /// The document was deleted while the search was under way.
    pub is_gone: bool,
}

/// A matching line before it knows its document.
pub(super) struct Line {
    pub number: u64,
    pub text: String,
    pub spans: Vec<(usize, usize)>,
    pub before: Vec<String>,
    pub after: Vec<String>,
    pub shortened: bool,
}

impl Line {
    pub(super) fn of(self, document: &Sought<'_>) -> GrepLine {
        GrepLine {
            path: document.path.to_string(),
            hash: document.hash,
            number: self.number,
            text: self.text,
            spans: self.spans,
            before: self.before,
            after: self.after,
            shortened: self.shortened,
        }
    }
}

/// A searcher with the request's context and inversion.
pub(super) fn searcher(request: &GrepRequest) -> Searcher {
    let lines = request.show == GrepShow::Lines;
    SearcherBuilder::new()
        .line_number(lines)
        .invert_match(request.invert)
        .max_matches(request.max_count)
        .before_context(if lines { request.before } else { 0 })
        .after_context(if lines { request.after } else { 0 })
        // A document that was taken for text is text to its end, whatever bytes come.
        .binary_detection(BinaryDetection::none())
        .build()
}

/// Searches the bytes of one document.
pub(super) fn search(
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    request: &GrepRequest,
    bytes: &[u8],
    call: &Call,
) -> io::Result<Found> {
    let mut gathered = Gathered { request, count: 0, matches: Vec::new(), texts: BTreeMap::new() };
    if bytes.len() > LARGE {
        searcher.search_reader(matcher, Checked { bytes, call }, &mut gathered)?;
    } else {
        searcher.search_slice(matcher, bytes, &mut gathered)?;
    }
    Ok(gathered.finish(matcher))
}

/// Gives a large document piece by piece, so that a cancelled call stops inside it.
struct Checked<'a> {
    bytes: &'a [u8],
    call: &'a Call,
}

impl Read for Checked<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.call.check().map_err(io::Error::other)?;
        self.bytes.read(buffer)
    }
}

/// Takes lines as the searcher finds them.
struct Gathered<'a> {
    request: &'a GrepRequest,
    count: u64,
    matches: Vec<u64>,
    /// Every line that was given, matching or context.
    texts: BTreeMap<u64, Vec<u8>>,
}

impl Sink for Gathered<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.request.max_count.is_some_and(|most| self.count >= most) {
            // What still comes is context of the last match that counts.
            if let Some(number) = found.line_number() {
                self.texts.insert(number, found.bytes().to_vec());
            }
            return Ok(true);
        }
        self.count += 1;
        if self.request.show == GrepShow::Lines {
            let number = found.line_number().unwrap_or(0);
            self.matches.push(number);
            self.texts.insert(number, found.bytes().to_vec());
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, found: &SinkContext<'_>) -> io::Result<bool> {
        if let Some(number) = found.line_number() {
            self.texts.insert(number, found.bytes().to_vec());
        }
        Ok(true)
    }
}

impl Gathered<'_> {
    fn finish(self, matcher: &RegexMatcher) -> Found {
        let lines_shown = 1 + self.request.before + self.request.after;
        let most = (MATCH_CHARS / lines_shown).clamp(80, LINE_CHARS);
        let show = |number: &u64| self.texts.get(number).map(|bytes| shorten(bytes, most).0);
        let lines = self.matches.iter().map(|number| {
            let first = number.saturating_sub(self.request.before as u64).max(1);
            let last = number.saturating_add(self.request.after as u64);
            let bytes = &self.texts[number];
            let (text, shortened) = shorten(bytes, most);
            Line {
                number: *number,
                spans: if self.request.invert { Vec::new() } else { spans(matcher, &text) },
                text,
                before: (first..*number).filter_map(|number| show(&number)).collect(),
                after: (number + 1..=last).map_while(|number| show(&number)).collect(),
                shortened,
            }
        });
        Found { lines: lines.collect(), count: self.count, ..Found::default() }
    }
}

/// The line without its end, in a length that a page can hold.
fn shorten(bytes: &[u8], most: usize) -> (String, bool) {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * most + 4)]);
    match text.char_indices().nth(most) {
        Some((cut, _)) => (text[..cut].to_owned(), true),
        None => (text.into_owned(), false),
    }
}

fn spans(matcher: &RegexMatcher, text: &str) -> Vec<(usize, usize)> {
    let mut spans = Vec::new();
    let _ = matcher.find_iter(text.as_bytes(), |found| {
        if text.is_char_boundary(found.start()) && text.is_char_boundary(found.end()) && !found.is_empty() {
            spans.push((found.start(), found.end()));
        }
        spans.len() < MARKED
    });
    spans
}
