//! A table from stems to the words of a segment that share them.
//!
//! Only words that differ from their stem are listed; the stem itself is looked up in the dictionary. Most words start
//! with nearly all of their stem, so an entry takes only a few bytes.

use std::{borrow::Cow, collections::BTreeMap};

use rust_stemmers::{Algorithm, Stemmer};
use tantivy::directory::OwnedBytes;

use crate::{Error, Result};

/// The English stem of a folded word. Words with digits or other scripts are their own stem.
pub(crate) fn stem(word: &str) -> Cow<'_, str> {
    if word.len() < 3 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Cow::Borrowed(word);
    }
    Stemmer::create(Algorithm::English).stem(word)
}

/// Collects words.
#[derive(Default)]
pub(crate) struct StemsBuilder {
    words: BTreeMap<String, Vec<(u8, String)>>,
}

impl StemsBuilder {
    pub(crate) fn add(&mut self, word: &str) {
        let stem = stem(word);
        if stem == word {
            return;
        }
        let shared = stem.bytes().zip(word.bytes()).take_while(|(a, b)| a == b).count();
        let form = (shared as u8, word[shared..].to_owned());
        let forms = self.words.entry(stem.into_owned()).or_default();
        if !forms.contains(&form) {
            forms.push(form);
        }
    }

    /// Returns the encoding: count u32, offsets u32 × (count + 1), then the entries sorted by stem, each
    /// `[stem length u8][stem]` and `[shared u8][length u8][ending]` for every form.
    pub(crate) fn finish(self) -> Vec<u8> {
        let mut offsets = Vec::with_capacity(self.words.len() + 1);
        let mut entries = Vec::new();
        for (stem, forms) in &self.words {
            offsets.push(entries.len() as u32);
            entries.push(stem.len() as u8);
            entries.extend_from_slice(stem.as_bytes());
            for (shared, ending) in forms {
                entries.extend_from_slice(&[*shared, ending.len() as u8]);
                entries.extend_from_slice(ending.as_bytes());
            }
        }
        offsets.push(entries.len() as u32);
        let mut bytes = (self.words.len() as u32).to_le_bytes().to_vec();
        bytes.extend(offsets.iter().flat_map(|offset| offset.to_le_bytes()));
        bytes.extend_from_slice(&entries);
        bytes
    }
}

/// The stem table of a segment.
pub(crate) struct Stems {
    bytes: OwnedBytes,
    count: usize,
}

impl Stems {
    pub(crate) fn open(bytes: OwnedBytes) -> Result<Self> {
        let count = u32_at(&bytes, 0).ok_or_else(damaged)? as usize;
        let table = Self { bytes, count };
        let entries = table.offset(count).ok_or_else(damaged)?;
        if table.entries_at() + entries == table.bytes.len() { Ok(table) } else { Err(damaged()) }
    }

    const fn entries_at(&self) -> usize {
        4 + 4 * (self.count + 1)
    }

    fn offset(&self, at: usize) -> Option<usize> {
        u32_at(&self.bytes, 4 + 4 * at).map(|offset| offset as usize)
    }

    fn entry(&self, at: usize) -> Option<(&[u8], &[u8])> {
        let base = self.entries_at();
        let entry = self.bytes.get(base + self.offset(at)?..base + self.offset(at + 1)?)?;
        let (length, rest) = entry.split_first()?;
        rest.split_at_checked(usize::from(*length))
    }

    /// Calls `each` with every listed word that has this stem.
    pub(crate) fn forms(&self, stem: &str, mut each: impl FnMut(&str)) {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low.midpoint(high);
            let Some((found, mut forms)) = self.entry(middle) else { return };
            match found.cmp(stem.as_bytes()) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    while let [shared, length, rest @ ..] = forms {
                        let Some((ending, after)) = rest.split_at_checked(usize::from(*length)) else {
                            return;
                        };
                        forms = after;
                        let Some(start) = stem.get(..usize::from(*shared)) else { return };
                        if let Ok(ending) = std::str::from_utf8(ending) {
                            each(&format!("{start}{ending}"));
                        }
                    }
                    return;
                }
            }
        }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn damaged() -> Error {
    Error::damaged("stems", "its table is malformed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_stem_come_back() {
        let mut builder = StemsBuilder::default();
        for word in ["running", "runs", "run", "happy", "happiness", "optimization", "dying", "x2"] {
            builder.add(word);
        }
        let table = Stems::open(OwnedBytes::new(builder.finish())).unwrap();
        let forms = |word: &str| {
            let mut found = Vec::new();
            table.forms(&stem(word), |form| found.push(form.to_owned()));
            found.sort();
            found
        };
        assert_eq!(forms("run"), ["running", "runs"]);
        assert_eq!(forms("happy"), ["happiness", "happy"]);
        assert_eq!(forms("die"), ["dying"]);
        assert!(forms("absent").is_empty());
        assert!(Stems::open(OwnedBytes::new(vec![9, 0, 0, 0, 1])).is_err());
    }
}
