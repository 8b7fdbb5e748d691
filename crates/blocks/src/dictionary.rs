//! Compression dictionaries: what the documents of a batch have in common, stored in each of its packs.
//!
//! A dictionary is raw content, used as a prefix when compressing a frame: excerpts from the first documents of a batch, or,
//! where much is written at once, what zstd finds most useful in samples of all of it. Choosing takes some 40 ms of processor
//! time and saves 3 % of space.

use std::{io, sync::Arc};

use zstd::{bulk::Compressor, zstd_safe::CParameter};

/// Approximate size in bytes of a dictionary that is made of the first documents. It is stored twice in every pack, and twice
/// as much would not pay in a small one.
const LENGTH: usize = 32 * 1_024;
/// The size of one that is chosen for many documents. Half of it takes 1 % more space; twice as much saves less than that.
const CHOSEN: usize = 64 * 1_024;
/// The size of one that is chosen for a large document, whose frames are long.
const CHOSEN_LONG: usize = 128 * 1_024;
/// The size of a wide dictionary: the part of a large document that its later parts are compressed with.
pub(crate) const WIDE: usize = 512 * 1_024;
const LEVEL: i32 = 3;
/// The magic number of a trained zstd dictionary.
const TRAINED: [u8; 4] = [0x37, 0xA4, 0x30, 0xEC];

/// The dictionary of a batch.
pub(crate) struct Dictionary {
    raw: Arc<Vec<u8>>,
    packed: Vec<u8>,
    /// Whether long frames are compressed with it as well.
    pub(crate) serves_long: bool,
}

impl Dictionary {
    /// Takes an excerpt from the middle of each text, proportional to the text's length.
    pub(crate) fn of<'a>(texts: impl Iterator<Item = &'a [u8]> + Clone) -> io::Result<Self> {
        let total: usize = texts.clone().map(<[u8]>::len).sum();
        let mut raw = Vec::with_capacity(LENGTH);
        for text in texts {
            let share = (text.len() * LENGTH / total.max(1)).min(text.len());
            let start = (text.len() - share) / 2;
            raw.extend_from_slice(&text[start..start + share]);
        }
        Self::from_raw(raw)
    }

    /// What is most useful in samples of what will be compressed; `None` if zstd cannot tell.
    pub(crate) fn chosen(samples: &[Vec<u8>], serves_long: bool) -> io::Result<Option<Self>> {
        let sizes: Vec<usize> = samples.iter().map(Vec::len).collect();
        let length = if serves_long { CHOSEN_LONG } else { CHOSEN };
        let Ok(mut trained) = zstd::dict::from_continuous(&samples.concat(), &sizes, length) else {
            return Ok(None);
        };
        // Readers use dictionaries as plain content. The few tables after the number do no harm there.
        trained.drain(..TRAINED.len());
        Ok(Some(Self { serves_long, ..Self::from_raw(trained)? }))
    }

    /// A dictionary of exactly these bytes.
    pub(crate) fn from_raw(mut raw: Vec<u8>) -> io::Result<Self> {
        while raw.starts_with(&TRAINED) {
            raw.drain(..1);
        }
        let mut zstd = Compressor::new(LEVEL)?;
        // A dictionary has no hash of its own, so the checksum tells a reader which of the two copies is intact.
        zstd.set_parameter(CParameter::ChecksumFlag(true))?;
        let packed = zstd.compress(&raw)?;
        Ok(Self { raw: Arc::new(raw), packed, serves_long: false })
    }

    pub(crate) fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// The compressed bytes, as stored in a frame.
    pub(crate) fn packed(&self) -> &[u8] {
        &self.packed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_gives_its_share() {
        let texts = [vec![b'a'; 60_000], vec![b'b'; 30_000], vec![b'c'; 6_000]];
        let dictionary = Dictionary::of(texts.iter().map(Vec::as_slice)).unwrap();
        let count = |letter: u8| dictionary.raw().iter().filter(|byte| **byte == letter).count();
        assert_eq!((count(b'a'), count(b'b'), count(b'c')), (20_480, 10_240, 2_048));
    }

    #[test]
    fn nothing_is_taken_for_a_trained_one() {
        let text = [TRAINED.as_slice(), &TRAINED, b" and more"].concat();
        let dictionary = Dictionary::of(std::iter::once(text.as_slice())).unwrap();
        assert!(!dictionary.raw().starts_with(&TRAINED) && dictionary.raw().ends_with(b" and more"));
    }
}
