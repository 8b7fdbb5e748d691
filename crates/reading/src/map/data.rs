//! The keys of JSON, YAML and TOML files, down to a few levels.

use super::{
    DEFINITION, MOST_NODES,
    text::{Mark, TextLines},
};

/// Levels of keys that become nodes.
const LEVELS: usize = 4;

fn key(level: usize, title: &str, first: u32) -> Mark {
    Mark { level, title: title.to_owned(), kind: DEFINITION, first, last: None, heading: 0 }
}

/// Keys of objects, with the lines that their values take. One pass over the characters; what follows a mistake in the
/// syntax is read as well as it can be.
pub(super) fn json(lines: &TextLines<'_>) -> Vec<Mark> {
    let mut marks: Vec<Mark> = Vec::new();
    // The open containers: whether each is an object, and the mark of the key that it is the value of.
    let mut open: Vec<(bool, Option<usize>)> = Vec::new();
    let mut pending: Option<(String, u32)> = None;
    let mut waiting: Option<usize> = None;
    let mut string: Option<String> = None;
    let mut is_escaped = false;
    for (number, line) in lines.iter() {
        for each in line.chars() {
            if let Some(text) = &mut string {
                match each {
                    _ if is_escaped => {
                        text.push(each);
                        is_escaped = false;
                    }
                    '\\' => is_escaped = true,
                    '"' => pending = string.take().map(|text| (text, number)),
                    _ if text.len() < 400 => text.push(each),
                    _ => {}
                }
                continue;
            }
            match each {
                '"' => string = Some(String::new()),
                ':' if open.last().is_some_and(|(is_object, _)| *is_object) => {
                    let depth = open.iter().filter(|(is_object, _)| *is_object).count();
                    let in_list = open.iter().any(|(is_object, _)| !is_object);
                    if let Some((title, first)) = pending.take().filter(|_| depth <= LEVELS && !in_list) {
                        if marks.len() == MOST_NODES {
                            return marks;
                        }
                        waiting = Some(marks.len());
                        marks.push(Mark { last: Some(number), ..key(depth, &title, first) });
                    }
                }
                '{' | '[' => open.push((each == '{', waiting.take())),
                '}' | ']' => {
                    if let Some((_, Some(mark))) = open.pop() {
                        marks[mark].last = Some(number);
                    }
                    end_value(&mut marks, &mut waiting, number);
                }
                ',' => end_value(&mut marks, &mut waiting, number),
                _ => {}
            }
        }
        // A value that goes on: a long text, for example.
        is_escaped = false;
    }
    marks
}

fn end_value(marks: &mut [Mark], waiting: &mut Option<usize>, _number: u32) {
    if let Some(mark) = waiting.take() {
        let first = marks[mark].first;
        marks[mark].last = marks[mark].last.max(Some(first));
    }
}

/// Tables, and the keys of each.
pub(super) fn toml(lines: &TextLines<'_>) -> Vec<Mark> {
    let mut marks = Vec::new();
    let mut depth = 0;
    let mut until: Option<&str> = None;
    for (number, line) in lines.iter() {
        let line = line.trim();
        if let Some(end) = until {
            if line.contains(end) {
                until = None;
            }
            continue;
        }
        if let Some(table) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            let table = table.trim_start_matches('[').trim();
            if table.is_empty() || line.starts_with("[\"") && !line.ends_with(']') {
                continue;
            }
            depth = table.split('.').count().min(LEVELS);
            marks.push(key(depth, table, number));
        } else if let Some((name, value)) = line.split_once('=') {
            let name = name.trim();
            let is_name = !name.is_empty()
                && name
                    .chars()
                    .all(|each| each.is_alphanumeric() || matches!(each, '_' | '-' | '.' | '"' | '\''));
            if is_name {
                marks.push(key(depth + 1, name.trim_matches(['"', '\'']), number));
            }
            until = ["\"\"\"", "'''"].into_iter().find(|quotes| value.matches(quotes).count() == 1);
        }
        if marks.len() >= MOST_NODES {
            break;
        }
    }
    marks
}

/// Keys by indentation; blocks of text are skipped.
pub(super) fn yaml(lines: &TextLines<'_>) -> Vec<Mark> {
    let mut marks = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut block: Option<usize> = None;
    for (number, line) in lines.iter() {
        let content = line.trim_start();
        let indent = line.len() - content.len();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        if block.is_some_and(|block| indent > block) {
            continue;
        }
        block = None;
        if content.starts_with("---") || content.starts_with("- ") || content == "-" {
            // Items of a list have no names; what is below them belongs to the key above.
            if content.starts_with("- ") {
                block = Some(indent);
            }
            continue;
        }
        let Some((name, value)) = split_key(content) else { continue };
        open.retain(|known| *known < indent);
        open.push(indent);
        if open.len() <= LEVELS {
            marks.push(key(open.len(), name, number));
        }
        if value.trim_start().starts_with(['|', '>']) {
            block = Some(indent);
        }
        if marks.len() >= MOST_NODES {
            break;
        }
    }
    marks
}

fn split_key(content: &str) -> Option<(&str, &str)> {
    let (name, value) = match content.find(": ") {
        Some(at) => (&content[..at], &content[at + 2..]),
        None => (content.trim_end().strip_suffix(':')?, ""),
    };
    let name = name.trim().trim_matches(['"', '\'']);
    let is_name = !name.is_empty() && !name.contains(['{', '[', '#']);
    is_name.then_some((name, value))
}
