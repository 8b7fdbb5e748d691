//! A sketch of a text (MinHash): documents with nearly the same words in the same order have nearly the same sketch.
//!
//! The words of a text are hashed in runs of five. Of all hashes, each of 16 bins keeps the smallest; the share of equal
//! bins estimates the share of common runs. Two neighbouring bins form a band, and documents that agree in a band are
//! candidates, so that nobody has to compare everything with everything.

/// Bins of a sketch.
const BINS: usize = 16;
/// Bins of a band.
const BAND: usize = 2;
/// Bands of a sketch.
pub const BANDS: usize = BINS / BAND;
/// Words of a run.
const RUN: usize = 5;
/// Texts with fewer runs have no sketch: they are alike by chance.
const LEAST_RUNS: usize = 32;
/// Bytes of a text that are looked at.
const MOST_BYTES: usize = 1 << 20;

/// The sketch of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sketch {
    bins: [u32; BINS],
}

impl Sketch {
    /// The sketch of a text; `None` when it is too short for one.
    pub fn of(text: &str) -> Option<Self> {
        let bytes = &text.as_bytes()[..text.len().min(MOST_BYTES)];
        let mut bins = [u32::MAX; BINS];
        let (mut window, mut runs) = ([0u64; RUN], 0usize);
        let mut word = 0u64;
        for byte in bytes.iter().copied().chain([b' ']) {
            if byte.is_ascii_alphanumeric() || byte >= 0x80 {
                word =
                    (word ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0000_0100_0000_01b3).max(1);
                continue;
            }
            if word == 0 {
                continue;
            }
            window.rotate_left(1);
            window[RUN - 1] = std::mem::take(&mut word);
            runs += 1;
            if runs >= RUN {
                let hash = mix(window.iter().fold(0, |all, one| mix(all ^ one)));
                let (bin, value) = (hash as usize % BINS, (hash >> 32) as u32);
                bins[bin] = bins[bin].min(value);
            }
        }
        (runs >= LEAST_RUNS + RUN).then_some(Self { bins: filled(bins) })
    }

    /// How alike two texts are, from 0 to 1.
    pub fn likeness(&self, other: &Self) -> f32 {
        let equal = self.bins.iter().zip(&other.bins).filter(|(one, other)| one == other).count();
        equal as f32 / BINS as f32
    }

    /// A number for each band; documents that have one of them in common may be alike.
    pub fn bands(&self) -> [u64; BANDS] {
        let mut bands = [0; BANDS];
        for (at, (band, bins)) in bands.iter_mut().zip(self.bins.as_chunks::<BAND>().0).enumerate() {
            *band = mix(u64::from(bins[0]) << 32 | u64::from(bins[1])) ^ at as u64;
        }
        bands
    }

    pub(super) fn to_bytes(self) -> [u8; 4 * BINS] {
        let mut bytes = [0; 4 * BINS];
        for (four, bin) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(self.bins) {
            *four = bin.to_le_bytes();
        }
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; 4 * BINS]) -> Self {
        let mut bins = [0; BINS];
        for (bin, four) in bins.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *bin = u32::from_le_bytes(*four);
        }
        Self { bins }
    }

    /// Bytes of a sketch in a record.
    pub(super) const BYTES: usize = 4 * BINS;
}

/// A bin that nothing fell into takes the value of the next that has one.
fn filled(bins: [u32; BINS]) -> [u32; BINS] {
    std::array::from_fn(|at| {
        let mut from = (at..at + BINS).map(|place| bins[place % BINS]);
        from.find(|value| *value != u32::MAX).unwrap_or(u32::MAX)
    })
}

const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 31)).wrapping_mul(0x7fb5_d329_728e_a185);
    let value = (value ^ (value >> 27)).wrapping_mul(0x81da_def4_bc2d_d44d);
    value ^ (value >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prose(words: impl Iterator<Item = usize>) -> String {
        words.map(|word| format!("word{} ", word * 7_919 % 4_001)).collect()
    }

    #[test]
    fn small_edits_keep_a_text_alike_and_other_texts_are_not() {
        let one = Sketch::of(&prose(0..2_000)).unwrap();
        let edited = Sketch::of(&prose((0..1_000).chain(5_000..5_003).chain(1_000..2_000))).unwrap();
        let other = Sketch::of(&prose(30_000..32_000)).unwrap();
        assert!(one.likeness(&edited) >= 0.8, "{}", one.likeness(&edited));
        assert!(one.likeness(&other) <= 0.2);
        assert!(one.bands().iter().zip(edited.bands()).any(|(one, other)| *one == other));
        assert_eq!(Sketch::from_bytes(&one.to_bytes()), one);
    }

    #[test]
    fn short_texts_have_none() {
        assert_eq!(Sketch::of("License: MIT"), None);
        assert_eq!(Sketch::of(""), None);
    }
}
