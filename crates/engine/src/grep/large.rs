//! Searching a document that is too large to be held in memory: its lines pass by once, and only those that a page may
//! show, with their context, are kept.

use std::{
    collections::VecDeque,
    io::{self, Read},
};

use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};

use super::{
    GrepRequest, GrepShow, LinePlace,
    file::{BESIDE, Found, Line, MATCH_CHARS, beginning, context_chars, parts, shown},
};

/// Lines of context that pass by a match at most: more do not fit on a page.
const CONTEXT: usize = 500;
/// Memory that one line may take.
const LINE_BYTES: usize = 64 << 20;

/// Searches a stream. Lines up to `after` are counted and not shown.
pub(super) fn search(
    matcher: &RegexMatcher,
    request: &GrepRequest,
    stream: impl Read,
    after: LinePlace,
) -> io::Result<Found> {
    let lines = request.show == GrepShow::Lines;
    let context = |wanted: usize| if lines { wanted.min(CONTEXT) } else { 0 };
    let mut searcher = SearcherBuilder::new()
        .line_number(lines)
        .invert_match(request.invert)
        .max_matches(request.max_count)
        .before_context(context(request.before))
        .after_context(context(request.after))
        .heap_limit(Some(LINE_BYTES))
        .binary_detection(BinaryDetection::none())
        .build();
    let mut passing = Passing {
        request,
        matcher,
        after,
        found: Found::default(),
        room: request.page_chars,
        above: VecDeque::new(),
        open: VecDeque::new(),
    };
    searcher.search_reader(matcher, stream, &mut passing)?;
    passing.close(0);
    Ok(passing.found)
}

/// A line that still takes lines after it.
struct Open {
    line: Line,
    room: usize,
}

struct Passing<'a> {
    request: &'a GrepRequest,
    matcher: &'a RegexMatcher,
    after: LinePlace,
    found: Found,
    /// Characters that a page still has.
    room: usize,
    /// The last lines, as far as a match may want them.
    above: VecDeque<(String, bool)>,
    open: VecDeque<Open>,
}

impl Passing<'_> {
    /// A line goes by: the lines above it that still take some take it.
    fn follow(&mut self, (text, is_cut): &(String, bool)) {
        self.close(self.request.after);
        for open in &mut self.open {
            let fits = text.len() + BESIDE <= open.room && open.line.after.len() < self.request.after;
            open.line.shortened |= is_cut | !fits;
            if fits {
                open.room -= text.len() + BESIDE;
                open.line.after.push(text.clone());
            } else {
                open.room = 0;
            }
        }
        self.close(self.request.after);
    }

    /// Remembers a line for those below it.
    fn remember(&mut self, line: (String, bool)) {
        self.above.push_back(line);
        if self.above.len() > self.request.before.min(CONTEXT) {
            self.above.pop_front();
        }
    }

    /// Finishes the lines that have `most` lines after them, or no room for more.
    fn close(&mut self, most: usize) {
        let is_done = |open: &Open| most == 0 || open.line.after.len() >= most || open.room == 0;
        while let Some(open) = self.open.pop_front_if(|open| is_done(open)) {
            self.found.lines.push(open.line);
        }
    }

    fn keep(&mut self, number: u64, bytes: &[u8]) {
        let matcher = (!self.request.invert).then_some(self.matcher);
        let (text, spans, mut shortened) = shown(bytes, matcher);
        let mut room = MATCH_CHARS.saturating_sub(text.len());
        let mut before = Vec::new();
        for (line, is_cut) in self.above.iter().rev() {
            if line.len() + BESIDE > room {
                shortened = true;
                break;
            }
            room -= line.len() + BESIDE;
            shortened |= is_cut;
            before.push(line.clone());
        }
        before.reverse();
        self.room =
            self.room.saturating_sub(text.len() + (MATCH_CHARS - text.len().min(MATCH_CHARS) - room) + 100);
        let line = Line { number, part: 0, text, spans, before, after: Vec::new(), shortened };
        self.open.push_back(Open { line, room });
    }
}

impl Sink for Passing<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let counts = self.request.max_count.is_none_or(|most| self.found.count < most);
        self.found.count += u64::from(counts);
        if self.request.show != GrepShow::Lines {
            return Ok(true);
        }
        let number = found.line_number().unwrap_or(0);
        if self.request.parts {
            if counts {
                let parts = parts(self.matcher, (number, found.bytes()), self.after, &mut self.room);
                self.found.lines.extend(parts);
            }
            return Ok(true);
        }
        let line = beginning(found.bytes(), context_chars(self.request));
        self.follow(&line);
        if counts && self.room > 0 && (number, 0) > self.after {
            self.keep(number, found.bytes());
        }
        self.remember(line);
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, found: &SinkContext<'_>) -> io::Result<bool> {
        let line = beginning(found.bytes(), context_chars(self.request));
        self.follow(&line);
        self.remember(line);
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        // What comes next stands elsewhere.
        self.above.clear();
        self.close(0);
        Ok(true)
    }
}
