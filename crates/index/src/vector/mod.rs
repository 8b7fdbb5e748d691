//! The vector leg: a flat scan over the vectors of all passages.
//!
//! A vector is stored twice: as 384 signed bytes with one scale, from which its cosine is computed, and as 384 sign
//! bits of the rotated vector with one factor, from which its cosine is estimated many times faster. A search estimates
//! the cosine of every vector and computes it only for the best. An estimate depends only on the vector and the query,
//! so results do not depend on how vectors are divided into segments.

mod kernels;
mod rotate;

use std::sync::OnceLock;

pub(crate) use kernels::dot as row_dot;
use rotate::Rotation;
use tantivy::directory::OwnedBytes;

use crate::{Error, Result};

/// The number of dimensions of a vector.
pub const DIMENSIONS: usize = 384;
/// 64-bit words of sign bits per vector.
const WORDS: usize = DIMENSIONS / 64;
/// Vectors whose bits are interleaved word by word, so that one instruction processes all of them.
const GROUP: usize = 8;
const GROUP_BYTES: usize = GROUP * WORDS * 8;
/// Bytes of a group: its codes and the factors of its vectors.
const CODED_BYTES: usize = GROUP_BYTES + GROUP * 4;
/// Groups that are estimated before the estimates are examined.
const RUN: usize = 64;

fn rotation() -> &'static Rotation {
    static ROTATION: OnceLock<Rotation> = OnceLock::new();
    ROTATION.get_or_init(Rotation::new)
}

/// Collects vectors.
#[derive(Default)]
pub(crate) struct VectorsBuilder {
    bytes: Vec<u8>,
    scales: Vec<f32>,
}

impl VectorsBuilder {
    /// Adds a unit vector or a zero vector.
    pub(crate) fn add(&mut self, vector: &[f32; DIMENSIONS]) {
        let (scale, bytes) = quantized(vector);
        self.bytes.extend_from_slice(&bytes);
        self.scales.push(scale);
    }

    /// Adds a vector of another segment unchanged.
    pub(crate) fn add_stored(&mut self, vectors: &Vectors, at: usize) {
        self.bytes.extend_from_slice(vectors.row(at));
        self.scales.push(vectors.scale(at));
    }

    /// The three parts: bytes, scales, codes.
    pub(crate) fn finish(self) -> [(&'static str, Vec<u8>); 3] {
        let codes = self.codes();
        let scales = self.scales.iter().flat_map(|scale| scale.to_le_bytes()).collect();
        [("vector.bytes", self.bytes), ("vector.scales", scales), ("vector.codes", codes)]
    }

    fn vector(&self, at: usize) -> [f32; DIMENSIONS] {
        let row = &self.bytes[at * DIMENSIONS..][..DIMENSIONS];
        std::array::from_fn(|dimension| f32::from(row[dimension] as i8) * self.scales[at])
    }

    /// Groups of eight codes, each followed by the factors (f32) of the eight vectors.
    fn codes(&self) -> Vec<u8> {
        let count = self.scales.len();
        let mut groups = vec![0_u8; count.div_ceil(GROUP) * CODED_BYTES];
        for at in 0..count {
            let turned = rotation().apply(&self.vector(at));
            let group = &mut groups[at / GROUP * CODED_BYTES..][..CODED_BYTES];
            for (word, values) in turned.as_chunks::<64>().0.iter().enumerate() {
                let bits = values.iter().rev().fold(0_u64, |bits, value| bits << 1 | u64::from(*value > 0.0));
                group[(word * GROUP + at % GROUP) * 8..][..8].copy_from_slice(&bits.to_le_bytes());
            }
            group[GROUP_BYTES + at % GROUP * 4..][..4].copy_from_slice(&factor(&turned).to_le_bytes());
        }
        groups
    }
}

/// Quantizes a vector to signed bytes; returns the scale and the bytes.
pub(crate) fn quantized(vector: &[f32]) -> (f32, Vec<u8>) {
    let most = vector.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    let scale = if most > 0.0 { most / 127.0 } else { 0.0 };
    let inverse = if scale > 0.0 { scale.recip() } else { 0.0 };
    (scale, vector.iter().map(|value| (value * inverse).round() as i8 as u8).collect())
}

/// The factor by which the dot product of the sign vector with a query must be multiplied to estimate that of the
/// vector itself.
fn factor(turned: &[f32; DIMENSIONS]) -> f32 {
    let square: f32 = turned.iter().map(|value| value * value).sum();
    let along: f32 = turned.iter().map(|value| value.abs()).sum();
    if along > 0.0 { square / along } else { 0.0 }
}

/// The vectors of a segment.
pub(crate) struct Vectors {
    bytes: OwnedBytes,
    scales: OwnedBytes,
    codes: OwnedBytes,
    count: usize,
}

impl Vectors {
    pub(crate) fn open(bytes: OwnedBytes, scales: OwnedBytes, codes: OwnedBytes) -> Result<Self> {
        let count = scales.len() / 4;
        let fits = scales.len() == 4 * count
            && bytes.len() == DIMENSIONS * count
            && codes.len() == CODED_BYTES * count.div_ceil(GROUP);
        if fits {
            Ok(Self { bytes, scales, codes, count })
        } else {
            Err(Error::damaged("vectors", "the lengths of its parts are inconsistent"))
        }
    }

    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    fn row(&self, at: usize) -> &[u8] {
        &self.bytes[at * DIMENSIONS..(at + 1) * DIMENSIONS]
    }

    fn scale(&self, at: usize) -> f32 {
        float_at(&self.scales, at)
    }

    /// One vector as it can be read back.
    pub(crate) fn plain(&self, at: usize) -> [f32; DIMENSIONS] {
        let (row, scale) = (self.row(at), self.scale(at));
        std::array::from_fn(|dimension| f32::from(row[dimension] as i8) * scale)
    }

    /// The cosine of one vector with the query.
    pub(crate) fn cosine(&self, query: &Query, at: usize) -> f32 {
        kernels::dot(&query.vector, self.row(at)) * self.scale(at)
    }

    /// Calls `each` with an estimate of the cosine of every allowed vector that reaches `floor`.
    pub(crate) fn estimate(
        &self,
        query: &Query,
        floor: f32,
        allowed: &dyn Fn(usize) -> bool,
        each: &mut dyn FnMut(usize, f32),
    ) {
        let mut estimates = [0.0; RUN * GROUP];
        for (run, codes) in self.codes.as_chunks::<CODED_BYTES>().0.chunks(RUN).enumerate() {
            kernels::estimate(codes, query, &mut estimates);
            let first = run * RUN * GROUP;
            let length = (self.count - first).min(RUN * GROUP);
            for (lane, estimate) in estimates[..length].iter().enumerate() {
                if *estimate >= floor && allowed(first + lane) {
                    each(first + lane, *estimate);
                }
            }
        }
    }
}

/// A query, prepared for both estimating and computing cosines.
pub(crate) struct Query {
    vector: [f32; DIMENSIONS],
    planes: [[u64; WORDS]; PLANES],
    low: f32,
    step: f32,
    total: f32,
}

/// The number of bits to which each dimension of a query is quantized for estimates.
const PLANES: usize = 4;

impl Query {
    pub(crate) fn new(vector: &[f32; DIMENSIONS]) -> Self {
        let turned = rotation().apply(vector);
        let low = turned.iter().copied().fold(f32::INFINITY, f32::min);
        let high = turned.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let levels = ((1 << PLANES) - 1) as f32;
        let step = if high > low { (high - low) / levels } else { 1.0 };
        let mut planes = [[0; WORDS]; PLANES];
        let mut total = 0.0;
        for (at, value) in turned.iter().enumerate() {
            let level = ((value - low) / step).round().clamp(0.0, levels) as u64;
            total += low + step * level as f32;
            for (plane, words) in planes.iter_mut().enumerate() {
                words[at / 64] |= (level >> plane & 1) << (at % 64);
            }
        }
        Self { vector: *vector, planes, low, step, total }
    }
}

fn float_at(bytes: &[u8], at: usize) -> f32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[4 * at..4 * at + 4]);
    f32::from_le_bytes(four)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(seed: u64) -> [f32; DIMENSIONS] {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let raw: [f32; DIMENSIONS] = std::array::from_fn(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1 << 24) as f32 - 0.45
        });
        let length = raw.iter().map(|value| value * value).sum::<f32>().sqrt();
        raw.map(|value| value / length)
    }

    fn opened(count: usize) -> Vectors {
        let mut builder = VectorsBuilder::default();
        (0..count).for_each(|at| builder.add(&random(at as u64 + 1)));
        let [bytes, scales, codes] = builder.finish().map(|(_, part)| OwnedBytes::new(part));
        Vectors::open(bytes, scales, codes).unwrap()
    }

    /// The ten nearest vectors among those with the `most` best estimates.
    fn nearest(vectors: &Vectors, query: &Query, most: usize) -> Vec<usize> {
        let mut found = Vec::new();
        vectors.estimate(query, -2.0, &|_| true, &mut |at, estimate| found.push((at, estimate)));
        assert_eq!(found.len(), vectors.count());
        found.sort_by(|a, b| b.1.total_cmp(&a.1));
        found.truncate(most);
        found.iter_mut().for_each(|(at, cosine)| *cosine = vectors.cosine(query, *at));
        found.sort_by(|a, b| b.1.total_cmp(&a.1));
        found.into_iter().map(|(at, _)| at).take(10).collect()
    }

    #[test]
    fn bytes_keep_the_cosine() {
        let vectors = opened(50);
        let query = random(7);
        let exact: f32 = query.iter().zip(random(31)).map(|(a, b)| a * b).sum();
        assert!((vectors.cosine(&Query::new(&query), 30) - exact).abs() < 0.01);
        assert!((vectors.cosine(&Query::new(&random(31)), 30) - 1.0).abs() < 0.01);
    }

    #[test]
    fn estimates_find_what_computing_finds() {
        let vectors = opened(5_000);
        let mut hits = 0;
        for seed in 0..20 {
            let query = Query::new(&random(seed * 97 + 3));
            let mut exact: Vec<usize> = (0..5_000).collect();
            exact.sort_by(|a, b| vectors.cosine(&query, *b).total_cmp(&vectors.cosine(&query, *a)));
            let found = nearest(&vectors, &query, 500);
            hits += exact[..10].iter().filter(|at| found.contains(at)).count();
        }
        assert!(hits >= 194, "{hits} of 200");
    }

    #[test]
    fn an_estimate_does_not_depend_on_the_segment() {
        let (few, many) = (opened(13), opened(3_000));
        let query = Query::new(&random(5));
        let estimates = |vectors: &Vectors| {
            let mut found = Vec::new();
            vectors.estimate(&query, -2.0, &|at| at < 13, &mut |_, estimate| found.push(estimate));
            found
        };
        assert_eq!(estimates(&few), estimates(&many));
        let error =
            (0..13).map(|at| (estimates(&few)[at] - few.cosine(&query, at)).abs()).fold(0.0, f32::max);
        assert!(error < 0.2, "{error}");
    }

    #[test]
    fn zero_vectors_do_no_harm_and_torn_parts_are_noticed() {
        let mut builder = VectorsBuilder::default();
        builder.add(&[0.0; DIMENSIONS]);
        let [bytes, scales, codes] = builder.finish().map(|(_, part)| OwnedBytes::new(part));
        let vectors = Vectors::open(bytes.clone(), scales.clone(), codes).unwrap();
        vectors.estimate(&Query::new(&random(1)), 0.1, &|_| true, &mut |_, _| {
            panic!("a zero vector is near nothing")
        });
        assert!(Vectors::open(bytes, scales, OwnedBytes::empty()).is_err());
    }
}
