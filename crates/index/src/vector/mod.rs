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
/// The variance of an estimate around its cosine: that of 384 signs of a rotated vector.
const ESTIMATE_VARIANCE: f64 = 0.0015;
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
    /// Which of them the deep model made.
    deep: Vec<bool>,
}

impl VectorsBuilder {
    /// Adds a unit vector or a zero vector.
    pub(crate) fn add(&mut self, vector: &[f32; DIMENSIONS]) {
        self.add_made(vector, false);
    }

    /// Adds a vector of the deep model.
    pub(crate) fn add_deep(&mut self, vector: &[f32; DIMENSIONS]) {
        self.add_made(vector, true);
    }

    fn add_made(&mut self, vector: &[f32; DIMENSIONS], is_deep: bool) {
        let (scale, bytes) = quantized(vector);
        self.bytes.extend_from_slice(&bytes);
        self.scales.push(scale);
        self.deep.push(is_deep);
    }

    /// Adds a vector of another segment unchanged.
    pub(crate) fn add_stored(&mut self, vectors: &Vectors, at: usize) {
        self.bytes.extend_from_slice(vectors.row(at));
        self.scales.push(vectors.scale(at));
        self.deep.push(vectors.is_deep(at));
    }

    /// The four parts: bytes, scales, codes, and a bit for each vector that tells whether it is deep.
    pub(crate) fn finish(self) -> [(&'static str, Vec<u8>); 4] {
        let codes = self.codes();
        let scales = self.scales.iter().flat_map(|scale| scale.to_le_bytes()).collect();
        let bits = |eight: &[bool]| eight.iter().rev().fold(0_u8, |bits, deep| bits << 1 | u8::from(*deep));
        let deep = self.deep.chunks(8).map(bits).collect();
        [
            ("vector.bytes", self.bytes),
            ("vector.scales", scales),
            ("vector.codes", codes),
            ("vector.deep", deep),
        ]
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
    deep: OwnedBytes,
    count: usize,
    deep_count: usize,
}

impl Vectors {
    pub(crate) fn open([bytes, scales, codes, deep]: [OwnedBytes; 4]) -> Result<Self> {
        let count = scales.len() / 4;
        let fits = scales.len() == 4 * count
            && bytes.len() == DIMENSIONS * count
            && codes.len() == CODED_BYTES * count.div_ceil(GROUP)
            && deep.len() == count.div_ceil(8);
        if fits {
            let deep_count = deep.iter().map(|bits| bits.count_ones() as usize).sum();
            Ok(Self { bytes, scales, codes, deep, count, deep_count })
        } else {
            Err(Error::damaged("vectors", "the lengths of its parts are inconsistent"))
        }
    }

    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// Whether the deep model made this vector.
    pub(crate) fn is_deep(&self, at: usize) -> bool {
        self.deep[at / 8] >> (at % 8) & 1 == 1
    }

    /// How many the deep model made.
    pub(crate) const fn deep_count(&self) -> usize {
        self.deep_count
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

    /// Calls `each` with an estimate of the cosine of every allowed vector that reaches `floor`, and adds the estimates
    /// of all allowed vectors to the moments of their kind.
    pub(crate) fn estimate(
        &self,
        query: &Query,
        floor: f32,
        allowed: Option<&dyn Fn(usize) -> bool>,
        moments: &mut [Moments; 2],
        each: &mut dyn FnMut(usize, f32),
    ) {
        let is_one_kind = self.deep_count == 0 || self.deep_count == self.count;
        let only = usize::from(self.deep_count > 0);
        let mut estimates = [0.0; RUN * GROUP];
        for (run, codes) in self.codes.as_chunks::<CODED_BYTES>().0.chunks(RUN).enumerate() {
            kernels::estimate(codes, query, &mut estimates);
            let first = run * RUN * GROUP;
            let length = (self.count - first).min(RUN * GROUP);
            let estimates = &estimates[..length];
            match allowed {
                None if is_one_kind => moments[only].add_all(estimates),
                _ => {
                    let may = |at: usize| allowed.is_none_or(|allowed| allowed(at));
                    for (lane, estimate) in estimates.iter().enumerate().filter(|(lane, _)| may(first + lane))
                    {
                        moments[usize::from(self.is_deep(first + lane))].add_all(&[*estimate]);
                    }
                }
            }
            for (lane, estimate) in estimates.iter().enumerate() {
                let at = first + lane;
                if *estimate >= floor && allowed.is_none_or(|allowed| allowed(at)) {
                    each(at, *estimate);
                }
            }
        }
    }
}

/// The mean and the deviation of cosines.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Moments {
    count: u64,
    sum: f64,
    squares: f64,
}

impl Moments {
    fn add_all(&mut self, values: &[f32]) {
        // Sixteen partial sums each, so that the compiler vectorizes.
        let (mut sums, mut squares) = ([0.0_f32; 16], [0.0_f32; 16]);
        let (chunks, rest) = values.as_chunks::<16>();
        for chunk in chunks {
            for lane in 0..16 {
                sums[lane] += chunk[lane];
                squares[lane] += chunk[lane] * chunk[lane];
            }
        }
        self.count += values.len() as u64;
        self.sum += f64::from(sums.iter().sum::<f32>() + rest.iter().sum::<f32>());
        let last: f32 = rest.iter().map(|value| value * value).sum();
        self.squares += f64::from(squares.iter().sum::<f32>() + last);
    }

    /// How many values there are.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// Their mean.
    pub(crate) fn mean(&self) -> f32 {
        (self.sum / self.count.max(1) as f64) as f32
    }

    /// The deviation of the cosines that were estimated: without what the estimates add by their error.
    pub(crate) fn deviation(&self) -> f32 {
        let mean = self.sum / self.count.max(1) as f64;
        let variance = (self.squares / self.count.max(1) as f64 - mean * mean).max(0.0);
        (variance - ESTIMATE_VARIANCE).max(variance / 4.0).sqrt() as f32
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
        Vectors::open(builder.finish().map(|(_, part)| OwnedBytes::new(part))).unwrap()
    }

    /// The ten nearest vectors among those with the `most` best estimates.
    fn nearest(vectors: &Vectors, query: &Query, most: usize) -> Vec<usize> {
        let mut found = Vec::new();
        vectors.estimate(query, -2.0, None, &mut Default::default(), &mut |at, estimate| {
            found.push((at, estimate));
        });
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
            vectors.estimate(
                &query,
                -2.0,
                Some(&|at| at < 13),
                &mut Default::default(),
                &mut |_, estimate| {
                    found.push(estimate);
                },
            );
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
        let [bytes, scales, codes, deep] = builder.finish().map(|(_, part)| OwnedBytes::new(part));
        let vectors = Vectors::open([bytes.clone(), scales.clone(), codes, deep.clone()]).unwrap();
        vectors.estimate(&Query::new(&random(1)), 0.1, None, &mut Default::default(), &mut |_, _| {
            panic!("a zero vector is near nothing")
        });
        assert!(Vectors::open([bytes, scales, OwnedBytes::empty(), deep]).is_err());
    }

    #[test]
    fn moments_are_kept_by_kind() {
        let mut builder = VectorsBuilder::default();
        for at in 0..700 {
            let vector = random(at + 1);
            if at % 3 == 0 { builder.add_deep(&vector) } else { builder.add(&vector) }
        }
        let vectors = Vectors::open(builder.finish().map(|(_, part)| OwnedBytes::new(part))).unwrap();
        assert_eq!((vectors.count(), vectors.deep_count()), (700, 234));
        let query = Query::new(&random(9));
        let (mut moments, mut by_hand) = ([Moments::default(); 2], [Vec::new(), Vec::new()]);
        vectors.estimate(&query, -2.0, Some(&|at| at != 3), &mut moments, &mut |at, estimate| {
            by_hand[usize::from(at % 3 == 0)].push(estimate);
        });
        for (moments, values) in moments.iter().zip(by_hand) {
            let mean = values.iter().sum::<f32>() / values.len() as f32;
            let variance =
                values.iter().map(|value| (value - mean).powi(2)).sum::<f32>() / values.len() as f32;
            let expected = (variance - ESTIMATE_VARIANCE as f32).max(variance / 4.0).sqrt();
            assert_eq!(moments.count(), values.len() as u64);
            assert!((moments.mean() - mean).abs() < 1e-4 && (moments.deviation() - expected).abs() < 1e-4);
        }
    }
}
