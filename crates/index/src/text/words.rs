//! Tokenization: the words of a text, with one definition for indexing, querying and highlighting snippets.
//!
//! A word is a run of letters, digits and `_`, lowercased and without accents. An identifier (`connection_pool`,
//! `HttpServer`) yields its parts at successive positions and the whole identifier at the position of the first part,
//! so that it can be found both ways. In scripts that are written without spaces, every character is a word; a query in
//! them is a phrase of characters.

use std::{collections::VecDeque, ops::Range};

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// The maximum length of a word in bytes; the rest is ignored, both in texts and in queries.
const LONGEST: usize = 80;

/// The kind of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// An ordinary word.
    Plain,
    /// A whole identifier; its parts follow.
    Whole,
    /// A part of an identifier.
    Part,
    /// One character of a script that is written without spaces.
    Character,
}

/// The position of a word in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub position: usize,
    pub bytes: Range<usize>,
    pub sort: Sort,
}

/// Iterates over the words of a text.
pub(crate) struct Words<'a> {
    text: &'a str,
    at: usize,
    position: usize,
    parts: VecDeque<Range<usize>>,
}

impl<'a> Words<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, position: 0, parts: VecDeque::new() }
    }

    /// Writes the next word, folded, to `word`.
    pub(crate) fn next(&mut self, word: &mut String) -> Option<Place> {
        if let Some(bytes) = self.parts.pop_front() {
            return Some(self.emit(bytes, Sort::Part, word));
        }
        loop {
            let start = self.skip_to_word()?;
            let first = self.text[start..].chars().next()?;
            if is_spaceless(first) {
                self.at = start + first.len_utf8();
                return Some(self.emit(start..self.at, Sort::Character, word));
            }
            let (end, mixed) = self.run(start);
            self.at = end;
            let run = trim_underscores(self.text, start..end);
            if run.is_empty() {
                continue;
            }
            if mixed {
                self.split(run.clone());
            }
            if self.parts.len() < 2 {
                self.parts.clear();
                return Some(self.emit(run, Sort::Plain, word));
            }
            fold(&self.text[run.clone()], word);
            return Some(Place { position: self.position, bytes: run, sort: Sort::Whole });
        }
    }

    fn emit(&mut self, bytes: Range<usize>, sort: Sort, word: &mut String) -> Place {
        fold(&self.text[bytes.clone()], word);
        let position = self.position;
        self.position += 1;
        Place { position, bytes, sort }
    }

    fn skip_to_word(&mut self) -> Option<usize> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            if byte.is_ascii() {
                if byte.is_ascii_alphanumeric() || *byte == b'_' {
                    return Some(self.at);
                }
                self.at += 1;
            } else {
                let character = self.text[self.at..].chars().next()?;
                if character.is_alphanumeric() {
                    return Some(self.at);
                }
                self.at += character.len_utf8();
            }
        }
        None
    }

    /// The end of the run of word characters, and whether it may be an identifier with several parts.
    fn run(&self, start: usize) -> (usize, bool) {
        let bytes = self.text.as_bytes();
        let mut at = start;
        let (mut mixed, mut lower) = (false, false);
        while let Some(byte) = bytes.get(at) {
            if byte.is_ascii() {
                match byte {
                    b'a'..=b'z' | b'0'..=b'9' => lower = true,
                    b'A'..=b'Z' => mixed |= lower || at > start,
                    b'_' => mixed = true,
                    _ => break,
                }
                at += 1;
            } else {
                let Some(character) = self.text[at..].chars().next() else { break };
                if is_spaceless(character) || !(character.is_alphanumeric() || is_combining_mark(character)) {
                    break;
                }
                mixed |= character.is_uppercase() && at > start;
                lower |= character.is_lowercase();
                at += character.len_utf8();
            }
        }
        (at, mixed && (lower || self.text[start..at].contains('_')))
    }

    /// Splits an identifier into parts: at underscores, before a capital that follows a non-capital, and before the
    /// last of several capitals if a lowercase letter follows.
    fn split(&mut self, run: Range<usize>) {
        let text = &self.text[run.clone()];
        let mut begin = None;
        let mut before: Option<char> = None;
        let mut characters = text.char_indices().peekable();
        while let Some((at, character)) = characters.next() {
            let next = characters.peek().map(|(_, next)| *next);
            let border = match before {
                Some(previous) if character.is_uppercase() => {
                    !previous.is_uppercase() || next.is_some_and(char::is_lowercase)
                }
                _ => false,
            };
            if (character == '_' || border)
                && let Some(begin) = begin.take()
            {
                self.parts.push_back(run.start + begin..run.start + at);
            }
            if character != '_' && begin.is_none() {
                begin = Some(at);
            }
            before = (character != '_').then_some(character);
        }
        if let Some(begin) = begin {
            self.parts.push_back(run.start + begin..run.end);
        }
    }
}

fn trim_underscores(text: &str, run: Range<usize>) -> Range<usize> {
    let inside = &text[run.clone()];
    let start = run.start + (inside.len() - inside.trim_start_matches('_').len());
    let end = run.end - (inside.len() - inside.trim_end_matches('_').len());
    start..end.max(start)
}

/// Whether the character belongs to a script that is written without spaces.
pub(crate) const fn is_spaceless(character: char) -> bool {
    matches!(character as u32,
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3040..=0x30FF | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
}

/// Lowercases `text`, strips accents and truncates it to the maximum length.
pub(crate) fn fold(text: &str, word: &mut String) {
    word.clear();
    if text.is_ascii() {
        word.push_str(&text[..text.len().min(LONGEST)]);
        word.make_ascii_lowercase();
        return;
    }
    for character in text.nfkd().filter(|character| character.is_alphanumeric() || *character == '_') {
        // Letters whose lowercase form depends on case or position; without this, variants of a word would not match.
        match character {
            'ß' | 'ẞ' => word.push_str("ss"),
            'ς' => word.push('σ'),
            _ => word.extend(character.to_lowercase().filter(|character| !is_combining_mark(*character))),
        }
        if word.len() >= LONGEST {
            break;
        }
    }
    if word.is_empty() {
        word.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<(String, usize, Sort)> {
        let (mut words, mut word, mut found) = (Words::new(text), String::new(), Vec::new());
        while let Some(place) = words.next(&mut word) {
            assert!(text.is_char_boundary(place.bytes.start) && text.is_char_boundary(place.bytes.end));
            found.push((word.clone(), place.position, place.sort));
        }
        found
    }

    fn check(text: &str, expected: &[(&str, usize, Sort)]) {
        let expected: Vec<_> =
            expected.iter().map(|(word, position, sort)| ((*word).to_owned(), *position, *sort)).collect();
        assert_eq!(words(text), expected, "{text}");
    }

    #[test]
    fn words_identifiers_and_scripts() {
        use Sort::{Character, Part, Plain, Whole};
        check("Hello, World!", &[("hello", 0, Plain), ("world", 1, Plain)]);
        check("don't", &[("don", 0, Plain), ("t", 1, Plain)]);
        check(
            "a connection_pool b",
            &[
                ("a", 0, Plain),
                ("connection_pool", 1, Whole),
                ("connection", 1, Part),
                ("pool", 2, Part),
                ("b", 3, Plain),
            ],
        );
        check("HTTPServer", &[("httpserver", 0, Whole), ("http", 0, Part), ("server", 1, Part)]);
        check("fooBar", &[("foobar", 0, Whole), ("foo", 0, Part), ("bar", 1, Part)]);
        check("__init__", &[("init", 0, Plain)]);
        check("SHA256 README", &[("sha256", 0, Plain), ("readme", 1, Plain)]);
        check("Café Überraschung", &[("cafe", 0, Plain), ("uberraschung", 1, Plain)]);
        check("Straße ΣΊΣΥΦΟΣ", &[("strasse", 0, Plain), ("σισυφοσ", 1, Plain)]);
        check("Σίσυφος", &[("σισυφοσ", 0, Plain)]);
        check("中文 x", &[("中", 0, Character), ("文", 1, Character), ("x", 2, Plain)]);
        check("___ - \u{301}", &[]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_gives_words_in_order(text in "\\PC{0,200}") {
            let mut last = 0;
            for (word, position, _) in words(&text) {
                proptest::prop_assert!(position >= last && !word.contains(' '));
                last = position;
            }
        }
    }
}
