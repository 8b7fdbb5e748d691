//! The nodes of a document with pages: its bookmarks, else headings that stand out by the size of their font, else its
//! pages.

use std::collections::HashMap;

use shelf_base::address::{Pages, Place};

use super::{Entry, MOST_NODES, SECTION, summary};
use crate::Text;

/// How much larger than the body the font of a heading is, at least.
const LARGER: f32 = 1.15;
/// Characters of a heading at most.
const HEADING_CHARS: usize = 160;
/// A document with so many lines may consist of headings for a good part.
const FEW_LINES: usize = 30;
/// Levels of headings that fonts tell apart.
const LEVELS: usize = 4;
/// The part of a page, from its top, in which a section begins the page when nothing tells better.
const TOP: u16 = u16::MAX / 8;

/// Where a section begins.
struct Start {
    level: usize,
    title: String,
    page: u32,
    /// Whether nothing stands above it on its page.
    is_first: bool,
    /// Where its text begins.
    byte: Option<u32>,
}

pub(super) fn entries(text: &Text<'_>) -> Vec<Entry> {
    let starts = bookmarks(text);
    let starts = if starts.is_empty() { headings(text) } else { starts };
    if starts.is_empty() { pages(text) } else { sections(text, &starts) }
}

fn page_text<'a>(text: &'a Text<'_>, page: u32) -> &'a str {
    let start = |page: u32| text.pages.get(page as usize).map_or(text.text.len(), |start| *start as usize);
    text.text.get(start(page.saturating_sub(1))..start(page)).unwrap_or_default()
}

fn page_of(text: &Text<'_>, byte: u32) -> u32 {
    text.pages.partition_point(|start| *start <= byte).max(1) as u32
}

fn bookmarks(text: &Text<'_>) -> Vec<Start> {
    let count = text.pages.len() as u32;
    let within = text.layout.outline.iter().filter(|bookmark| (1..=count).contains(&bookmark.page));
    within
        .take(MOST_NODES)
        .map(|bookmark| {
            let (first, last) = text.layout.lines_of_page(&text.pages, bookmark.page);
            let lines = text.layout.lines.get(first..last).unwrap_or_default();
            // The box of a line is a little lower than its font is high.
            let reach = bookmark.top.saturating_add(u16::MAX / 200);
            let is_above = |bottom: u16| bottom < reach;
            let is_first = match lines {
                [] => bookmark.top <= TOP,
                lines => !lines.iter().any(|line| is_above(line.bbox[3])),
            };
            let byte = lines.iter().find(|line| !is_above(line.bbox[3])).map(|line| line.start);
            Start {
                level: usize::from(bookmark.level),
                title: bookmark.title.clone(),
                page: bookmark.page,
                is_first,
                byte,
            }
        })
        .collect()
}

/// Lines in a font that is larger than that of most of the text.
fn headings(text: &Text<'_>) -> Vec<Start> {
    let lines = &text.layout.lines;
    let end_of = |at: usize| lines.get(at + 1).map_or(text.text.len(), |next| next.start as usize);
    let shown = |at: usize| text.text.get(lines[at].start as usize..end_of(at)).unwrap_or_default().trim();
    let mut weights: HashMap<u16, usize> = HashMap::new();
    for (at, line) in lines.iter().enumerate() {
        *weights.entry(line.size).or_default() += shown(at).len();
    }
    let Some(body) = weights.iter().max_by_key(|(size, weight)| (**weight, **size)).map(|(size, _)| *size)
    else {
        return Vec::new();
    };
    let is_heading = |at: usize| {
        let text = shown(at);
        f32::from(lines[at].size) >= f32::from(body) * LARGER
            && text.chars().count() <= HEADING_CHARS
            && text.chars().any(char::is_alphabetic)
    };
    let found: Vec<usize> = (0..lines.len()).filter(|at| is_heading(*at)).collect();
    // Where a third of the lines stands out, none does, unless there are only a few.
    if found.is_empty() || (found.len() * 3 > lines.len() && lines.len() > FEW_LINES) {
        return Vec::new();
    }
    let mut sizes: Vec<u16> = found.iter().map(|at| lines[*at].size).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes.dedup_by(|a, b| a.abs_diff(*b) <= 5);
    let level_of =
        |size: u16| sizes.iter().position(|known| known.abs_diff(size) <= 5).unwrap_or(0).min(LEVELS - 1) + 1;
    let mut starts: Vec<Start> = Vec::new();
    let mut before: Option<usize> = None;
    for at in found {
        let (page, level) = (page_of(text, lines[at].start), level_of(lines[at].size));
        let goes_on = before == at.checked_sub(1) && before.is_some();
        before = Some(at);
        if let Some(last) =
            starts.last_mut().filter(|last| goes_on && last.level == level && last.page == page)
        {
            last.title.push(' ');
            last.title.push_str(shown(at));
            continue;
        }
        let is_first = at == 0 || page_of(text, lines[at - 1].start) < page;
        let title = shown(at).to_owned();
        starts.push(Start { level, title, page, is_first, byte: Some(lines[at].start) });
        if starts.len() == MOST_NODES {
            break;
        }
    }
    starts
}

/// A section goes on until the next one on its level or above, and to the page that one begins on unless it begins that
/// page.
fn sections(text: &Text<'_>, starts: &[Start]) -> Vec<Entry> {
    let count = text.pages.len() as u32;
    let mut ends = vec![count; starts.len()];
    let mut open: Vec<usize> = Vec::new();
    for (at, start) in starts.iter().enumerate() {
        while let Some(last) = open.last().copied().filter(|last| starts[*last].level >= start.level) {
            ends[last] = if start.is_first { start.page.saturating_sub(1) } else { start.page };
            open.pop();
        }
        open.push(at);
    }
    let entry = |(at, start): (usize, &Start)| {
        let pages = Pages::range(start.page, ends[at].max(start.page)).ok()?;
        let until =
            starts.get(at + 1).and_then(|next| next.byte).map_or(text.text.len(), |byte| byte as usize);
        let own = start.byte.and_then(|byte| text.text.get(byte as usize..until.max(byte as usize)));
        let own = own.map(|own| own.trim_start().strip_prefix(start.title.as_str()).unwrap_or(own));
        Some(Entry {
            level: start.level,
            title: start.title.clone(),
            kind: SECTION,
            place: Place::Document(Some(pages)),
            summary: own.and_then(summary::of),
        })
    };
    starts.iter().enumerate().filter_map(entry).collect()
}

fn pages(text: &Text<'_>) -> Vec<Entry> {
    let entry = |page: u32| {
        Some(Entry {
            level: 1,
            title: format!("Page {page}"),
            kind: SECTION,
            place: Place::Document(Some(Pages::single(page).ok()?)),
            summary: summary::of(page_text(text, page)),
        })
    };
    (1..=text.pages.len().min(MOST_NODES) as u32).filter_map(entry).collect()
}
