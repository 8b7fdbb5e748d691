//! The words of a segment in one contiguous buffer, so that words containing a given substring are found by a single
//! scan. The term dictionary itself only supports lookups by prefix.
//!
//! A vocabulary is built when a pattern first needs it, within a memory limit: for 15 MB of text, the plain words take
//! half a megabyte and the identifiers, which rarely repeat, two.

use std::sync::atomic::{AtomicUsize, Ordering};

use memchr::{memchr, memmem};
use tantivy::{InvertedIndexReader, postings::TermInfo};

use crate::Result;

/// Words of this length may have been truncated when they were indexed.
const CUT: usize = 80;
const END: u8 = b'\n';
/// Payload bits in each byte of an encoded number. The highest bit is always set, which never occurs in a search
/// string; the next one is set in all bytes but the last.
const BITS: u32 = 6;
const NUMBER: u8 = 0x80;
const MORE: u8 = 0x40;
/// The maximum size of the vocabularies of all segments together, in bytes; beyond it, only trigrams are used.
const MOST: usize = 48 << 20;

static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// The kinds of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// Words without `_`. The parts of an identifier are words too, so a string without `_` is always contained in one
    /// of these.
    Plain,
    /// Words with `_`.
    Identifiers,
}

/// The words of one kind.
pub(super) struct Vocabulary {
    /// Each word, a terminator, and the location of its posting list: looking up hundreds of words in the term
    /// dictionary would take longer than finding them here.
    words: Vec<u8>,
    /// Words that may have been truncated.
    pub(super) cut: Vec<TermInfo>,
}

impl Vocabulary {
    /// Collects the words of a segment; `None` if they would take too much memory.
    pub(super) fn of(index: &InvertedIndexReader, sort: Sort) -> Result<Option<Self>> {
        let (mut words, mut cut) = (Vec::new(), Vec::new());
        let mut terms = index.terms().stream()?;
        while terms.advance() {
            let word = terms.key();
            if word.len() >= CUT {
                cut.push(terms.value().clone());
            } else if memchr(b'_', word).is_some() == (sort == Sort::Identifiers) {
                push(&mut words, word, terms.value());
            }
            if words.len() > MOST {
                return Ok(None);
            }
        }
        words.shrink_to_fit();
        let made = Self { words, cut };
        let before = TAKEN.fetch_add(made.words.capacity(), Ordering::Relaxed);
        // If it does not fit, dropping it gives its share back.
        Ok((before + made.words.capacity() <= MOST).then_some(made))
    }

    /// Words that contain these letters, or end with them; `None` if there are more than `most`.
    pub(super) fn with(&self, letters: &str, at_end: bool, most: usize) -> Option<Vec<TermInfo>> {
        let mut sought = letters.as_bytes().to_vec();
        if at_end {
            sought.push(END);
        }
        let finder = memmem::Finder::new(&sought);
        let (mut found, mut rest) = (Vec::new(), &self.words[..]);
        while let Some(at) = finder.find(rest) {
            rest = &rest[at..];
            rest = &rest[memchr(END, rest)? + 1..];
            if found.len() == most {
                return None;
            }
            let (passages, start, length) = (take(&mut rest), take(&mut rest), take(&mut rest));
            found.push(TermInfo {
                doc_freq: passages as u32,
                postings_range: start..start + length,
                positions_range: 0..0,
            });
        }
        Some(found)
    }
}

fn push(words: &mut Vec<u8>, word: &[u8], info: &TermInfo) {
    words.extend_from_slice(word);
    words.push(END);
    for mut number in [info.doc_freq as usize, info.postings_range.start, info.postings_range.len()] {
        while number >> BITS != 0 {
            words.push(NUMBER | MORE | (number as u8 & (MORE - 1)));
            number >>= BITS;
        }
        words.push(NUMBER | number as u8);
    }
}

/// Decodes the number at the start of `rest` and advances past it.
fn take(rest: &mut &[u8]) -> usize {
    let (mut number, mut shift) = (0, 0);
    while let Some((byte, after)) = rest.split_first() {
        *rest = after;
        number |= usize::from(byte & (MORE - 1)) << shift;
        shift += BITS;
        if byte & MORE == 0 {
            break;
        }
    }
    number
}

impl Drop for Vocabulary {
    fn drop(&mut self) {
        TAKEN.fetch_sub(self.words.capacity(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_found_inside_and_at_the_end() {
        let mut words = Vec::new();
        let info = |number: usize| TermInfo {
            doc_freq: number as u32,
            postings_range: 1_000 * number..1_001 * number,
            positions_range: 0..0,
        };
        for (number, word) in [(1, "banana"), (63, "band"), (64, "nan"), (3_000_000, "urban")] {
            push(&mut words, word.as_bytes(), &info(number));
        }
        TAKEN.fetch_add(words.capacity(), Ordering::Relaxed);
        let vocabulary = Vocabulary { words, cut: Vec::new() };
        let with = |letters: &str, at_end| vocabulary.with(letters, at_end, 3);
        assert_eq!(with("nan", false).unwrap(), [1, 64].map(info));
        assert_eq!(with("an", true).unwrap(), [64, 3_000_000].map(info));
        assert_eq!(with("ban", false).unwrap(), [1, 63, 3_000_000].map(info));
        assert_eq!(with("n", false), None, "more than three");
        assert!(with("x", false).unwrap().is_empty());
    }
}
