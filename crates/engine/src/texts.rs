//! Texts that pattern searches read again and again, unpacked and verified, in memory.
//!
//! A long document matches more patterns than a short one, so that a few of the documents make up most of what is
//! read: a quarter of a library of 275 MB saves more than half of the unpacking. A text comes in when it is asked for
//! the second time. Once the room is full only one of five newcomers is let in, and each that was asked for meanwhile
//! is spared: patterns that together read a little more than there is room for still find most of it, and when other
//! patterns come the texts follow within a few calls. A search through everything pushes nothing out.
//! A text is verified when it is read from storage, before it comes here; it is kept by its hash, and what has a hash
//! does not change.

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
/// One of so many newcomers is let in when there is no room. With less than three, patterns that read more than there
/// is room for push each other out; with ten, new patterns wait too long.
const ONE_OF: u64 = 5;
/// How often a text is spared at most, however often it was asked for.
const SPARED: u8 = 2;
/// Places to note what was asked for. Texts that share one count as asked for, which does no harm.
const NOTES: usize = 1 << 18;

/// What is known of a text.
pub(crate) enum Known {
    /// Here it is.
    Text(Arc<[u8]>),
    /// It is to be kept once it has been read.
    Wanted,
    /// It is not.
    Unwanted,
}

/// How much a search reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breadth {
    /// A part of what a large library holds.
    Few,
    /// More than could be kept. It takes what is there and pushes nothing out.
    Many,
}

/// Texts by hash.
pub(crate) struct Texts {
    most: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    texts: HashMap<Digest, Text>,
    /// The order in which they are looked at when room is needed.
    order: VecDeque<Digest>,
    bytes: usize,
    /// What was asked for, a bit for each; made when first needed.
    asked: Vec<u64>,
    noted: usize,
    newcomers: u64,
}

struct Text {
    bytes: Arc<[u8]>,
    /// How often it is spared before it has to go.
    credit: u8,
}

impl Default for Texts {
    fn default() -> Self {
        Self { most: KEPT, kept: Mutex::default() }
    }
}

impl Texts {
    /// Asks for texts, for a search of few documents or of many.
    pub(crate) fn ask(&self, hashes: &[Digest], breadth: Breadth) -> Vec<Known> {
        let mut kept = self.kept.lock();
        hashes.iter().map(|hash| kept.ask(hash, breadth, self.most)).collect()
    }

    /// Lets half of them go, those that nobody asked for lately before the others.
    pub(crate) fn shrink(&self) {
        let mut kept = self.kept.lock();
        kept.make_room(0, self.most / 2);
        kept.texts.shrink_to_fit();
    }

    /// Lets all go.
    pub(crate) fn clear(&self) {
        *self.kept.lock() = Kept::default();
    }

    /// Keeps a text that was wanted.
    pub(crate) fn keep(&self, hash: Digest, text: &[u8]) {
        let size = text.len() + BESIDE;
        if text.len() > LARGEST || size > self.most {
            return;
        }
        let text = Text { bytes: text.into(), credit: 0 };
        let mut kept = self.kept.lock();
        kept.make_room(size, self.most);
        if let Some(same) = kept.texts.insert(hash, text) {
            // Another thread was faster.
            kept.bytes -= same.bytes.len() + BESIDE;
        } else {
            kept.order.push_back(hash);
        }
        kept.bytes += size;
    }
}

impl Kept {
    fn ask(&mut self, hash: &Digest, breadth: Breadth, most: usize) -> Known {
        if let Some(text) = self.texts.get_mut(hash) {
            if breadth == Breadth::Few {
                text.credit = (text.credit + 1).min(SPARED);
            }
            return Known::Text(text.bytes.clone());
        }
        // What is asked for the first time may never be again.
        if !self.note(hash) {
            return Known::Unwanted;
        }
        let has_room = self.bytes < most - most / 8;
        if has_room || breadth == Breadth::Few && self.is_let_in() { Known::Wanted } else { Known::Unwanted }
    }

    /// Notes that a text was asked for; whether that was noted before.
    fn note(&mut self, hash: &Digest) -> bool {
        if self.asked.is_empty() || self.noted > NOTES / 2 {
            // With more, chance would let in most of what comes for the first time.
            self.asked = vec![0; NOTES / 64];
            self.noted = 0;
        }
        let bytes = hash.as_bytes();
        let at =
            usize::from(bytes[0]) << 16 & (NOTES - 1) | usize::from(bytes[1]) << 8 | usize::from(bytes[2]);
        let (word, bit) = (&mut self.asked[at / 64], 1 << (at % 64));
        let before = *word & bit != 0;
        *word |= bit;
        self.noted += usize::from(!before);
        before
    }

    /// Lets every fifth in, evenly, yet not in step with any order in which texts are asked for.
    fn is_let_in(&mut self) -> bool {
        self.newcomers = self.newcomers.wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.newcomers < u64::MAX / ONE_OF
    }

    /// Lets texts go until there is enough room; those that were asked for since they were last looked at stay.
    fn make_room(&mut self, size: usize, most: usize) {
        while self.bytes + size > most {
            let Some(first) = self.order.pop_front() else { return };
            match self.texts.get_mut(&first) {
                Some(text) if text.credit > 0 => {
                    text.credit -= 1;
                    self.order.push_back(first);
                }
                _ => {
                    let gone = self.texts.remove(&first);
                    self.bytes -= gone.map_or(0, |gone| gone.bytes.len() + BESIDE);
                }
            }
        }
    }
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
        match texts.ask(&[hash(number)], Breadth::Few).remove(0) {
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
        read_all(&texts, 100..1_000);
        assert!((0..8).all(|number| read(&texts, number)));
        // When a part of it comes again, as much as there is room for three times, they are still there.
        read_all(&texts, 100..130);
        assert!((0..8).all(|number| read(&texts, number)));
        for number in (100..1_000).chain(100..1_000) {
            let known = texts.ask(&[hash(number)], Breadth::Many).remove(0);
            assert!(!matches!(known, Known::Wanted), "{number} would push out another");
        }
    }

    #[test]
    fn more_than_there_is_room_for_still_finds_most() {
        let texts = texts();
        let mut found = 0;
        for round in 0..40 {
            let there = (0..12).filter(|number| read(&texts, *number)).count();
            found += if round < 10 { 0 } else { there };
        }
        assert!(found > 30 * 12 / 2, "{found} of {}", 30 * 12);
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
    fn the_half_that_is_asked_for_survives_a_rest() {
        let texts = texts();
        for _ in 0..2 {
            read_all(&texts, 0..9);
        }
        read_all(&texts, 3..7);
        read_all(&texts, 3..7);
        texts.shrink();
        assert!(texts.kept.lock().bytes <= texts.most / 2);
        assert!((3..7).all(|number| read(&texts, number)));
        texts.clear();
        assert_eq!(texts.kept.lock().bytes, 0);
    }

    #[test]
    fn large_texts_are_not_kept() {
        let texts = Texts::default();
        let large = vec![0; LARGEST + 1];
        texts.keep(hash(1), &large);
        assert!(!matches!(texts.ask(&[hash(1)], Breadth::Few).remove(0), Known::Text(_)));
    }
}
