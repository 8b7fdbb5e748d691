//! The headings of AsciiDoc.

use super::{
    markup::heading,
    text::{Mark, TextLines},
};

/// What delimits a block whose text is taken as it is, when it is repeated four times or more.
const VERBATIM: [char; 4] = ['-', '.', '+', '/'];
/// What delimits a block that may hold others.
const COMPOUND: [char; 3] = ['*', '=', '_'];
/// What delimits tables.
const TABLES: [&str; 4] = ["|===", ",===", ":===", "!==="];
/// What underlines titles, from the highest level.
const UNDERLINES: [char; 5] = ['=', '-', '~', '^', '+'];
/// Blocks within blocks that are followed at most.
const DEEPEST: usize = 32;

/// A block that is open.
struct Block<'a> {
    /// The line that ends it.
    end: &'a str,
    /// Whether it may hold other blocks.
    is_compound: bool,
}

/// `=` or `#` before a title, or a row of punctuation under it, outside blocks.
pub(super) fn ascii_doc(lines: &TextLines<'_>) -> Vec<Mark> {
    let mut marks: Vec<Mark> = Vec::new();
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let mut underline = 0;
    for (number, line) in lines.iter() {
        let line = line.trim_end();
        if number == underline {
            continue;
        }
        if blocks.last().is_some_and(|block| block.end == line) {
            blocks.pop();
            continue;
        }
        if blocks.last().is_some_and(|block| !block.is_compound) {
            continue;
        }
        if let Some(level) = underlined(lines, number).filter(|_| blocks.is_empty()) {
            marks.push(heading(level, line, number, 2));
            underline = number + 1;
        } else if let Some(block) = block(line).filter(|_| blocks.len() < DEEPEST) {
            blocks.push(block);
        } else if let Some((level, title)) = titled(line).filter(|_| blocks.is_empty()) {
            marks.push(heading(level, title, number, 1));
        }
    }
    marks
}

/// The block that a line opens.
fn block(line: &str) -> Option<Block<'_>> {
    let is_row = |of: &[char]| {
        let first = line.chars().next().filter(|first| of.contains(first));
        first.is_some_and(|first| line.len() >= 4 && line.chars().all(|each| each == first))
    };
    if line.starts_with("```") && !line[3..].contains('`') {
        return Some(Block { end: "```", is_compound: false });
    }
    let is_compound = line == "--" || is_row(&COMPOUND);
    (is_compound || is_row(&VERBATIM) || TABLES.contains(&line)).then_some(Block { end: line, is_compound })
}

/// `== Title`, `## Title`, also with the same marks behind it.
fn titled(line: &str) -> Option<(usize, &str)> {
    let mark = line.chars().next().filter(|mark| matches!(mark, '=' | '#'))?;
    let title = line.trim_start_matches(mark);
    let level = line.len() - title.len();
    let words = title.strip_prefix([' ', '\t'])?.trim();
    let closed = words.strip_suffix(&line[..level]).filter(|rest| rest.ends_with([' ', '\t']));
    ((1..=6).contains(&level) && !words.is_empty()).then(|| (level, closed.unwrap_or(words).trim_end()))
}

/// The level of the title that a line is, if it begins a paragraph and the next line underlines it.
fn underlined(lines: &TextLines<'_>, number: u32) -> Option<usize> {
    let title = lines.line(number).trim_end();
    let under = lines.line(number + 1).trim_end();
    let level = UNDERLINES.iter().position(|mark| under.starts_with(*mark))?;
    let is_row = under.len() >= 2 && under.chars().all(|each| each == UNDERLINES[level]);
    let before = if number > 1 { lines.line(number - 1).trim() } else { "" };
    let begins = before.is_empty() || (before.starts_with('[') && before.ends_with(']'));
    let is_title =
        title.starts_with(char::is_alphanumeric) && title.chars().count().abs_diff(under.len()) <= 1;
    (is_row && begins && is_title).then_some(level + 1)
}
