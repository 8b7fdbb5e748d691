//! The headings of markup languages.

use super::{
    SECTION,
    text::{Mark, TextLines},
};
use crate::passages::{Outline, is_underline};

pub(super) fn heading(level: usize, title: &str, first: u32, heading: u32) -> Mark {
    Mark { level, title: plain(title), kind: SECTION, first, last: None, heading }
}

/// Markdown, by the same scan that keeps passages from crossing headings.
pub(super) fn markdown(text: &str, lines: &TextLines<'_>) -> Vec<Mark> {
    let outline = Outline::of(text, crate::Markup::Markdown);
    let marks = outline.headings().iter().map(|start| heading_at(lines, *start));
    marks.map(|mark| Mark { title: crate::html::resolved(&mark.title).into_owned(), ..mark }).collect()
}

fn heading_at(lines: &TextLines<'_>, start: u32) -> Mark {
    let first = lines.line_of(start);
    let line = lines.line(first).trim();
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    if level > 0 {
        let title = line[level..].trim();
        let closed = title.trim_end_matches('#');
        let title = if closed.is_empty() || closed.ends_with([' ', '\t']) { closed } else { title };
        return heading(level, title, first, 1);
    }
    underlined(lines, first)
}

/// A heading of one or more lines above a row of `=` or `-`.
fn underlined(lines: &TextLines<'_>, first: u32) -> Mark {
    let mut title = String::new();
    for number in first..=lines.count() {
        let line = lines.line(number).trim();
        if number > first && is_underline(line) {
            let level = if line.starts_with('=') { 1 } else { 2 };
            return heading(level, &title, first, number - first + 1);
        }
        title.push_str(line);
        title.push(' ');
    }
    heading(1, &title, first, 1)
}

/// The title as it is read: without emphasis, code marks, link targets and attributes.
fn plain(title: &str) -> String {
    let title = title.split(" {#").next().unwrap_or(title);
    let mut out = String::with_capacity(title.len());
    let mut rest = title;
    while let Some(at) = rest.find(['`', '*', '[', '\\', '!']) {
        out.push_str(&rest[..at]);
        let mark = rest.as_bytes()[at];
        let after = &rest[at + 1..];
        let skip = match mark {
            b'\\' => {
                let escaped = after.chars().next().map_or(0, char::len_utf8);
                out.push_str(&after[..escaped]);
                escaped
            }
            b'!' if after.starts_with('[') => 0,
            b'[' => match link_text(after) {
                Some((text, length)) => {
                    out.push_str(&plain(text));
                    length
                }
                None => {
                    out.push('[');
                    0
                }
            },
            b'!' => {
                out.push('!');
                0
            }
            _ => 0,
        };
        rest = &after[skip..];
    }
    out.push_str(rest);
    out.trim().trim_matches('_').to_owned()
}

/// The text of a link whose `[` was just read, and how long the link is from there.
fn link_text(after: &str) -> Option<(&str, usize)> {
    let end = after.find(']')?;
    let rest = after[end + 1..].strip_prefix('(')?;
    let close = rest.find(')')?;
    // One level only: text inside a link that looks like another link stays as it is.
    (!after[..end].contains('[')).then(|| (&after[..end], end + 2 + close + 1))
}

/// The shortest row under a title that is longer than the row.
const SHORT_ROW: usize = 4;

/// reStructuredText: titles under (and over) a row of punctuation, whose order of appearance gives the levels.
pub(super) fn restructured(lines: &TextLines<'_>) -> Vec<Mark> {
    let mut marks = Vec::new();
    let mut styles: Vec<(char, bool)> = Vec::new();
    // The last line that belongs to a title.
    let mut taken = 0;
    for number in 2..=lines.count() {
        let Some((mark, is_over)) = titled_above(lines, number, taken) else { continue };
        let level = styles.iter().position(|style| *style == (mark, is_over)).unwrap_or_else(|| {
            styles.push((mark, is_over));
            styles.len() - 1
        });
        let first = number - 1 - u32::from(is_over);
        marks.push(heading(level + 1, lines.line(number - 1), first, number - first + 1));
        taken = number;
    }
    marks
}

/// The row of punctuation that a line is, and whether there is one over the title too, if it makes the line before it a
/// title. Lines up to `taken` belong to other titles.
fn titled_above(lines: &TextLines<'_>, number: u32, taken: u32) -> Option<(char, bool)> {
    let (title, under) = (lines.line(number - 1), lines.line(number).trim_end());
    let mark = adornment(under)?;
    let above = if number > taken + 2 { lines.line(number - 2).trim_end() } else { "" };
    let is_over = adornment(above) == Some(mark);
    let is_title = number > taken + 1
        && !title.trim().is_empty()
        && (is_over || !title.starts_with([' ', '\t']))
        && adornment(title.trim_end()).is_none();
    let (row, words) = (under.len(), title.trim().chars().count());
    let begins = is_over || above.is_empty();
    (is_title && begins && (row >= words || row >= SHORT_ROW)).then_some((mark, is_over))
}

/// The punctuation that a line is a row of.
fn adornment(line: &str) -> Option<char> {
    let first = line.chars().next().filter(char::is_ascii_punctuation)?;
    line.chars().all(|each| each == first).then_some(first)
}

/// LaTeX: sectioning commands.
pub(super) fn latex(lines: &TextLines<'_>) -> Vec<Mark> {
    const COMMANDS: [&str; 6] = ["part", "chapter", "section", "subsection", "subsubsection", "paragraph"];
    let mut marks = Vec::new();
    for (number, line) in lines.iter() {
        let Some(command) = line.trim_start().strip_prefix('\\') else { continue };
        let name: &str = &command[..command.find(['{', '[', '*']).unwrap_or(0)];
        let Some(level) = COMMANDS.iter().position(|known| *known == name) else { continue };
        let Some(open) = command.find('{') else { continue };
        let title = &command[open + 1..];
        let mut depth = 1;
        let end = title.char_indices().find(|(_, each)| {
            depth += match each {
                '{' => 1,
                '}' => -1,
                _ => 0,
            };
            depth == 0
        });
        let title = end.map_or(title, |(end, _)| &title[..end]);
        marks.push(heading(level + 1, title, number, 1));
    }
    marks
}
