//! The words of a segment one behind the other, so that those with given letters anywhere inside are found by one pass
//! over plain memory. The word index itself can only tell words by their beginning.
//!
//! It is made when a pattern has use for it, and within bounds: of 15 MB of text the plain words take half a megabyte,
//! and identifiers, of which hardly one is like the other, two.

use std::sync::atomic::{AtomicUsize, Ordering};

use memchr::{memchr, memmem};
use tantivy::{InvertedIndexReader, postings::TermInfo};

use crate::Result;

/// Words of this length may have been longer: what followed is not in the index.
const CUT: usize = 80;
const END: u8 = b'\n';
/// Bits of a number in each of its bytes. Their highest bit is set, as in nothing that is looked for, and so is the
/// next one in all but the last.
const BITS: u32 = 6;
const NUMBER: u8 = 0x80;
const MORE: u8 = 0x40;
/// Bytes that the vocabularies of all segments may take; beyond, patterns are looked up by trigrams alone.
const MOST: usize = 48 << 20;

static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Which words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// Those without `_`. The parts of an identifier are words too, so that letters without `_` are always inside of
    /// one of these, wherever they stand.
    Plain,
    /// Those with `_`.
    Identifiers,
}

/// Words of one sort.
pub(super) struct Vocabulary {
    /// Each word, its end, and where its passages are listed: asking the word index for each of hundreds of words would
    /// take longer than finding them here.
    words: Vec<u8>,
    /// Words that may have been cut.
    pub(super) cut: Vec<TermInfo>,
}

impl Vocabulary {
    /// Gathers the words of a segment; `None` when they would take too much memory.
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
        // Dropping it gives its share back.
        Ok((before + made.words.capacity() <= MOST).then_some(made))
    }

    /// Words that have these letters inside, or at their end; `None` when there are more than `most`.
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

/// The number at the beginning, which is taken off.
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
