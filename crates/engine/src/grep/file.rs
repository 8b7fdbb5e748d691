//! Searching one document.

use std::{
    borrow::Cow,
    io::{self, Read},
    ops::Range,
};

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use shelf_base::CallContext;

use super::{GrepLine, GrepRequest, GrepShow, LinePlace, Sought};

/// Characters of one line that are shown.
const LINE_CHARS: usize = 2_000;
/// The same of a line of context, when there are many.
const CONTEXT_CHARS: usize = 80;
/// Bytes of a match with all its context, so that a page holds at least one.
pub(super) const MATCH_CHARS: usize = 12_000;
/// What a line takes beside its text.
pub(super) const BESIDE: usize = 4;
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
    pub part: u64,
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
            part: self.part,
            text: self.text,
            spans: self.spans,
            before: self.before,
            after: self.after,
            shortened: self.shortened,
        }
    }
}

/// A searcher for the request's pattern. It gives matching lines only; context is cut out of the document afterwards.
pub(super) fn searcher(request: &GrepRequest) -> Searcher {
    SearcherBuilder::new()
        .line_number(request.show == GrepShow::Lines)
        .invert_match(request.invert)
        .max_matches(request.max_count)
        // A document that was taken for text is text to its end, whatever bytes come.
        .binary_detection(BinaryDetection::none())
        // Encodings with a mark are decoded before the search, so that places in the text are places in the bytes.
        .bom_sniffing(false)
        .build()
}

/// Searches the bytes of one document. Lines up to `after` are counted and not shown.
pub(super) fn search(
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    request: &GrepRequest,
    (bytes, after): (&[u8], LinePlace),
    call: &CallContext,
) -> io::Result<Found> {
    let bytes = &*decoded(bytes);
    let mut gathered =
        Gathered { request, matcher, bytes, after, found: Found::default(), room: request.page_chars };
    if bytes.len() > LARGE {
        searcher.search_reader(matcher, Checked { bytes, call }, &mut gathered)?;
    } else {
        searcher.search_slice(matcher, bytes, &mut gathered)?;
    }
    Ok(gathered.found)
}

/// The bytes that patterns see: without a byte order mark, and of two-byte encodings the text in UTF-8, as ripgrep does.
fn decoded(bytes: &[u8]) -> Cow<'_, [u8]> {
    match encoding_rs::Encoding::for_bom(bytes) {
        Some((encoding, mark)) if encoding == encoding_rs::UTF_8 => Cow::Borrowed(&bytes[mark..]),
        Some((encoding, mark)) => {
            Cow::Owned(encoding.decode_without_bom_handling(&bytes[mark..]).0.into_owned().into_bytes())
        }
        None => Cow::Borrowed(bytes),
    }
}

/// Gives a large document piece by piece, so that a cancelled call stops inside it.
struct Checked<'a> {
    bytes: &'a [u8],
    call: &'a CallContext,
}

impl Read for Checked<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.call.check().map_err(io::Error::other)?;
        self.bytes.read(buffer)
    }
}

/// Counts the lines that the searcher finds, and keeps those for which a page can have room: what a call holds in memory
/// depends on the page, not on how often the pattern matches or how much context was asked for.
struct Gathered<'a> {
    request: &'a GrepRequest,
    matcher: &'a RegexMatcher,
    bytes: &'a [u8],
    after: LinePlace,
    found: Found,
    /// Characters that a page still has.
    room: usize,
}

impl Sink for Gathered<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.request.max_count.is_some_and(|most| self.found.count >= most) {
            return Ok(false);
        }
        self.found.count += 1;
        let number = found.line_number().unwrap_or(0);
        if self.request.show != GrepShow::Lines || self.room == 0 {
            return Ok(true);
        }
        if self.request.parts {
            let parts = parts(self.matcher, (number, found.bytes()), self.after, &mut self.room);
            self.found.lines.extend(parts);
            return Ok(true);
        }
        if (number, 0) <= self.after {
            return Ok(true);
        }
        let start = found.absolute_byte_offset() as usize;
        let line = self.line(number, start..start + found.bytes().len());
        let length = |lines: &[String]| lines.iter().map(|line| line.len() + BESIDE).sum::<usize>();
        // A page counts at least this for the line, so it is full when there is no room left here.
        self.room =
            self.room.saturating_sub(line.text.len() + length(&line.before) + length(&line.after) + 100);
        self.found.lines.push(line);
        Ok(true)
    }
}

impl Gathered<'_> {
    /// A matching line with as much of its context as a page has room for: the lines next to it first.
    fn line(&self, number: u64, place: Range<usize>) -> Line {
        let (before, after) = (self.request.before, self.request.after);
        let matcher = (!self.request.invert).then_some(self.matcher);
        let (text, spans, mut shortened) = shown(&self.bytes[place.clone()], matcher);
        let most = context_chars(self.request);
        let mut room = MATCH_CHARS.saturating_sub(text.len());
        let (mut above, mut below) = (Vec::new(), Vec::new());
        let (mut up, mut down) = (place.start, place.end);
        let mut take = |bytes: &[u8], lines: &mut Vec<String>| {
            let (text, is_cut) = beginning(bytes, most);
            let fits = text.len() + BESIDE <= room;
            shortened |= is_cut || !fits;
            if fits {
                room -= text.len() + BESIDE;
                lines.push(text);
            }
            fits
        };
        loop {
            let wants_up = above.len() < before && up > 0;
            let wants_down = below.len() < after && down < self.bytes.len();
            if !wants_up && !wants_down {
                break;
            }
            if wants_up {
                let start = memchr::memrchr(b'\n', &self.bytes[..up - 1]).map_or(0, |at| at + 1);
                if !take(&self.bytes[start..up], &mut above) {
                    break;
                }
                up = start;
            }
            if wants_down {
                let end =
                    memchr::memchr(b'\n', &self.bytes[down..]).map_or(self.bytes.len(), |at| down + at + 1);
                if !take(&self.bytes[down..end], &mut below) {
                    break;
                }
                down = end;
            }
        }
        above.reverse();
        Line { number, part: 0, text, spans, before: above, after: below, shortened }
    }
}

/// Characters of a line of context, when so many are wanted.
pub(super) fn context_chars(request: &GrepRequest) -> usize {
    let lines = request.before.saturating_add(request.after).saturating_add(1);
    (MATCH_CHARS / lines).clamp(CONTEXT_CHARS, LINE_CHARS)
}

/// A line without its end. A carriage return is a part of the line here, as it is for ripgrep.
fn without_end(bytes: &[u8]) -> &[u8] {
    bytes.strip_suffix(b"\n").unwrap_or(bytes)
}

/// The beginning of a line, and whether there is more of it.
pub(super) fn beginning(bytes: &[u8], most: usize) -> (String, bool) {
    let bytes = without_end(bytes);
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(most_bytes(most))]);
    match text.char_indices().nth(most) {
        Some((cut, _)) => (text[..cut].to_owned(), true),
        None => (text.into_owned(), false),
    }
}

/// A matching line, where the pattern matches in it, and whether there is more of it. Of a long line the surroundings of
/// the first match are shown.
pub(super) fn shown(bytes: &[u8], matcher: Option<&RegexMatcher>) -> (String, Vec<(usize, usize)>, bool) {
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
    let moved = found.into_iter().filter_map(|(from, to)| Some((from.checked_sub(start)?, to - start)));
    let spans = in_text(&line[start..], moved).filter(|(from, to)| is_whole(*from, *to)).collect();
    (text, spans, is_cut || start > 0)
}

/// Where places of a line are in its text: bytes that are no text are replaced, so that what comes after them is elsewhere.
fn in_text(
    line: &[u8],
    places: impl Iterator<Item = (usize, usize)>,
) -> impl Iterator<Item = (usize, usize)> {
    let shown = &line[..line.len().min(most_bytes(LINE_CHARS))];
    // Where each piece of text begins in the bytes and in the text, and its length.
    let mut pieces = Vec::new();
    let (mut byte, mut letter) = (0, 0);
    for chunk in shown.utf8_chunks() {
        let (valid, invalid) = (chunk.valid().len(), chunk.invalid().len());
        pieces.push((byte, letter, valid));
        byte += valid + invalid;
        letter += valid + if invalid > 0 { char::REPLACEMENT_CHARACTER.len_utf8() } else { 0 };
    }
    pieces.push((byte, letter, 0));
    let moved = move |place: usize| {
        let piece = pieces.partition_point(|(byte, ..)| *byte <= place).saturating_sub(1);
        pieces.get(piece).map_or(0, |(byte, letter, length)| letter + (place - byte).min(*length))
    };
    let end = shown.len();
    places.filter(move |(_, to)| *to <= end).map(move |(from, to)| (moved(from), moved(to)))
}

/// Bytes that so many characters take at most, and a piece of one more.
const fn most_bytes(characters: usize) -> usize {
    4 * characters + 4
}

/// The parts of a line that match, as lines of their own: those behind `after`, while there is room for them.
pub(super) fn parts(
    matcher: &RegexMatcher,
    (number, bytes): (u64, &[u8]),
    after: LinePlace,
    room: &mut usize,
) -> Vec<Line> {
    let line = without_end(bytes);
    let mut lines = Vec::new();
    if number < after.0 || *room == 0 {
        return lines;
    }
    let mut part = 0;
    let _ = matcher.find_iter(line, |found| {
        if found.is_empty() {
            return true;
        }
        part += 1;
        if (number, part) > after {
            let text = String::from_utf8_lossy(&line[found.start()..found.end()]).into_owned();
            *room = room.saturating_sub(text.len() + 100);
            let spans = vec![(0, text.len())];
            let (before, after) = (Vec::new(), Vec::new());
            lines.push(Line { number, part, text, spans, before, after, shortened: false });
        }
        *room > 0
    });
    lines
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
