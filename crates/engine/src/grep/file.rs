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

/// Characters of one line that are shown.
const LINE_CHARS: usize = 2_000;
/// The same of a line of context, when there are many.
const CONTEXT_CHARS: usize = 80;
/// Bytes of a match with all its context, so that a page holds at least one.
const MATCH_CHARS: usize = 12_000;
/// What a line takes beside its text.
const BESIDE: usize = 4;
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
        let lines = self.matches.iter().map(|number| self.line(*number, matcher)).collect();
        Found { lines, count: self.count, ..Found::default() }
    }

    /// A matching line with as much of its context as a page has room for: the lines next to it first.
    fn line(&self, number: u64, matcher: &RegexMatcher) -> Line {
        let (before, after) = (self.request.before as u64, self.request.after as u64);
        let matcher = (!self.request.invert).then_some(matcher);
        let (text, spans, mut shortened) = shown(&self.texts[&number], matcher);
        let most = (MATCH_CHARS / (1 + before + after) as usize).clamp(CONTEXT_CHARS, LINE_CHARS);
        let mut room = MATCH_CHARS.saturating_sub(text.len());
        let (mut above, mut below) = (Vec::new(), Vec::new());
        for distance in 1..=before.max(after) {
            let mut take = |number: Option<u64>, lines: &mut Vec<String>| {
                // Lines come without gaps; where one is not there, the document ends.
                let Some(bytes) = number.and_then(|number| self.texts.get(&number)) else { return true };
                let (text, is_cut) = beginning(bytes, most);
                if text.len() + BESIDE > room {
                    return false;
                }
                room -= text.len() + BESIDE;
                shortened |= is_cut;
                lines.push(text);
                true
            };
            let above_fits = distance > before || take(number.checked_sub(distance), &mut above);
            let below_fits = distance > after || take(number.checked_add(distance), &mut below);
            if !above_fits || !below_fits {
                shortened = true;
                break;
            }
            let is_end = |lines: &[String], wanted: u64| distance > wanted || (lines.len() as u64) < distance;
            if is_end(&above, before) && is_end(&below, after) {
                break;
            }
        }
        above.reverse();
        Line { number, text, spans, before: above, after: below, shortened }
    }
}

/// A line without its end. A carriage return is a part of the line here, as it is for ripgrep.
fn without_end(bytes: &[u8]) -> &[u8] {
    bytes.strip_suffix(b"\n").unwrap_or(bytes)
}

/// The beginning of a line, and whether there is more of it.
fn beginning(bytes: &[u8], most: usize) -> (String, bool) {
    let bytes = without_end(bytes);
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * most + 4)]);
    match text.char_indices().nth(most) {
        Some((cut, _)) => (text[..cut].to_owned(), true),
        None => (text.into_owned(), false),
    }
}

/// A matching line, where the pattern matches in it, and whether there is more of it. Of a long line the surroundings of
/// the first match are shown.
fn shown(bytes: &[u8], matcher: Option<&RegexMatcher>) -> (String, Vec<(usize, usize)>, bool) {
    let line = without_end(bytes);
    let found = matcher.map_or_else(Vec::new, |matcher| places(matcher, line));
    let mut start = 0;
    if line.len() > LINE_CHARS
        && let Some((first, _)) = found.first()
        && *first > LINE_CHARS / 2
    {
        start = first - LINE_CHARS / 4;
        // Not inside of a character.
        while start < line.len() && line[start] & 0xC0 == 0x80 {
            start += 1;
        }
    }
    let (text, is_cut) = beginning(&line[start..], LINE_CHARS);
    let is_whole =
        |from: usize, to: usize| to <= text.len() && text.is_char_boundary(from) && text.is_char_boundary(to);
    // Bytes that are no text are replaced, and places behind them are others.
    let as_they_are = line[start..].starts_with(text.as_bytes());
    let moved = found.into_iter().filter_map(|(from, to)| Some((from.checked_sub(start)?, to - start)));
    let spans =
        if as_they_are { moved.filter(|(from, to)| is_whole(*from, *to)).collect() } else { Vec::new() };
    (text, spans, is_cut || start > 0)
}

fn places(matcher: &RegexMatcher, line: &[u8]) -> Vec<(usize, usize)> {
    let mut places = Vec::new();
    let _ = matcher.find_iter(line, |found| {
        if !found.is_empty() {
            places.push((found.start(), found.end()));
        }
        places.len() < MARKED
    });
    places
}
