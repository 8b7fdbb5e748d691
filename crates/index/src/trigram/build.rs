//! Gathering the trigrams of a segment's documents.

use super::{gram, lists};

/// The distinct trigrams of each document, one after the other.
pub(crate) struct TrigramsBuilder {
    grams: Vec<u32>,
    /// Where each document's trigrams end.
    ends: Vec<u32>,
    /// One bit a trigram: whether the present document has it already.
    seen: Vec<u64>,
}

impl Default for TrigramsBuilder {
    fn default() -> Self {
        Self { grams: Vec::new(), ends: Vec::new(), seen: Vec::new() }
    }
}

impl TrigramsBuilder {
    /// Adds the next document; an empty one for documents that patterns never search.
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

    /// Bytes of memory that the builder takes, about.
    pub(crate) fn memory(&self) -> usize {
        4 * self.grams.len()
    }

    /// The lists, encoded.
    pub(crate) fn finish(self) -> Vec<u8> {
        let Self { grams, ends, seen } = self;
        drop(seen);
        let documents = ends.len() as u32;
        // A stable sort by trigram of (trigram, document) pairs: two passes of counting over twelve bits each.
        let mut pairs = Vec::with_capacity(grams.len());
        let mut first = 0;
        for (document, end) in ends.iter().enumerate() {
            pairs.extend(grams[first..*end as usize].iter().map(|gram| (*gram, document as u32)));
            first = *end as usize;
        }
        drop(grams);
        let mut sorted = vec![(0, 0); pairs.len()];
        counting_pass(&pairs, &mut sorted, 0);
        counting_pass(&sorted, &mut pairs, 12);
        drop(sorted);
        let mut writer = lists::Writer::new(documents);
        for run in pairs.chunk_by(|a, b| a.0 == b.0) {
            writer.add(run[0].0, run.iter().map(|(_, document)| *document));
        }
        writer.finish()
    }
}

fn counting_pass(from: &[(u32, u32)], to: &mut [(u32, u32)], shift: u32) {
    let mut starts = [0_u32; 4_096];
    for (gram, _) in from {
        starts[(gram >> shift & 0xFFF) as usize] += 1;
    }
    let mut sum = 0;
    for start in &mut starts {
        (*start, sum) = (sum, sum + *start);
    }
    for pair in from {
        let slot = &mut starts[(pair.0 >> shift & 0xFFF) as usize];
        to[*slot as usize] = *pair;
        *slot += 1;
    }
}

/// The trigrams of a text that a pattern needs.
pub(super) fn grams_of(text: &[u8]) -> impl Iterator<Item = u32> + '_ {
    text.windows(3).map(|three| gram(three[0], three[1], three[2]))
}
