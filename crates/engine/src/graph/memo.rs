//! What one question has found out and may need again.

use std::{cell::RefCell, hash::Hash};

use foldhash::HashMap;

/// Findings that are kept at most.
const KEPT: usize = 20_000;

/// Findings by what they are about. They hold for one question, during which no document changes.
pub(super) struct Memo<K, V>(RefCell<HashMap<K, V>>);

impl<K, V> Default for Memo<K, V> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<K: Eq + Hash, V: Clone> Memo<K, V> {
    /// What is known, or what `find` finds. It may ask the same memo for other things.
    pub(super) fn get_or_find(&self, key: K, find: impl FnOnce() -> V) -> V {
        if let Some(known) = self.0.borrow().get(&key) {
            return known.clone();
        }
        let found = find();
        let mut known = self.0.borrow_mut();
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(key, found.clone());
        found
    }
}
