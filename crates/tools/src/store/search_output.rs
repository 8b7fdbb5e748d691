//! Formats snippets: plain lines, numbered lines, highlighted words.

use shelf_engine::{Snippet, SnippetLine};

/// How lines are formatted.
pub(super) struct Style {
    pub line_numbers: bool,
    pub color: bool,
}

const NUMBER: &str = "\u{1b}[32m";
const HIT: &str = "\u{1b}[1;31m";
const PLAIN: &str = "\u{1b}[0m";

/// The text of a snippet, with its lines formatted.
pub(super) fn snippet(snippet: &Snippet, style: &Style) -> String {
    snippet.lines.iter().map(|line| one(line, style)).collect::<Vec<_>>().join("\n")
}

fn one(line: &SnippetLine, style: &Style) -> String {
    let text = if style.color { marked(line) } else { line.text.clone() };
    if !style.line_numbers {
        return text;
    }
    let sign = if line.is_match { ':' } else { '-' };
    if style.color {
        format!("{NUMBER}{}{PLAIN}{sign}{text}", line.number)
    } else {
        format!("{}{sign}{text}", line.number)
    }
}

fn marked(line: &SnippetLine) -> String {
    let mut output = String::new();
    let mut at = 0;
    for mark in &line.marks {
        output.push_str(&format!("{}{HIT}{}{PLAIN}", &line.text[at..mark.start], &line.text[mark.clone()]));
        at = mark.end;
    }
    output.push_str(&line.text[at..]);
    output
}
