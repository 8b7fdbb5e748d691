//! Formats matches as `grep` would print them on a terminal.

use std::collections::{BTreeMap, HashMap};

use shelf_engine::{GrepLine, GrepReply, GrepRequest, GrepShow};

use crate::family::ToolError;

/// How lines are formatted.
pub(super) struct Style {
    pub line_numbers: bool,
    pub with_filename: bool,
    pub color: bool,
    pub context: bool,
}

const PATH: &str = "\u{1b}[35m";
const NUMBER: &str = "\u{1b}[32m";
const HIT: &str = "\u{1b}[1;31m";
const PLAIN: &str = "\u{1b}[0m";

/// Whether to use colours; `auto` means no, because a tool does not write to a terminal.
pub(super) fn wants_color(word: Option<&str>) -> Result<bool, ToolError> {
    match word {
        Some("always") => Ok(true),
        None | Some("never" | "auto") => Ok(false),
        Some(other) => {
            Err(ToolError::argument(format!("color must be always, never or auto, not '{other}'")))
        }
    }
}

/// The text of a page.
pub(super) fn text(found: &GrepReply, request: &GrepRequest, style: &Style) -> String {
    let mut output = String::new();
    match request.show {
        GrepShow::FilesWithMatches | GrepShow::FilesWithoutMatch => {
            for file in &found.files {
                output.push_str(&paint(style, PATH, &file.path));
                output.push('\n');
            }
        }
        GrepShow::Counts => {
            for file in &found.files {
                if style.with_filename {
                    output.push_str(&format!("{}:", paint(style, PATH, &file.path)));
                }
                output.push_str(&format!("{}\n", file.count));
            }
        }
        GrepShow::Lines => lines(&found.lines, style, &mut output),
    }
    output
}

fn lines(found: &[GrepLine], style: &Style, output: &mut String) {
    let mut by_path: Vec<(&str, Vec<&GrepLine>)> = Vec::new();
    for line in found {
        match by_path.last_mut() {
            Some((path, lines)) if *path == line.path => lines.push(line),
            _ => by_path.push((&line.path, vec![line])),
        }
    }
    let mut any_before = false;
    for (path, matches) in by_path {
        let hits: HashMap<u64, &GrepLine> = matches.iter().map(|line| (line.number, *line)).collect();
        let mut last = None;
        for (number, text) in with_context(&matches) {
            let gap = last.is_none_or(|last| number > last + 1);
            if style.context && gap && any_before {
                output.push_str("--\n");
            }
            one(path, number, text, hits.get(&number).copied(), style, output);
            (last, any_before) = (Some(number), true);
        }
    }
}

/// Every line of the matches and their context, once, in order.
fn with_context<'a>(matches: &[&'a GrepLine]) -> BTreeMap<u64, &'a str> {
    let mut all = BTreeMap::new();
    for line in matches {
        let first = line.number - line.before.len() as u64;
        let above = (first..).zip(&line.before);
        let below = (line.number + 1..).zip(&line.after);
        for (number, text) in above.chain(below) {
            all.entry(number).or_insert(text.as_str());
        }
    }
    // A match that is context of another one is shown as the match that it is: a long line around the place.
    all.extend(matches.iter().map(|line| (line.number, line.text.as_str())));
    all
}

fn one(path: &str, number: u64, text: &str, hit: Option<&GrepLine>, style: &Style, output: &mut String) {
    let mark = if hit.is_some() { ':' } else { '-' };
    if style.with_filename {
        output.push_str(&format!("{}{mark}", paint(style, PATH, path)));
    }
    if style.line_numbers {
        output.push_str(&format!("{}{mark}", paint(style, NUMBER, &number.to_string())));
    }
    match hit {
        Some(hit) if style.color => {
            let mut at = 0;
            for (start, end) in &hit.spans {
                output.push_str(&format!("{}{HIT}{}{PLAIN}", &text[at..*start], &text[*start..*end]));
                at = *end;
            }
            output.push_str(&text[at..]);
        }
        _ => output.push_str(text),
    }
    output.push('\n');
}

fn paint(style: &Style, color: &str, text: &str) -> String {
    if style.color { format!("{color}{text}{PLAIN}") } else { text.to_owned() }
}
