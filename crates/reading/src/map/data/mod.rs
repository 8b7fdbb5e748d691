//! The keys of JSON, YAML and TOML files, down to a few levels.
//!
//! A key begins on its own line and ends with the last line of its value: blank lines and comments after it belong to
//! nothing.

mod json;
mod toml;
mod yaml;

use super::{DEFINITION, MOST_NODES, SECTION, text::Mark, text::TextLines};

pub(super) use json::json;
pub(super) use toml::toml;
pub(super) use yaml::yaml;

/// Levels of keys that become nodes.
const LEVELS: usize = 4;

/// A key that, so far, takes one line.
fn key(level: usize, title: &str, first: u32) -> Mark {
    Mark { level, title: title.to_owned(), kind: DEFINITION, first, last: Some(first), heading: 0 }
}

/// The text between quotes that `text` begins with, and what follows; `None` when the quotes are not closed.
/// A backslash escapes in double quotes.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|each| matches!(each, '"' | '\''))?;
    let mut is_escaped = false;
    for (at, each) in text.char_indices().skip(1) {
        match each {
            _ if is_escaped => is_escaped = false,
            '\\' if quote == '"' => is_escaped = true,
            _ if each == quote => return Some((&text[1..at], &text[at + 1..])),
            _ => {}
        }
    }
    None
}
