//! The lines of a document that a hit shows.

use std::{collections::BTreeSet, ops::Range, sync::Arc};

use shelf_base::CallContext;
use shelf_catalog::Document;
use shelf_index::{Hit, Marker, Search, Span};
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
    /// Whether its first line has begun before it, and whether its last line goes on.
    is_cut: [bool; 2],
}

/// A line of a region.
struct Line<'a> {
    number: u32,
    text: &'a str,
    /// The part of it that belongs to the passage.
    inside: Option<Range<usize>>,
    is_cut: [bool; 2],
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
                is_cut: [false; 2],
            },
            None => self.stored_region(request, (document, fetched), span, call)?,
        };
        Ok(cut(request, &search.resolved.marker(), &region))
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
        // What is shown before the passage are whole lines; a long line of which only a part was read begins with it.
        let line_start = before.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let skipped = if range.start == 0 { 0 } else { line_start.unwrap_or(before.len()) };
        let first_line = if range.start > 0 && line_start.is_some() { first_line + 1 } else { first_line };
        let end = if range.end < size { whole_characters(&bytes) } else { bytes.len() };
        let text = String::from_utf8_lossy(&bytes[skipped..end.max(skipped)]).into_owned();
        let passage = (start - range.start) as usize - skipped
            ..(span.end - span.start) as usize + before.len() - skipped;
        let begins_late = range.start > 0 && line_start.is_none();
        let ends_early = range.end < size && !text.ends_with('\n');
        Ok(Region { text, first_line, passage, is_cut: [begins_late, ends_early] })
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
            let line = Line { number, text: line, inside: None, is_cut: [false; 2] };
            let line = shorten(&line, Vec::new(), 0, false);
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

/// The end of the last character that is not cut.
fn whole_characters(bytes: &[u8]) -> usize {
    let start = bytes.len().saturating_sub(3);
    let lead = bytes[start..].iter().rposition(|byte| *byte >= 0xC0).map(|at| start + at);
    match lead {
        Some(at) if std::str::from_utf8(&bytes[at..]).is_err_and(|error| error.error_len().is_none()) => at,
        _ => bytes.len(),
    }
}

fn cut(request: &SearchRequest, marker: &Marker<'_>, region: &Region) -> Snippet {
    let lines: Vec<Line<'_>> = lines_of(region);
    let text = |at: Option<usize>| at.and_then(|at| lines.get(at)).map_or("", |line| line.text);
    let inside: Vec<usize> = (0..lines.len())
        .filter(|at| lines[*at].inside.is_some() && !lines[*at].text.trim().is_empty())
        .collect();
    let Some(first) = inside.first() else { return Snippet::default() };
    let mut weighty: Vec<(usize, usize)> = inside
        .iter()
        .map(|at| (marker.weight(lines[*at].text, text(at.checked_add(1))), *at))
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
        let line = &lines[at];
        let marks = marker.marks(text(at.checked_sub(1)), line.text, text(at.checked_add(1)));
        let middle = middle(line, &marks, marker);
        shorten(line, marks, middle, matches.contains(&at))
    };
    Snippet { lines: shown.into_iter().map(line).collect(), best: Some(lines[best].number), truncated }
}

/// What of a long line is shown: the place in the passage that matches best, else its beginning.
fn middle(line: &Line<'_>, marks: &[Range<usize>], marker: &Marker<'_>) -> usize {
    if line.text.len() <= LINE {
        return 0;
    }
    let inside = line.inside.clone().unwrap_or(0..line.text.len());
    let marks: Vec<Range<usize>> =
        marks.iter().filter(|mark| mark.start >= inside.start && mark.end <= inside.end).cloned().collect();
    marker.densest(line.text, &marks, LINE / 2).map_or(inside.start, |at| marks[at].start)
}

/// The matches with their context, in order, while there is room: the best match first, and what is next to it. Whether
/// there was too little room.
fn surroundings(request: &SearchRequest, lines: &[Line<'_>], matches: &[usize]) -> (BTreeSet<usize>, bool) {
    let (mut shown, mut room) = (BTreeSet::new(), SNIPPET);
    for at in matches {
        for distance in 0..=request.before.max(request.after) {
            let above = at.checked_sub(distance).filter(|_| distance <= request.before);
            let below = (distance > 0 && distance <= request.after).then(|| at + distance);
            for at in above.into_iter().chain(below.filter(|at| *at < lines.len())) {
                let length = lines[at].text.len().min(2 * LINE) + 8;
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

/// The lines of a region.
fn lines_of(region: &Region) -> Vec<Line<'_>> {
    let mut at = 0;
    let mut lines = Vec::new();
    for (number, line) in (region.first_line..).zip(region.text.split_inclusive('\n')) {
        let range = at..at + line.len();
        at = range.end;
        let is_inside = range.start < region.passage.end && range.end > region.passage.start;
        let mark = if number == 1 && line.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let text = line[mark..].trim_end_matches(['\n', '\r']);
        let border = |at: usize| {
            let at = at.saturating_sub(range.start + mark).min(text.len());
            (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
        };
        let inside = is_inside.then(|| border(region.passage.start)..border(region.passage.end));
        let is_cut = [region.is_cut[0] && range.start == 0, region.is_cut[1] && at == region.text.len()];
        lines.push(Line { number, text, inside, is_cut });
    }
    lines
}

/// The best line and those after it in the passage, until the preview is full.
fn preview(lines: &[Line<'_>], best: usize) -> Range<usize> {
    let mut room = PREVIEW;
    let mut end = best;
    while let Some(Line { text, inside: Some(_), .. }) = lines.get(end) {
        let length = text.chars().count() + 1;
        if end > best && length > room {
            break;
        }
        room = room.saturating_sub(length);
        end += 1;
    }
    best..end
}

/// A line that fits: a long one is cut to the surroundings of its `middle`.
fn shorten(line: &Line<'_>, marks: Vec<Range<usize>>, middle: usize, is_match: bool) -> SnippetLine {
    let Line { number, text, is_cut, .. } = *line;
    let border = |at: usize| (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let is_long = text.chars().count() > LINE;
    let start = if is_long { border(middle.saturating_sub(LINE / 4)) } else { 0 };
    let end = text[start..].char_indices().nth(LINE).map_or(text.len(), |(at, _)| start + at);
    let lead = if start > 0 || is_cut[0] { "…" } else { "" };
    let tail = if end < text.len() || is_cut[1] { "…" } else { "" };
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
