//! Texts that pattern searches read again and again, unpacked and verified, in memory.
//!
//! A long document matches more patterns than a short one, so that a few of the documents make up most of what is
//! read: a quarter of a library of 275 MB saves half of the unpacking. Which they are is told by counting how often each
//! is asked for; a text gives way only to one that is asked for more often, so that a search through everything does not
//! sweep out what is needed. A text is verified when it is read from storage, before it comes here; it is kept by its
//! hash, and what has a hash does not change.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;
use shelf_base::Digest;

/// Bytes of all texts.
const KEPT: usize = 64 << 20;
/// Bytes of one text at most.
const LARGEST: usize = 1 << 20;
/// What a text takes beside its bytes, about.
const BESIDE: usize = 128;
/// Counters; texts that share one are taken for equally frequent, which does no harm.
const COUNTERS: usize = 1 << 18;
/// After so many counts all are halved, so that the past fades.
const FADE: usize = 8 * COUNTERS;

/// What is known of a text.
pub(crate) enum Known {
    /// Here it is.
    Text(Arc<[u8]>),
    /// It is asked for often enough to be kept once it has been read.
    Wanted,
    /// It is asked for too seldom.
    Unwanted,
}

/// Texts by hash.
pub(crate) struct Texts {
    most: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    texts: HashMap<Digest, Arc<[u8]>>,
    /// The order in which they are looked at when room is needed.
    order: VecDeque<Digest>,
    bytes: usize,
    /// How often each was asked for, by its hash; made when first needed.
    counts: Vec<u8>,
    counted: usize,
}

impl Default for Texts {
    fn default() -> Self {
        Self { most: KEPT, kept: Mutex::default() }
    }
}

impl Texts {
    /// Asks for texts.
    pub(crate) fn ask(&self, hashes: &[Digest]) -> Vec<Known> {
        let mut kept = self.kept.lock();
        hashes.iter().map(|hash| kept.ask(hash, self.most)).collect()
    }

    /// Keeps a text that was wanted, if it still is.
    pub(crate) fn keep(&self, hash: Digest, text: &[u8]) {
        let size = text.len() + BESIDE;
        if text.len() > LARGEST || size > self.most {
            return;
        }
        let text: Arc<[u8]> = text.into();
        let mut kept = self.kept.lock();
        if kept.make_room(&hash, size, self.most) && kept.texts.insert(hash, text).is_none() {
            kept.order.push_back(hash);
            kept.bytes += size;
        }
    }
}

impl Kept {
    fn ask(&mut self, hash: &Digest, most: usize) -> Known {
        let before = self.count(hash);
        if let Some(text) = self.texts.get(hash) {
            return Known::Text(text.clone());
        }
        let is_better = || self.order.front().is_none_or(|first| self.counts[slot(first)] < before);
        // What is asked for the first time may never be again.
        if before > 0 && (self.bytes < most - most / 8 || is_better()) {
            Known::Wanted
        } else {
            Known::Unwanted
        }
    }

    /// Counts, and says how often it was counted before.
    fn count(&mut self, hash: &Digest) -> u8 {
        if self.counts.is_empty() {
            self.counts = vec![0; COUNTERS];
        }
        self.counted += 1;
        if self.counted == FADE {
            self.counted = 0;
            self.counts.iter_mut().for_each(|count| *count /= 2);
        }
        let count = &mut self.counts[slot(hash)];
        let before = *count;
        *count = count.saturating_add(1);
        before
    }

    /// Lets texts go that are asked for less often; whether that makes enough room.
    fn make_room(&mut self, hash: &Digest, size: usize, most: usize) -> bool {
        while self.bytes + size > most {
            let Some(first) = self.order.pop_front() else { return false };
            if self.counts[slot(&first)] >= self.counts[slot(hash)] {
                // It stays, and the next newcomer meets another.
                self.order.push_back(first);
                return false;
            }
            if let Some(gone) = self.texts.remove(&first) {
                self.bytes -= gone.len() + BESIDE;
            }
        }
        true
    }
}

fn slot(hash: &Digest) -> usize {
    let bytes = hash.as_bytes();
    usize::from(bytes[0]) << 16 & (COUNTERS - 1) | usize::from(bytes[1]) << 8 | usize::from(bytes[2])
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 1_000;

    fn texts() -> Texts {
        Texts { most: 10 * (SIZE + BESIDE), kept: Mutex::default() }
    }

    fn hash(number: u32) -> Digest {
        Digest::of(&number.to_le_bytes())
    }

    /// Asks for a text and keeps it when it is wanted; whether it was there.
    fn read(texts: &Texts, number: u32) -> bool {
        match texts.ask(&[hash(number)]).remove(0) {
            Known::Text(text) => {
                assert_eq!(&text[..], vec![number as u8; SIZE]);
                return true;
            }
            Known::Wanted => texts.keep(hash(number), &vec![number as u8; SIZE]),
            Known::Unwanted => {}
        }
        assert!(texts.kept.lock().bytes <= texts.most);
        false
    }

    fn read_all(texts: &Texts, numbers: std::ops::Range<u32>) {
        for number in numbers {
            read(texts, number);
        }
    }

    #[test]
    fn what_is_read_often_outlives_a_walk_through_everything() {
        let texts = texts();
        for _ in 0..4 {
            read_all(&texts, 0..8);
        }
        assert!((0..8).all(|number| read(&texts, number)));
        for _ in 0..2 {
            read_all(&texts, 100..1_000);
        }
        assert!((0..8).all(|number| read(&texts, number)));
    }

    #[test]
    fn what_becomes_frequent_takes_the_place_of_what_was() {
        let texts = texts();
        for _ in 0..3 {
            read_all(&texts, 0..10);
        }
        for _ in 0..20 {
            read_all(&texts, 50..60);
        }
        assert!((50..60).filter(|number| read(&texts, *number)).count() >= 8);
    }

    #[test]
    fn large_texts_are_not_kept() {
        let texts = Texts::default();
        let large = vec![0; LARGEST + 1];
        texts.keep(hash(1), &large);
        assert!(!matches!(texts.ask(&[hash(1)]).remove(0), Known::Text(_)));
    }
}
