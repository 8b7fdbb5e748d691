//! Collects the trigrams of a segment's documents.

use super::{gram, lists};

/// The number of values of half a trigram (12 bits).
const HALF: usize = 1 << 12;
const DOCUMENT_BITS: u32 = 20;
/// The maximum number of documents in a segment under construction.
pub(crate) const MOST_DOCUMENTS: u32 = 1 << DOCUMENT_BITS;

/// The distinct trigrams of each document, back to back.
#[derive(Default)]
pub(crate) struct TrigramsBuilder {
    grams: Vec<u32>,
    /// Where each document's trigrams end.
    ends: Vec<u32>,
    /// One bit per trigram: whether the current document already has it.
    seen: Vec<u64>,
}

impl TrigramsBuilder {
    /// Adds the next document; `bytes` is empty for documents that are never searched by pattern.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        if self.seen.is_empty() {
            self.seen = vec![0; 1 << 18];
        }
        let first = self.grams.len();
        let mut current = 0;
        for (at, byte) in bytes.iter().enumerate() {
            current = (current << 8 | u32::from(byte.to_ascii_lowercase())) & 0xFF_FFFF;
            if at < 2 {
                continue;
            }
            let (word, bit) = ((current >> 6) as usize, 1 << (current & 63));
            if self.seen[word] & bit == 0 {
                self.seen[word] |= bit;
                self.grams.push(current);
            }
        }
        for gram in &self.grams[first..] {
            self.seen[(gram >> 6) as usize] = 0;
        }
        self.ends.push(self.grams.len() as u32);
    }

    /// The approximate memory use in bytes.
    pub(crate) fn memory(&self) -> usize {
        4 * self.grams.len()
    }

    /// Returns the encoded lists.
    pub(crate) fn finish(self) -> Vec<u8> {
        let Self { grams, ends, seen } = self;
        drop(seen);
        let mut writer = lists::Writer::new(ends.len() as u32);
        // A counting sort by the first half of the trigram. The rest of each pair, the second half and the document,
        // fits into four bytes, and is then sorted within each bucket.
        let mut starts = [0_usize; HALF + 1];
        grams.iter().for_each(|gram| starts[(gram >> 12) as usize + 1] += 1);
        for at in 0..HALF {
            starts[at + 1] += starts[at];
        }
        let (mut next, mut pairs) = (starts, vec![0_u32; grams.len()]);
        let mut first = 0;
        for (document, end) in ends.iter().enumerate() {
            for gram in &grams[first..*end as usize] {
                let slot = &mut next[(gram >> 12) as usize];
                pairs[*slot] = (gram & 0xFFF) << DOCUMENT_BITS | document as u32;
                *slot += 1;
            }
            first = *end as usize;
        }
        drop(grams);
        for bucket in 0..HALF {
            let pairs = &mut pairs[starts[bucket]..starts[bucket + 1]];
            pairs.sort_unstable();
            for run in pairs.chunk_by(|a, b| a >> DOCUMENT_BITS == b >> DOCUMENT_BITS) {
                let gram = (bucket as u32) << 12 | run[0] >> DOCUMENT_BITS;
                writer.add(gram, run.iter().map(|pair| pair & (MOST_DOCUMENTS - 1)));
            }
        }
        writer.finish()
    }
}

/// The trigrams of a string.
pub(super) fn grams_of(text: &[u8]) -> impl Iterator<Item = u32> + '_ {
    text.windows(3).map(|three| gram(three[0], three[1], three[2]))
}
