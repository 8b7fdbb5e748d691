//! Realistic queries: a few words from the corpus, frequent and rare ones mixed, some with a typing error.

use std::collections::HashSet;

use anyhow::{Result, bail};

use super::random::Random;
use super::vocabulary::Vocabulary;

/// A word in more than one of this many files is frequent.
const FREQUENT: usize = 100;
/// A word in no more than one of this many files is rare.
const RARE: usize = 500;
/// Only words of at least this many letters get a typing error: shorter ones turn into other words.
const LONG: usize = 6;

/// Words with which questions begin, and words that stand between the others.
const OPENINGS: [&str; 8] = ["how", "what", "where", "why", "when", "which", "can", "does"];
const SMALL_WORDS: [&str; 16] =
    ["the", "of", "in", "to", "a", "is", "for", "with", "and", "from", "on", "by", "are", "that", "it", "as"];

/// A query with one typing error.
pub struct Mistyped {
    /// The query.
    pub query: String,
    /// The word that was meant.
    pub meant: String,
}

/// Generates queries, deterministically for a given corpus.
pub struct Queries<'words> {
    random: Random,
    frequent: Vec<&'words str>,
    middle: Vec<&'words str>,
    rare: Vec<&'words str>,
    all: HashSet<&'words str>,
    asked: HashSet<String>,
}

impl<'words> Queries<'words> {
    /// Groups the words of the corpus by frequency.
    pub fn new(vocabulary: &'words Vocabulary) -> Result<Self> {
        let files = vocabulary.files;
        let queries = Self {
            random: Random::new(0x5eed_0050),
            frequent: vocabulary.between(files / FREQUENT + 1, files),
            middle: vocabulary.between(files / RARE + 1, files / FREQUENT),
            rare: vocabulary.between(2, files / RARE),
            all: vocabulary.all(),
            asked: HashSet::new(),
        };
        if [&queries.frequent, &queries.middle, &queries.rare].iter().any(|words| words.len() < 100) {
            bail!("the corpus has too few words of each kind");
        }
        Ok(queries)
    }

    /// The number of words of each kind.
    pub fn described(&self) -> String {
        let Self { frequent, middle, rare, .. } = self;
        format!("{} frequent, {} in between, {} rare", frequent.len(), middle.len(), rare.len())
    }

    /// Returns `count` new queries of one to four words.
    pub fn take(&mut self, count: usize) -> Vec<String> {
        let mut taken = Vec::new();
        while taken.len() < count {
            let words: Vec<&str> = (0..self.random.between(1, 4)).map(|_| self.word()).collect();
            let query = words.join(" ");
            if self.asked.insert(query.clone()) {
                taken.push(query);
            }
        }
        taken
    }

    /// Returns `count` new questions of 7 to 12 words, about half of which say little.
    pub fn take_plain_language(&mut self, count: usize) -> Vec<String> {
        let mut taken = Vec::new();
        while taken.len() < count {
            let mut words = vec![*self.random.pick(&OPENINGS)];
            for at in 1..self.random.between(7, 12) {
                words.push(if at % 2 == 0 { self.word() } else { *self.random.pick(&SMALL_WORDS) });
            }
            let query = words.join(" ");
            if self.asked.insert(query.clone()) {
                taken.push(query);
            }
        }
        taken
    }

    /// Returns `count` new queries with an error in one word, alone or after another word.
    pub fn take_mistyped(&mut self, count: usize) -> Vec<Mistyped> {
        let mut taken = Vec::new();
        while taken.len() < count {
            let meant = *self.random.pick(&self.middle);
            let typed = mistype(meant, &mut self.random);
            if meant.len() < LONG || self.all.contains(typed.as_str()) {
                continue;
            }
            let query = if self.random.percent(50) { typed } else { format!("{} {typed}", self.word()) };
            if self.asked.insert(query.clone()) {
                taken.push(Mistyped { query, meant: meant.to_owned() });
            }
        }
        taken
    }

    fn word(&mut self) -> &'words str {
        let words = match self.random.below(10) {
            0..=3 => &self.frequent,
            4..=6 => &self.middle,
            _ => &self.rare,
        };
        self.random.pick::<&str>(words)
    }
}

/// The word with one letter other than the first dropped, doubled, replaced or swapped with the next.
fn mistype(word: &str, random: &mut Random) -> String {
    let mut letters: Vec<u8> = word.bytes().collect();
    let at = random.between(1, letters.len().max(3) - 2).min(letters.len() - 1);
    match random.below(4) {
        0 => {
            letters.remove(at);
        }
        1 => letters.insert(at, letters[at]),
        2 => letters[at] = b'a' + random.below(26) as u8,
        _ => letters.swap(at, (at + 1).min(word.len() - 1)),
    }
    letters.into_iter().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::{Random, mistype};

    #[test]
    fn a_mistyped_word_keeps_its_first_letter_and_about_its_length() {
        let mut random = Random::new(4);
        for _ in 0..200 {
            let typed = mistype("keyboard", &mut random);
            assert!(typed.starts_with('k') && typed.len().abs_diff(8) <= 1, "{typed}");
        }
        assert!(mistype("ab", &mut random).starts_with('a'));
    }
}
