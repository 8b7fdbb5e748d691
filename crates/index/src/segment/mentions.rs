//! What documents say of each other: an opaque record of facts for each document, and lists of the documents that
//! mention a key. A key is a hash of something that is mentioned; whoever looks one up compares the facts themselves.

use tantivy::directory::OwnedBytes;

use crate::{Error, Result};

/// Bytes of a row of the table of keys: the key, and its document or the place of its list.
const ROW: usize = 8;
/// Marks a key that one document mentions, which stands in the row itself.
const SINGLE: u32 = 1 << 31;

/// Collects facts and mentions of the documents of a segment.
#[derive(Default)]
pub(crate) struct MentionsBuilder {
    facts: Vec<u8>,
    /// Where the facts of each document end.
    ends: Vec<u64>,
    pairs: Vec<(u32, u32)>,
}

impl MentionsBuilder {
    /// Adds the next document.
    pub(crate) fn add(&mut self, facts: &[u8], keys: impl IntoIterator<Item = u32>) {
        let document = self.ends.len() as u32;
        self.facts.extend_from_slice(facts);
        self.ends.push(self.facts.len() as u64);
        self.pairs.extend(keys.into_iter().map(|key| (key, document)));
    }

    /// The approximate memory use in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.facts.len() + 8 * self.pairs.len()
    }

    /// The parts of the segment.
    pub(crate) fn finish(mut self) -> [(&'static str, Vec<u8>); 3] {
        self.pairs.sort_unstable();
        self.pairs.dedup();
        let (mut rows, mut lists) = (Vec::new(), Vec::new());
        let mut count = 0u32;
        for run in self.pairs.chunk_by(|one, other| one.0 == other.0) {
            count += 1;
            rows.extend_from_slice(&run[0].0.to_le_bytes());
            if let [(_, document)] = run {
                rows.extend_from_slice(&(SINGLE | document).to_le_bytes());
                continue;
            }
            rows.extend_from_slice(&(lists.len() as u32).to_le_bytes());
            put(&mut lists, run.len() as u32);
            let mut last = 0;
            for (_, document) in run {
                put(&mut lists, document - last);
                last = *document;
            }
        }
        let mut mentions = count.to_le_bytes().to_vec();
        mentions.extend_from_slice(&rows);
        mentions.extend_from_slice(&lists);
        let ends = self.ends.iter().flat_map(|end| end.to_le_bytes()).collect();
        [("facts", self.facts), ("facts.ends", ends), ("mentions", mentions)]
    }
}

fn put(to: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Facts and mentions of a sealed segment.
pub(crate) struct Mentions {
    facts: OwnedBytes,
    ends: OwnedBytes,
    table: OwnedBytes,
    keys: usize,
    documents: usize,
}

impl Mentions {
    pub(crate) fn open(
        facts: OwnedBytes,
        ends: OwnedBytes,
        table: OwnedBytes,
        documents: usize,
    ) -> Result<Self> {
        let damaged = |what| Error::damaged("mentions", what);
        let keys = table.first_chunk::<4>().map(|four| u32::from_le_bytes(*four) as usize);
        let keys = keys.ok_or_else(|| damaged("it is cut off"))?;
        if ends.len() != 8 * documents || table.len() < 4 + ROW * keys {
            return Err(damaged("its tables have different lengths"));
        }
        Ok(Self { facts, ends, table, keys, documents })
    }

    /// The facts of a document; empty when there are none.
    pub(crate) fn facts(&self, document: usize) -> &[u8] {
        let end = |at: usize| {
            let eight = self.ends.get(8 * at..).and_then(|rest| rest.first_chunk::<8>());
            eight.map_or(0, |eight| u64::from_le_bytes(*eight) as usize)
        };
        let start = if document == 0 { 0 } else { end(document - 1) };
        self.facts.get(start..end(document)).unwrap_or_default()
    }

    fn row(&self, at: usize) -> (u32, u32) {
        let number = |from: usize| {
            let four = self.table.get(from..).and_then(|rest| rest.first_chunk::<4>());
            four.map_or(0, |four| u32::from_le_bytes(*four))
        };
        (number(4 + at * ROW), number(8 + at * ROW))
    }

    /// Keys are hashes, so their place can be guessed: the search begins around it.
    fn place(&self, key: u32) -> Option<usize> {
        let guess = ((u64::from(key) * self.keys as u64) >> 32) as usize;
        let mut reach = 32;
        let (mut low, mut high) = loop {
            let (low, high) = (guess.saturating_sub(reach), (guess + reach).min(self.keys));
            let holds_low = low == 0 || self.row(low).0 <= key;
            let holds_high = high == self.keys || self.row(high).0 > key;
            if holds_low && holds_high {
                break (low, high);
            }
            reach *= 4;
        };
        while low < high {
            let middle = low.midpoint(high);
            match self.row(middle).0.cmp(&key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(middle),
            }
        }
        None
    }

    /// Calls `each` with every document that mentions the key, ascending, while it returns true.
    pub(crate) fn each(&self, key: u32, each: impl FnMut(u32) -> bool) {
        if let Some(at) = self.place(key) {
            self.each_at(at, each);
        }
    }

    fn each_at(&self, at: usize, mut each: impl FnMut(u32) -> bool) {
        let value = self.row(at).1;
        if value & SINGLE != 0 {
            let document = value & !SINGLE;
            if (document as usize) < self.documents {
                each(document);
            }
            return;
        }
        let mut list = self.table.get(4 + ROW * self.keys + value as usize..).unwrap_or_default();
        let Some(count) = take(&mut list) else { return };
        let mut document = 0u32;
        for _ in 0..count {
            let Some(more) = take(&mut list) else { return };
            document = document.wrapping_add(more);
            if document as usize >= self.documents || !each(document) {
                return;
            }
        }
    }

    /// Merges segments. `places[s][d]` is the new row of document `d` of segment `s`, or `None` if it is dropped.
    pub(crate) fn merge(segments: &[&Self], places: &[Vec<Option<u32>>]) -> [(&'static str, Vec<u8>); 3] {
        let mut merged = MentionsBuilder::default();
        for (segment, places) in segments.iter().zip(places) {
            // New rows ascend, so the facts can be appended.
            for (document, _) in places.iter().enumerate().filter(|(_, place)| place.is_some()) {
                merged.add(segment.facts(document), []);
            }
            for at in 0..segment.keys {
                let key = segment.row(at).0;
                segment.each_at(at, |document| {
                    let place = places.get(document as usize).copied().flatten();
                    merged.pairs.extend(place.map(|place| (key, place)));
                    true
                });
            }
        }
        merged.finish()
    }
}

fn take(list: &mut &[u8]) -> Option<u32> {
    let mut number = 0u32;
    for shift in (0..35).step_by(7) {
        let (byte, rest) = list.split_first()?;
        *list = rest;
        number |= u32::from(byte & 0x7F).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(parts: [(&'static str, Vec<u8>); 3], documents: usize) -> Mentions {
        let [facts, ends, table] = parts.map(|(_, bytes)| OwnedBytes::new(bytes));
        Mentions::open(facts, ends, table, documents).unwrap()
    }

    fn documents(mentions: &Mentions, key: u32) -> Vec<u32> {
        let mut found = Vec::new();
        mentions.each(key, |document| {
            found.push(document);
            true
        });
        found
    }

    #[test]
    fn every_key_is_found_before_and_after_a_merge() {
        let keys = |document: u32| (0..50u32).map(move |at| (document * at).wrapping_mul(2_654_435_761));
        let built = |range: std::ops::Range<u32>| {
            let mut builder = MentionsBuilder::default();
            range.clone().for_each(|document| builder.add(&document.to_le_bytes(), keys(document)));
            opened(builder.finish(), range.len())
        };
        let (one, other) = (built(0..40), built(40..100));
        let places = [
            (0..40).map(|at| (at != 7).then_some(if at < 7 { at } else { at - 1 })).collect(),
            (0..60).map(|at| Some(39 + at)).collect(),
        ];
        let merged = opened(Mentions::merge(&[&one, &other], &places), 99);
        let living: Vec<u32> = (0..100).filter(|document| *document != 7).collect();
        for (at, document) in living.iter().enumerate() {
            assert_eq!(merged.facts(at), document.to_le_bytes());
        }
        for key in (0..100).flat_map(keys).chain([1, 2, u32::MAX]) {
            let expected: Vec<u32> = (0..)
                .zip(&living)
                .filter(|(_, document)| keys(**document).any(|own| own == key))
                .map(|(at, _)| at)
                .collect();
            assert_eq!(documents(&merged, key), expected, "{key}");
        }
    }

    #[test]
    fn damage_does_not_panic() {
        let mut builder = MentionsBuilder::default();
        (0..20).for_each(|at| builder.add(b"facts", [at % 3, at, 7]));
        let [facts, ends, table] = builder.finish().map(|(_, bytes)| bytes);
        for at in 4..table.len() {
            let mut damaged = table.clone();
            damaged[at] ^= 0xA5;
            let parts = [&facts, &ends, &damaged].map(|bytes| OwnedBytes::new(bytes.clone()));
            let [facts, ends, table] = parts;
            let Ok(mentions) = Mentions::open(facts, ends, table, 20) else { continue };
            (0..20).for_each(|key| assert!(documents(&mentions, key).len() <= 20 * 20));
        }
    }
}
