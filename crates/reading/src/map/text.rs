//! The nodes of a text: headings, symbols, keys, or paragraphs when there is nothing better.

use shelf_base::address::{Lines, Place};

use super::{DEFINITION, Entry, MOST_NODES, SECTION, asciidoc, data, line_count, markup, summary};
use crate::{Markup, Text, code};

/// Characters of the title of a paragraph.
const PARAGRAPH_TITLE: usize = 80;

/// Lines of decorators that are passed at most.
const DECORATORS: usize = 50;

/// Something that begins on a line, and ends there or where the next one on its level begins.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pub level: usize,
    pub title: String,
    pub kind: &'static str,
    /// The line it begins on, from 1.
    pub first: u32,
    /// The line it ends on, when it says so itself.
    pub last: Option<u32>,
    /// How many lines its own title takes.
    pub heading: u32,
}

/// A text and where its lines begin.
pub(super) struct TextLines<'a> {
    text: &'a str,
    starts: Vec<u32>,
    count: u32,
}

impl<'a> TextLines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let breaks = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at as u32 + 1);
        let starts: Vec<u32> = std::iter::once(0).chain(breaks).collect();
        Self { text, starts, count: line_count(text) }
    }

    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    /// A line without its break.
    pub(super) fn line(&self, number: u32) -> &'a str {
        self.range(number, number).trim_end_matches(['\n', '\r'])
    }

    /// Lines `first` to `last`.
    pub(super) fn range(&self, first: u32, last: u32) -> &'a str {
        let start =
            |line: u32| self.starts.get(line as usize).map_or(self.text.len(), |start| *start as usize);
        let (from, to) = (start(first.saturating_sub(1)), start(last));
        self.text.get(from..to.max(from)).unwrap_or_default()
    }

    /// The line that a byte is on.
    pub(super) fn line_of(&self, byte: u32) -> u32 {
        self.starts.partition_point(|start| *start <= byte) as u32
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &'a str)> + '_ {
        (1..=self.count).map(|number| (number, self.line(number)))
    }
}

pub(super) fn entries(path: &str, mime: &str, text: &Text<'_>) -> Vec<Entry> {
    let mime = mime.split(';').next().unwrap_or(mime).trim();
    // A mark of the order of bytes says nothing, and hides what stands behind it.
    let plain = text.text.strip_prefix('\u{feff}').unwrap_or(&text.text);
    let lines = TextLines::new(plain);
    let mut marks = match (mime, text.markup) {
        ("text/x-rst", _) => markup::restructured(&lines),
        ("text/asciidoc", _) => asciidoc::ascii_doc(&lines),
        ("text/x-tex", _) => markup::latex(&lines),
        ("application/json", _) => data::json(&lines),
        ("application/toml", _) => data::toml(&lines),
        ("application/yaml", _) => data::yaml(&lines),
        ("application/x-subrip" | "text/vtt", _) => Vec::new(),
        (_, Markup::Markdown) => markup::markdown(plain, &lines),
        (_, Markup::Code) => symbols(path, mime, &lines),
        (_, Markup::Plain) => Vec::new(),
    };
    if marks.is_empty() {
        marks = paragraphs(&lines);
    }
    marks.truncate(MOST_NODES);
    finished(&lines, marks)
}

/// The definitions of a file of code. They are nested as they stand in the file: a method that stands elsewhere than its
/// type, as in Rust and Go, is named with it instead.
fn symbols(path: &str, mime: &str, lines: &TextLines<'_>) -> Vec<Mark> {
    let Some(language) = code::language_of(path, mime) else { return Vec::new() };
    let mut found = code::read(language, lines.text).definitions;
    found.sort_by_key(|definition| (definition.bytes.start, std::cmp::Reverse(definition.bytes.end)));
    // Where the definitions that are open end, and their qualified names.
    let mut open: Vec<(u32, String)> = Vec::new();
    let mut marks = Vec::with_capacity(found.len());
    for definition in found {
        while open.last().is_some_and(|(end, _)| *end < definition.bytes.end) {
            open.pop();
        }
        let title = match open.last() {
            Some((_, around)) => {
                let within = definition.qualified.strip_prefix(around.as_str());
                within.and_then(|name| name.strip_prefix(language.separator())).unwrap_or(&definition.name)
            }
            None => &definition.qualified,
        };
        let (title, (first, last)) = (title.to_owned(), definition.lines);
        open.push((definition.bytes.end, definition.qualified));
        let (level, last) = (open.len(), Some(last.max(first)));
        marks.push(Mark { level, title, kind: DEFINITION, first, last, heading: 0 });
    }
    marks
}

/// Stretches of lines that are not blank.
fn paragraphs(lines: &TextLines<'_>) -> Vec<Mark> {
    let mut marks: Vec<Mark> = Vec::new();
    let mut before_is_blank = true;
    for (number, line) in lines.iter() {
        let is_blank = line.trim().is_empty();
        if !is_blank && before_is_blank {
            if marks.len() == MOST_NODES {
                break;
            }
            let title = line.trim().chars().take(PARAGRAPH_TITLE).collect();
            marks.push(Mark { level: 1, title, kind: SECTION, first: number, last: None, heading: 0 });
        }
        before_is_blank = is_blank;
    }
    marks
}

/// Gives every mark its end and its summary.
fn finished(lines: &TextLines<'_>, marks: Vec<Mark>) -> Vec<Entry> {
    let mut ends = vec![lines.count(); marks.len()];
    let mut open: Vec<usize> = Vec::new();
    for (at, mark) in marks.iter().enumerate() {
        while let Some(last) = open.last().copied().filter(|last| marks[*last].level >= mark.level) {
            ends[last] = mark.first.saturating_sub(1);
            open.pop();
        }
        open.push(at);
    }
    let mut entries = Vec::with_capacity(marks.len());
    for (at, mark) in marks.iter().enumerate() {
        let end = mark.last.unwrap_or_else(|| without_blank_end(lines, mark.first, ends[at]));
        let end = end.clamp(mark.first, lines.count().max(1));
        let own = marks.get(at + 1).map_or(end, |next| next.first.saturating_sub(1).min(end));
        let summary = match mark.kind {
            // What is defined says more than how.
            DEFINITION => {
                Some(lines.line(defining_line(lines, mark, end)).trim().chars().take(200).collect())
            }
            _ => summary::of(lines.range(mark.first + mark.heading, own.max(mark.first))),
        };
        let Ok(place) = Lines::new(mark.first, end) else { continue };
        let summary = summary.filter(|summary| *summary != mark.title);
        entries.push(Entry {
            level: mark.level,
            title: mark.title.clone(),
            kind: mark.kind,
            place: Place::Text(Some(place)),
            summary,
        });
    }
    entries
}

/// The line that defines: the first one that has the name, when decorators stand before it.
fn defining_line(lines: &TextLines<'_>, mark: &Mark, end: u32) -> u32 {
    let is_decorator = |line: &str| line.trim_start().starts_with('@');
    if !is_decorator(lines.line(mark.first)) {
        return mark.first;
    }
    let name = mark.title.rsplit(['.', ':']).next().unwrap_or_default();
    let has_name = |line: &str| !is_decorator(line) && line.contains(name);
    (mark.first..=end).take(DECORATORS).find(|number| has_name(lines.line(*number))).unwrap_or(mark.first)
}

fn without_blank_end(lines: &TextLines<'_>, first: u32, mut last: u32) -> u32 {
    while last > first && lines.line(last).trim().is_empty() {
        last -= 1;
    }
    last
}
