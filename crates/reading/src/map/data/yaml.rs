//! The keys of YAML by their indentation.

use super::{LEVELS, MOST_NODES, Mark, TextLines, key, quoted};

/// Keys by indentation; blocks of text are skipped, and so are lists, whose items have no names.
pub(in crate::map) fn yaml(lines: &TextLines<'_>) -> Vec<Mark> {
    let mut marks: Vec<Mark> = Vec::new();
    // The indentation of the keys that are open, from the outermost.
    let mut open: Vec<usize> = Vec::new();
    let mut block: Option<usize> = None;
    for (number, line) in lines.iter() {
        let content = line.trim_start();
        let indent = line.len() - content.len();
        if content.is_empty() {
            continue;
        }
        if indent == 0 && is_document_mark(content) {
            (block, open) = (None, Vec::new());
            continue;
        }
        let in_block = block.is_some_and(|block| indent > block);
        if content.starts_with('#') && !in_block {
            continue;
        }
        if !in_block {
            block = None;
            if content.starts_with("- ") || content.trim_end() == "-" {
                // What is in the item belongs to the key above.
                block = Some(indent);
            } else if let Some((name, value)) = split_key(content) {
                open.retain(|known| *known < indent);
                open.push(indent);
                if open.len() <= LEVELS {
                    marks.push(key(open.len(), name, number));
                }
                if value.trim_start().starts_with(['|', '>']) {
                    block = Some(indent);
                }
            }
        }
        if let Some(mark) = marks.last_mut().filter(|_| !open.is_empty()) {
            mark.last = Some(number);
        }
        if marks.len() >= MOST_NODES {
            break;
        }
    }
    marks
}

/// A line that begins or ends a document, or is a directive before one.
fn is_document_mark(content: &str) -> bool {
    let mark = content.get(..3).unwrap_or_default();
    (matches!(mark, "---" | "...") && !content[3..].starts_with(|each: char| !each.is_whitespace()))
        || content.starts_with('%')
}

/// A key and its value: `name: value`, with or without quotes, or `? name`, whose value follows.
fn split_key(content: &str) -> Option<(&str, &str)> {
    if let Some(name) = content.strip_prefix("? ") {
        let name = name.trim();
        let is_name = !name.is_empty() && !name.starts_with(['|', '>', '-', '#']);
        return is_name.then(|| (quoted(name).map_or(name, |(name, _)| name), ""));
    }
    // A quote that is doubled stands for itself.
    if let Some((name, rest)) = quoted(content).filter(|(_, rest)| !rest.starts_with('\'')) {
        let value = rest.trim_start().strip_prefix(':')?;
        let is_key = !name.is_empty() && (value.is_empty() || value.starts_with([' ', '\t']));
        return is_key.then_some((name, value));
    }
    let (name, value) = match content.find(": ") {
        Some(at) => (&content[..at], &content[at + 2..]),
        None => (content.trim_end().strip_suffix(':')?, ""),
    };
    let name = name.trim().trim_matches('\'');
    let is_name = !name.is_empty() && !name.starts_with('"') && !name.contains(['{', '[', '#']);
    is_name.then_some((name, value))
}
