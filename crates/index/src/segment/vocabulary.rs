//! The words of a segment one behind the other, so that those with given letters anywhere inside are found by one pass
//! over plain memory. The word index itself can only tell words by their beginning.
//!
//! It is made when a pattern has use for it, and within bounds: of 15 MB of text the plain words take a quarter of a
//! megabyte, and identifiers, of which hardly one is like the other, one more.

use std::sync::atomic::{AtomicUsize, Ordering};

use memchr::{memchr, memmem, memrchr};
use tantivy::{InvertedIndexReader, postings::TermInfo};

use crate::Result;

/// Words of this length may have been longer: what followed is not in the index.
const CUT: usize = 80;
const END: u8 = b'\n';
/// Bytes that the vocabularies of all segments may take; beyond, patterns are looked up by trigrams alone.
const MOST: usize = 40 << 20;

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
    words: Vec<u8>,
    /// Words that may have been cut.
    pub(super) cut: Vec<TermInfo>,
}

impl Vocabulary {
    /// Gathers the words of a segment; `None` when they would take too much memory.
    pub(super) fn of(index: &InvertedIndexReader, sort: Sort) -> Result<Option<Self>> {
        let (mut words, mut cut) = (vec![END], Vec::new());
        let mut terms = index.terms().stream()?;
        while terms.advance() {
            let word = terms.key();
            if word.len() >= CUT {
                cut.push(terms.value().clone());
            } else if memchr(b'_', word).is_some() == (sort == Sort::Identifiers) {
                words.extend_from_slice(word);
                words.push(END);
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
    pub(super) fn with(&self, letters: &str, at_end: bool, most: usize) -> Option<Vec<&[u8]>> {
        let mut sought = letters.as_bytes().to_vec();
        if at_end {
            sought.push(END);
        }
        let finder = memmem::Finder::new(&sought);
        let (mut found, mut from) = (Vec::new(), 0);
        while let Some(at) = finder.find(&self.words[from..]).map(|at| from + at) {
            let start = memrchr(END, &self.words[..at]).map_or(0, |before| before + 1);
            let end = memchr(END, &self.words[at..]).map_or(self.words.len(), |length| at + length);
            if found.len() == most {
                return None;
            }
            found.push(&self.words[start..end]);
            from = end;
        }
        Some(found)
    }
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
        let words = b"\nbanana\nband\nnan\nurban\n".to_vec();
        TAKEN.fetch_add(words.capacity(), Ordering::Relaxed);
        let vocabulary = Vocabulary { words, cut: Vec::new() };
        let with = |letters: &str, at_end| {
            let found = vocabulary.with(letters, at_end, 3)?;
            Some(found.into_iter().map(|word| std::str::from_utf8(word).unwrap()).collect::<Vec<_>>())
        };
        assert_eq!(with("nan", false).unwrap(), ["banana", "nan"]);
        assert_eq!(with("an", true).unwrap(), ["nan", "urban"]);
        assert_eq!(with("ban", false).unwrap(), ["banana", "band", "urban"]);
        assert_eq!(with("n", false), None, "more than three");
        assert!(with("x", false).unwrap().is_empty());
    }
}
