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

/// The text between quotes that `text` begins with, as it reads, and what follows; `None` when the quotes are not closed.
/// In double quotes a backslash escapes; in single ones, a quote that is doubled stands for itself.
fn quoted(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|each| matches!(each, '"' | '\''))?;
    let length = quoted_length(&text[1..], quote)?;
    let inner = &text[1..length];
    let inner = if quote == '"' { unescaped(inner) } else { inner.replace("''", "'") };
    Some((inner, &text[length + 1..]))
}

/// The bytes up to the end of a quoted text, whose first quote was just read, and with its last one.
fn quoted_length(text: &str, quote: char) -> Option<usize> {
    let mut rest = text.char_indices().peekable();
    while let Some((at, each)) = rest.next() {
        if each == '\\' && quote == '"' {
            rest.next();
        } else if each == quote {
            // A quote that is doubled stands for itself.
            if quote == '"' || rest.next_if(|(_, next)| *next == quote).is_none() {
                return Some(at + 1);
            }
        }
    }
    None
}

/// A text between double quotes as it reads.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let Some(each) = after.chars().next() else { return out };
        rest = &after[each.len_utf8()..];
        match each {
            'n' | 't' | 'r' | 'b' | 'f' | 'v' => out.push(' '),
            'x' | 'u' | 'U' => {
                let (found, length) = numbered(each, rest);
                out.push(found);
                rest = &rest[length..];
            }
            _ => out.push(each),
        }
    }
    out + rest
}

/// The character whose number follows `\x`, `\u` or `\U`, and how long the number is; two numbers may make one character.
fn numbered(kind: char, rest: &str) -> (char, usize) {
    let digits = match kind {
        'x' => 2,
        'u' => 4,
        _ => 8,
    };
    let number = |from: &str| u32::from_str_radix(from.get(..digits)?, 16).ok();
    let Some(first) = number(rest) else { return (char::REPLACEMENT_CHARACTER, 0) };
    let second = rest[digits..].strip_prefix("\\u").filter(|_| kind == 'u').and_then(number);
    if let (0xD800..=0xDBFF, Some(second @ 0xDC00..=0xDFFF)) = (first, second) {
        let found = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        return (char::from_u32(found).unwrap_or(char::REPLACEMENT_CHARACTER), 2 * digits + 2);
    }
    (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), digits)
}
