//! What was used lately, within a budget of bytes: the one cache of values that can be had again.

use std::{borrow::Borrow, fmt, hash::Hash};

use lru::LruCache;
use parking_lot::Mutex;

/// Values by key. When they weigh more than the budget, those that nobody asked for longest go.
pub struct Recent<K, V> {
    most: usize,
    kept: Mutex<Kept<K, V>>,
}

struct Kept<K, V> {
    values: LruCache<K, (V, usize)>,
    weight: usize,
}

impl<K: Eq + Hash, V: Clone> Recent<K, V> {
    /// Room for values of this weight.
    pub fn new(most: usize) -> Self {
        Self { most, kept: Mutex::new(Kept { values: LruCache::unbounded(), weight: 0 }) }
    }

    /// A value, which counts as used.
    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.kept.lock().values.get(key).map(|(value, _)| value.clone())
    }

    /// Whether a value is there, which does not count as use.
    pub fn contains<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.kept.lock().values.contains(key)
    }

    /// Keeps a value of this weight, unless it is heavier than all may be together.
    pub fn keep(&self, key: K, value: V, weight: usize) {
        if weight > self.most {
            return;
        }
        let mut kept = self.kept.lock();
        if let Some((_, (_, same))) = kept.values.push(key, (value, weight)) {
            kept.weight -= same;
        }
        kept.weight += weight;
        while kept.weight > self.most {
            let Some((_, (_, gone))) = kept.values.pop_lru() else { break };
            kept.weight -= gone;
        }
    }

    /// Lets one go.
    pub fn forget<Q: Eq + Hash + ?Sized>(&self, key: &Q)
    where
        K: Borrow<Q>,
    {
        let mut kept = self.kept.lock();
        if let Some((_, gone)) = kept.values.pop(key) {
            kept.weight -= gone;
        }
    }

    /// Lets all go, and the memory that they took.
    pub fn clear(&self) {
        *self.kept.lock() = Kept { values: LruCache::unbounded(), weight: 0 };
    }
}

impl<K, V> fmt::Debug for Recent<K, V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Recent").field("most", &self.most).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_longest_goes_when_there_is_too_much() {
        let recent = Recent::new(100);
        for number in 0..4 {
            recent.keep(number, number.to_string(), 25);
            recent.keep(number, number.to_string(), 25);
        }
        assert_eq!(recent.get(&0).as_deref(), Some("0"));
        recent.keep(4, "4".to_owned(), 30);
        let there: Vec<bool> = (0..5).map(|number| recent.contains(&number)).collect();
        assert_eq!(there, [true, false, false, true, true]);
        recent.keep(5, "5".to_owned(), 101);
        assert!(!recent.contains(&5) && recent.contains(&0), "nothing goes for what has no room anyway");
        recent.forget(&0);
        recent.keep(6, "6".to_owned(), 45);
        assert!(recent.contains(&3) && recent.contains(&4) && recent.contains(&6));
        recent.clear();
        assert!(!recent.contains(&6));
        recent.keep(7, "7".to_owned(), 100);
        assert!(recent.contains(&7));
    }
}
