//! Figures for which every document is looked at, remembered until something changes.
//!
//! People and their consoles ask for the same counts again and again, and seldom has anything changed in between. What was
//! found is good for as long as the journal has not grown. A repair changes rows without a record, so nothing is kept for
//! longer than a minute.

use std::time::{Duration, Instant};

use shelf_base::Recent;
use shelf_catalog::{CollectionSummary, Facets, FolderContent};

use crate::Result;

/// Bytes of each kind that are kept, about.
const BYTES: usize = 1 << 19;
/// How long something is kept at most.
const LONGEST: Duration = Duration::from_secs(60);
/// Bytes that a row of a reply takes, about.
const ROW: usize = 128;
const DOCUMENT: usize = 1_024;

/// What was found, by what was asked for; with the journal's end and the time when it was asked for.
struct Known<V>(Recent<String, (u64, Instant, V)>);

impl<V: Clone> Known<V> {
    fn new() -> Self {
        Self(Recent::new(BYTES))
    }

    /// What is known at this end of the journal, or what `find` finds. `weight` tells how many bytes that takes.
    fn get_or_find(
        &self,
        asked: String,
        sequence: u64,
        weight: impl FnOnce(&V) -> usize,
        find: impl FnOnce() -> Result<V>,
    ) -> Result<V> {
        if let Some((at, since, known)) = self.0.get(&asked)
            && at == sequence
            && since.elapsed() < LONGEST
        {
            return Ok(known);
        }
        let since = Instant::now();
        let found = find()?;
        let weight = weight(&found) + asked.len() + ROW;
        self.0.keep(asked, (sequence, since, found.clone()), weight);
        Ok(found)
    }
}

/// Everything that a library remembers in this way.
pub(crate) struct Remembered {
    collections: Known<Vec<CollectionSummary>>,
    facets: Known<Facets>,
    folders: Known<FolderContent>,
}

impl Default for Remembered {
    fn default() -> Self {
        Self { collections: Known::new(), facets: Known::new(), folders: Known::new() }
    }
}

impl Remembered {
    /// Forgets everything.
    pub(crate) fn clear(&self) {
        self.collections.0.clear();
        self.facets.0.clear();
        self.folders.0.clear();
    }

    /// Collections with their figures.
    pub(crate) fn collections(
        &self,
        asked: String,
        sequence: u64,
        find: impl FnOnce() -> Result<Vec<CollectionSummary>>,
    ) -> Result<Vec<CollectionSummary>> {
        self.collections.get_or_find(asked, sequence, |found| found.len() * 2 * ROW, find)
    }

    /// How documents divide.
    pub(crate) fn facets(
        &self,
        asked: String,
        sequence: u64,
        find: impl FnOnce() -> Result<Facets>,
    ) -> Result<Facets> {
        let rows = |found: &Facets| {
            found.collections.len() + found.types.len() + found.tags.len() + found.days.len()
        };
        self.facets.get_or_find(asked, sequence, |found| rows(found) * ROW, find)
    }

    /// What stands in a folder.
    pub(crate) fn folder(
        &self,
        asked: String,
        sequence: u64,
        find: impl FnOnce() -> Result<FolderContent>,
    ) -> Result<FolderContent> {
        let weight = |found: &FolderContent| found.folders.len() * ROW + found.documents.len() * DOCUMENT;
        self.folders.get_or_find(asked, sequence, weight, find)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn figures_are_found_once_for_each_end_of_the_journal() {
        let (known, found) = (Known::<u64>::new(), Cell::new(0));
        let ask = |asked: &str, sequence: u64| {
            let find = || {
                found.set(found.get() + 1);
                Ok(found.get())
            };
            known.get_or_find(asked.to_owned(), sequence, |_| 8, find).unwrap()
        };
        assert_eq!((ask("a", 1), ask("a", 1), ask("b", 1)), (1, 1, 2));
        assert_eq!((ask("a", 2), ask("a", 2), ask("b", 1)), (3, 3, 2));
        assert_eq!(known.get_or_find("c".into(), 1, |_| BYTES, || Ok(7)).unwrap(), 7);
        assert_eq!(
            known.get_or_find("c".into(), 1, |_| 8, || Ok(8)).unwrap(),
            8,
            "it was too large to be kept"
        );
    }
}
