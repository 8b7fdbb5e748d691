//! The words and word pieces that the model has rows for, and the search for the longest match.
//!
//! Lookups are most of the cost of tokenizing, and tokenizing is most of the cost of embedding, so this is a custom
//! hash table: with four bytes per slot it fits the processor's cache, where a general map would not, and the entry
//! lengths that are possible for two given first bytes are known before any lookup. The table is built from the
//! vocabulary's text on first use, in about a millisecond, so a program that embeds nothing pays nothing.

use std::sync::OnceLock;

/// The number of tokens; every id is smaller.
pub(crate) const SIZE: usize = 30_522;
/// The id of words that cannot be split into known pieces.
pub(crate) const UNKNOWN: u16 = 100;
/// Bytes that may be read past the end of a word; see [`Vocabulary::longest`].
pub(crate) const SPARE: usize = 16;

const TEXT: &str = include_str!("../model/vocab.txt");
const CONTINUATION: &str = "##";
/// The length of the longest entry, in bytes.
const LONGEST: usize = 18;
const SLOTS: usize = 1 << 16;
const SHAPES: usize = 1 << 13;
const EMPTY: u32 = u32::MAX;

/// The vocabulary, indexed for lookups.
pub(crate) struct Vocabulary {
    /// An open-addressing hash table; each slot holds 16 bits of the hash, then the id.
    slots: Vec<u32>,
    /// The position of each entry in [`TEXT`], without the continuation mark.
    entries: Vec<Entry>,
    /// By the hash of the first two bytes: bit n is set when an entry of n bytes may begin with them.
    shapes: Vec<u32>,
    /// The ids of single ASCII characters.
    singles: [u16; 128],
}

#[derive(Clone, Copy)]
struct Entry {
    offset: u32,
    length: u8,
    continues: bool,
}

impl Entry {
    fn bytes(self) -> &'static [u8] {
        let offset = self.offset as usize;
        TEXT.as_bytes().get(offset..offset + self.length as usize).unwrap_or_default()
    }
}

impl Vocabulary {
    /// The only instance, built on first use.
    pub(crate) fn get() -> &'static Self {
        static VOCABULARY: OnceLock<Vocabulary> = OnceLock::new();
        VOCABULARY.get_or_init(|| Self::read(TEXT))
    }

    fn read(text: &str) -> Self {
        let mut vocabulary = Self {
            slots: vec![EMPTY; SLOTS],
            entries: Vec::with_capacity(SIZE),
            shapes: vec![0; SHAPES],
            singles: [UNKNOWN; 128],
        };
        let mut offset = 0;
        for (id, line) in text.lines().take(SIZE).enumerate() {
            vocabulary.insert(id as u16, line, offset);
            offset += line.len() as u32 + 1;
        }
        vocabulary
    }

    fn insert(&mut self, id: u16, line: &str, offset: u32) {
        let piece = line.strip_prefix(CONTINUATION).filter(|piece| !piece.is_empty());
        let continues = piece.is_some();
        let word = piece.unwrap_or(line).as_bytes();
        let offset = offset + (line.len() - word.len()) as u32;
        self.entries.push(Entry { offset, length: word.len() as u8, continues });
        let mut padded = [0; LONGEST + SPARE];
        padded[..word.len()].copy_from_slice(word);
        let hash = hash(window(&padded), word.len(), continues);
        let mut slot = hash.slot();
        while self.slots[slot] != EMPTY {
            slot = (slot + 1) % SLOTS;
        }
        self.slots[slot] = u32::from(hash.tag()) << 16 | u32::from(id);
        self.shapes[shape(padded[0], padded[1], continues)] |= 1 << word.len();
        if let ([byte @ 0..128], false) = (word, continues) {
            self.singles[*byte as usize] = id;
        }
    }

    /// The token of one ASCII character.
    pub(crate) fn single(&self, byte: u8) -> u16 {
        self.singles.get(byte as usize).copied().unwrap_or(UNKNOWN)
    }

    /// The id and the length of the longest entry that is a prefix of the first `length` bytes of `bytes`.
    ///
    /// `bytes` must extend at least [`SPARE`] bytes past `length`, with any content, so that sixteen bytes can be read
    /// at once and the unwanted ones masked.
    pub(crate) fn longest(&self, bytes: &[u8], length: usize, continues: bool) -> Option<(u16, usize)> {
        let window = window(bytes);
        let (first, second) = (window as u8, (window >> 8) as u8);
        // A one-byte entry may be followed by any byte, so its length is always tried.
        let mut lengths = self.shapes[shape(first, second, continues)] | 2;
        lengths &= (2 << length.min(LONGEST)) - 1;
        while lengths > 1 {
            let tried = lengths.ilog2() as usize;
            if let Some(id) = self.find(window, bytes.get(..tried)?, continues) {
                return Some((id, tried));
            }
            lengths ^= 1 << tried;
        }
        None
    }

    fn find(&self, window: u128, word: &[u8], continues: bool) -> Option<u16> {
        let hash = hash(window, word.len(), continues);
        let mut slot = hash.slot();
        loop {
            let found = self.slots[slot];
            if found == EMPTY {
                return None;
            }
            let id = found as u16;
            if (found >> 16) as u16 == hash.tag() && self.is(id, word, continues) {
                return Some(id);
            }
            slot = (slot + 1) % SLOTS;
        }
    }

    fn is(&self, id: u16, word: &[u8], continues: bool) -> bool {
        self.entries
            .get(id as usize)
            .is_some_and(|entry| entry.continues == continues && entry.bytes() == word)
    }
}

#[derive(Clone, Copy)]
struct Hash(u64);

impl Hash {
    fn slot(self) -> usize {
        (self.0 >> 48) as usize
    }

    fn tag(self) -> u16 {
        (self.0 >> 32) as u16
    }
}

/// The first sixteen bytes as a little-endian number.
fn window(bytes: &[u8]) -> u128 {
    bytes.first_chunk::<16>().map_or(0, |chunk| u128::from_le_bytes(*chunk))
}

/// The hash of the first `length` bytes of a window. Bytes after the sixteenth are ignored; hardly any entry has them.
fn hash(window: u128, length: usize, continues: bool) -> Hash {
    let kept = window & (u128::MAX >> (128 - 8 * length.clamp(1, 16)));
    let (low, high) = (kept as u64, (kept >> 64) as u64);
    let salt = if continues { 0x9e37_79b9_7f4a_7c15 } else { 0 };
    let mixed = (low ^ salt).wrapping_mul(0xd6e8_feb8_6659_fd93) ^ high.wrapping_mul(0xa076_1d64_78bd_642f);
    Hash((mixed ^ mixed >> 32).wrapping_mul(0xe703_7ed1_a0b4_28db))
}

fn shape(first: u8, second: u8, continues: bool) -> usize {
    let pair = u32::from(first) << 8 | u32::from(second);
    (pair << 1 | u32::from(continues)).wrapping_mul(0x9e37_79b1) as usize >> 19
}

#[cfg(test)]
mod tests {
    use super::*;

    fn longest(text: &str, continues: bool) -> Option<(u16, usize)> {
        let mut bytes = text.as_bytes().to_vec();
        bytes.extend([b'e'; SPARE]);
        Vocabulary::get().longest(&bytes, text.len(), continues)
    }

    #[test]
    fn every_entry_is_found_under_its_own_id() {
        assert_eq!(TEXT.lines().count(), SIZE);
        assert_eq!(TEXT.lines().map(str::len).max(), Some(LONGEST));
        for (id, line) in TEXT.lines().enumerate() {
            let piece = line.strip_prefix(CONTINUATION).filter(|piece| !piece.is_empty());
            let word = piece.unwrap_or(line);
            assert_eq!(longest(word, piece.is_some()), Some((id as u16, word.len())), "{line}");
        }
    }

    #[test]
    fn takes_the_longest_match_within_the_length() {
        assert_eq!(longest("telecommunicationsx", false).map(|(_, length)| length), Some(18));
        assert_eq!(longest("th", false), longest("th", false).filter(|&(_, length)| length == 2));
        assert_eq!(longest("🙂", false), None);
        assert_eq!(longest("", false), None);
    }
}
