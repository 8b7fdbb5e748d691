//! The weights of the encoder: where they are in the file, and how they are packed for the kernels.
//!
//! The file is part of the program and stays quantised. Rows of tokens and positions are read from it where they are
//! needed. The bytes of the linear layers are copied once, in the order in which the kernels read them; this takes a
//! few milliseconds and 5 MB, and only happens when something is encoded. `FORMAT.md` specifies the file.

use crate::vocabulary::{SIZE, UNKNOWN};

/// The width of the activations, and of the result.
pub(crate) const HIDDEN: usize = crate::DIMENSIONS;
/// The width of the feed-forward layer.
pub(crate) const FEED: usize = 768;
/// The number of attention heads.
pub(crate) const HEADS: usize = 12;
/// The width of an attention head.
pub(crate) const HEAD: usize = HIDDEN / HEADS;
/// The most tokens of a text, with the two that mark its beginning and end.
pub(crate) const POSITIONS: usize = 256;
/// Outputs whose weights are packed together; a multiple of the columns of every kernel's panel.
pub(crate) const GROUP: usize = 32;

const LAYERS: usize = 4;
/// Every tensor in the file begins at a multiple of this.
const ALIGNMENT: usize = 64;
/// Columns of a token's row that share a scale.
const SHARED: usize = 32;
const WORD_BYTES: usize = SIZE * HIDDEN / 2;
const WORD_SCALES: usize = HIDDEN / SHARED * 2;

#[repr(C, align(64))]
struct Aligned<T: ?Sized>(T);

static FILE: &Aligned<[u8]> = &Aligned(*include_bytes!("../../model/deep384.bin"));

/// The bytes of the file.
#[cfg(test)]
pub(super) fn file() -> &'static [u8] {
    &FILE.0
}

/// A linear layer: `outputs` times `inputs` weights, a scale and a bias for each output.
pub(crate) struct Linear {
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    /// For each group of [`GROUP`] outputs and each input, the weights of the outputs.
    pub(crate) weights: Vec<i8>,
    pub(crate) scales: Vec<f32>,
    pub(crate) bias: Vec<f32>,
}

/// The learned part of a normalisation.
pub(crate) struct Norm {
    pub(crate) gain: Vec<f32>,
    pub(crate) bias: Vec<f32>,
}

/// One layer of the encoder.
pub(crate) struct Layer {
    /// Queries, keys and values.
    pub(crate) project: Linear,
    pub(crate) merge: Linear,
    pub(crate) expand: Linear,
    pub(crate) contract: Linear,
    pub(crate) after_attention: Norm,
    pub(crate) after_feed: Norm,
}

/// The weights, ready for the kernels.
pub(crate) struct Weights {
    positions: Rows,
    pub(crate) embedded: Norm,
    pub(crate) layers: Vec<Layer>,
}

/// A table of signed bytes with a scale for each row.
struct Rows {
    bytes: &'static [u8],
    scales: Vec<f32>,
}

impl Weights {
    /// Packs the weights.
    pub(crate) fn unpack() -> Self {
        let mut reader = Reader { at: 0 };
        reader.bytes(WORD_BYTES + SIZE * WORD_SCALES);
        let positions =
            Rows { bytes: reader.bytes(POSITIONS * HIDDEN), scales: floats(reader.following(POSITIONS * 4)) };
        let embedded = reader.norm();
        let layers = (0..LAYERS).map(|_| reader.layer()).collect();
        Self { positions, embedded, layers }
    }

    /// Writes the row of a position.
    pub(crate) fn position(&self, position: usize, row: &mut [f32]) {
        let bytes = &self.positions.bytes[position * HIDDEN..][..HIDDEN];
        let scale = self.positions.scales[position];
        row.iter_mut().zip(bytes).for_each(|(value, byte)| *value = f32::from(*byte as i8) * scale);
    }
}

/// Writes the row of a token; an invalid id counts as an unknown word.
pub(crate) fn word(id: u16, row: &mut [f32]) {
    let id = usize::from(if usize::from(id) < SIZE { id } else { UNKNOWN });
    let pairs = &FILE.0[id * HIDDEN / 2..][..HIDDEN / 2];
    let scales = &FILE.0[WORD_BYTES + id * WORD_SCALES..][..WORD_SCALES];
    let groups = row.as_chunks_mut::<SHARED>().0.iter_mut().zip(pairs.as_chunks::<{ SHARED / 2 }>().0);
    for ((row, pairs), scale) in groups.zip(scales.as_chunks::<2>().0) {
        let scale = from_half(u16::from_le_bytes(*scale));
        for ([low, high], pair) in row.as_chunks_mut::<2>().0.iter_mut().zip(pairs) {
            *low = (f32::from(pair & 15) - 8.0) * scale;
            *high = (f32::from(pair >> 4) - 8.0) * scale;
        }
    }
}

/// A number of 16 bits: a sign, five bits of exponent and ten of fraction.
fn from_half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (u32::from(bits >> 10 & 31), u32::from(bits & 1023));
    let size = match exponent {
        0 => fraction as f32 / 16_777_216.0,
        31 => f32::from_bits(0xff << 23 | fraction << 13),
        _ => f32::from_bits((exponent + 112) << 23 | fraction << 13),
    };
    sign * size
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

/// Reads the file from front to back.
struct Reader {
    at: usize,
}

impl Reader {
    /// The bytes of the next tensor.
    fn bytes(&mut self, length: usize) -> &'static [u8] {
        self.at = self.at.next_multiple_of(ALIGNMENT);
        self.following(length)
    }

    /// The bytes that follow without a gap.
    fn following(&mut self, length: usize) -> &'static [u8] {
        let bytes = &FILE.0[self.at..self.at + length];
        self.at += length;
        bytes
    }

    fn floats(&mut self, count: usize) -> Vec<f32> {
        floats(self.bytes(count * 4))
    }

    fn norm(&mut self) -> Norm {
        Norm { gain: self.floats(HIDDEN), bias: self.floats(HIDDEN) }
    }

    fn linear(&mut self, outputs: usize, inputs: usize) -> Linear {
        let weights = pack(self.bytes(outputs * inputs), inputs);
        let scales = floats(self.following(outputs * 4));
        Linear { inputs, outputs, weights, scales, bias: self.floats(outputs) }
    }

    fn layer(&mut self) -> Layer {
        Layer {
            project: self.linear(3 * HIDDEN, HIDDEN),
            merge: self.linear(HIDDEN, HIDDEN),
            expand: self.linear(FEED, HIDDEN),
            contract: self.linear(HIDDEN, FEED),
            after_attention: self.norm(),
            after_feed: self.norm(),
        }
    }
}

/// Reorders the rows of a layer's outputs so that the kernels read a panel from front to back.
fn pack(rows: &[u8], inputs: usize) -> Vec<i8> {
    let mut packed = vec![0; rows.len()];
    for (group, rows) in packed.chunks_exact_mut(GROUP * inputs).zip(rows.chunks_exact(GROUP * inputs)) {
        for (output, row) in rows.chunks_exact(inputs).enumerate() {
            for (line, byte) in group.chunks_exact_mut(GROUP).zip(row) {
                line[output] = *byte as i8;
            }
        }
    }
    packed
}
