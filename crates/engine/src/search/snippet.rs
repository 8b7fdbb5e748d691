//! The lines of a document that a hit shows.

use std::{collections::BTreeSet, ops::Range, sync::Arc};

use shelf_base::CallContext;
use shelf_catalog::Document;
use shelf_index::{Hit, Resolved, Search, Span};
use shelf_reading::Text;

use super::SearchRequest;
use crate::{Library, Result, blobs::Fetched, readings::Origin};

/// Characters of a preview, about.
const PREVIEW: usize = 240;
/// Characters of one line at most.
const LINE: usize = 400;
/// Stored bytes that are read around a passage, beside what the context may need.
const AROUND: u64 = 4 << 10;
/// Documents up to this size are read whole.
const WHOLE: u64 = 16 << 10;

/// The same when lines around the match are wanted, which may be long.
const WHOLE_WITH_CONTEXT: u64 = 4 << 20;

/// Bytes of a snippet at most: a page must hold it.
const SNIPPET: usize = 16_000;
/// Lines with looked-for words that are shown when lines are numbered.
const MATCHES: usize = 8;

/// What a hit shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    /// The lines, in order.
    pub lines: Vec<SnippetLine>,
    /// The number of the line that matches best.
    pub best: Option<u32>,
    /// Whether there was no room for all lines that were asked for.
    pub truncated: bool,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnippetLine {
    /// Its number, from 1.
    pub number: u32,
    /// Its text, cut when it is long.
    pub text: String,
    /// Where words stand that were looked for.
    pub marks: Vec<Range<usize>>,
    /// Whether it is a match, not the surroundings of one.
    pub is_match: bool,
}

/// A part of a document's text.
struct Region {
    text: String,
    first_line: u32,
    /// The passage in it.
    passage: Range<usize>,
}

impl Library {
    pub(super) fn snippet(
        &self,
        request: &SearchRequest,
        search: &Search<'_>,
        hit: &Hit,
        (document, fetched): (&Document, &Fetched),
        span: Span,
        call: &CallContext,
    ) -> Result<Snippet> {
        let region = match self.converted(search, hit, document, call)? {
            Some(text) => Region {
                first_line: 1,
                passage: span.start as usize..span.end as usize,
                text: text.text.clone().into_owned(),
            },
            None => self.stored_region(request, (document, fetched), span, call)?,
        };
        Ok(cut(request, &search.resolved, &region))
    }

    /// The text of a hit's document, if it differs from the document's bytes.
    pub(super) fn converted(
        &self,
        search: &Search<'_>,
        hit: &Hit,
        document: &Document,
        call: &CallContext,
    ) -> Result<Option<Arc<Text<'static>>>> {
        let Some(key) = search.text_key(hit) else { return Ok(None) };
        let Document { path, mime, is_text, .. } = document;
        let origin = Origin { hash: key.content, path, mime, is_text: *is_text };
        self.blobs.readings.text_at(&key, &origin, &self.blobs, call)
    }

    fn stored_region(
        &self,
        request: &SearchRequest,
        (document, fetched): (&Document, &Fetched),
        span: Span,
        call: &CallContext,
    ) -> Result<Region> {
        let size = document.version.size;
        let wanted = 200_u64.saturating_mul(request.before.max(request.after) as u64);
        let around = AROUND + wanted.min(4 * SNIPPET as u64);
        let (start, end) = (u64::from(span.start), u64::from(span.end));
        let whole = if request.before + request.after > 0 { WHOLE_WITH_CONTEXT } else { WHOLE };
        let range =
            if size <= whole { 0..size } else { start.saturating_sub(around)..(end + around).min(size) };
        let bytes = self.blobs.read_fetched(call, fetched, &document.version.hash, range.clone())?;
        let before = &bytes[..(start - range.start) as usize];
        let first_line =
            span.first_line.saturating_sub(before.iter().filter(|byte| **byte == b'\n').count() as u32);
        // A region that begins inside a line begins that line late; only the passage's own lines are exact, and all
        // that is shown before it are whole lines.
        let skipped = if range.start == 0 {
            0
        } else {
            before.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1)
        };
        let first_line = if skipped > 0 { first_line + 1 } else { first_line };
        let text = String::from_utf8_lossy(&bytes[skipped..]).into_owned();
        let passage = (start - range.start) as usize - skipped..(end - range.start) as usize - skipped;
        Ok(Region { text, first_line, passage })
    }

    /// The first lines of a document.
    pub(super) fn opening(
        &self,
        (document, fetched): (&Document, &Fetched),
        call: &CallContext,
    ) -> Result<Snippet> {
        let length = document.version.size.min(AROUND);
        let bytes = self.blobs.read_fetched(call, fetched, &document.version.hash, 0..length)?;
        let text = String::from_utf8_lossy(&bytes);
        let mut room = PREVIEW;
        let mut lines = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            if line.trim().is_empty() {
                continue;
            }
            let line = shorten(line, Vec::new(), number, false);
            let length = line.text.chars().count();
            lines.push(line);
            if length >= room {
                break;
            }
            room -= length;
        }
        Ok(Snippet { lines, ..Snippet::default() })
    }
}

fn cut(request: &SearchRequest, resolved: &Resolved, region: &Region) -> Snippet {
    let lines: Vec<(u32, &str, bool)> = lines_of(region);
    let text = |at: Option<usize>| at.and_then(|at| lines.get(at)).map_or("", |(_, text, _)| *text);
    let inside: Vec<usize> =
        (0..lines.len()).filter(|at| lines[*at].2 && !lines[*at].1.trim().is_empty()).collect();
    let Some(first) = inside.first() else { return Snippet::default() };
    let mut weighty: Vec<(usize, usize)> = inside
        .iter()
        .map(|at| (resolved.weight(lines[*at].1, text(at.checked_add(1))), *at))
        .filter(|(weight, _)| *weight > 0)
        .collect();
    weighty.sort_by_key(|(weight, at)| (std::cmp::Reverse(*weight), *at));
    let best = weighty.first().map_or(*first, |(_, at)| *at);
    // Without their numbers, lines from several places would read as if they stood together.
    let most = if request.exact_lines { MATCHES } else { 1 };
    let mut matches: Vec<usize> = weighty.iter().map(|(_, at)| *at).take(most).collect();
    if matches.is_empty() {
        matches.push(best);
    }
    let (shown, truncated) = if request.exact_lines || request.before > 0 || request.after > 0 {
        surroundings(request, &lines, &matches)
    } else {
        (preview(&lines, best).collect(), false)
    };
    let line = |at: usize| {
        let (number, line, _) = lines[at];
        let marks = resolved.marks(text(at.checked_sub(1)), line, text(at.checked_add(1)));
        shorten(line, marks, number, matches.contains(&at))
    };
    Snippet { lines: shown.into_iter().map(line).collect(), best: Some(lines[best].0), truncated }
}

/// The matches with their context, in order, while there is room: the best match first, and what is next to it. Whether
/// there was too little room.
fn surroundings(
    request: &SearchRequest,
    lines: &[(u32, &str, bool)],
    matches: &[usize],
) -> (BTreeSet<usize>, bool) {
    let (mut shown, mut room) = (BTreeSet::new(), SNIPPET);
    for at in matches {
        for distance in 0..=request.before.max(request.after) {
            let above = at.checked_sub(distance).filter(|_| distance <= request.before);
            let below = (distance > 0 && distance <= request.after).then(|| at + distance);
            for at in above.into_iter().chain(below.filter(|at| *at < lines.len())) {
                let length = lines[at].1.len().min(2 * LINE) + 8;
                if shown.contains(&at) {
                    continue;
                }
                if length > room {
                    return (shown, true);
                }
                room -= length;
                shown.insert(at);
            }
        }
    }
    (shown, false)
}

/// The region's lines: number, text, and whether the passage reaches into them.
fn lines_of(region: &Region) -> Vec<(u32, &str, bool)> {
    let mut at = 0;
    let mut lines = Vec::new();
    for (number, line) in (region.first_line..).zip(region.text.split_inclusive('\n')) {
        let range = at..at + line.len();
        at = range.end;
        let inside = range.start < region.passage.end && range.end > region.passage.start;
        let line = if number == 1 { line.trim_start_matches('\u{feff}') } else { line };
        lines.push((number, line.trim_end_matches(['\n', '\r']), inside));
    }
    lines
}

/// The best line and those after it in the passage, until the preview is full.
fn preview(lines: &[(u32, &str, bool)], best: usize) -> Range<usize> {
    let mut room = PREVIEW;
    let mut end = best;
    while let Some((_, text, true)) = lines.get(end) {
        let length = text.chars().count() + 1;
        if end > best && length > room {
            break;
        }
        room = room.saturating_sub(length);
        end += 1;
    }
    best..end
}

/// A line that fits: a long one is cut to the surroundings of its first mark.
fn shorten(text: &str, marks: Vec<Range<usize>>, number: u32, is_match: bool) -> SnippetLine {
    if text.chars().count() <= LINE {
        return SnippetLine { number, text: text.to_owned(), marks, is_match };
    }
    let middle = marks.first().map_or(0, |mark| mark.start);
    let border = |at: usize| (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let start = border(middle.saturating_sub(LINE / 4));
    let end = text[start..].char_indices().nth(LINE).map_or(text.len(), |(at, _)| start + at);
    let lead = if start > 0 { "…" } else { "" };
    let tail = if end < text.len() { "…" } else { "" };
    let moved = |mark: &Range<usize>| {
        (mark.start >= start && mark.end <= end)
            .then(|| mark.start - start + lead.len()..mark.end - start + lead.len())
    };
    SnippetLine {
        number,
        marks: marks.iter().filter_map(moved).collect(),
        text: format!("{lead}{}{tail}", &text[start..end]),
        is_match,
    }
}
