//! The vector leg: every passage's vector, flat, scanned whole.
//!
//! A vector is kept twice: as 384 signed bytes with one scale, from which its cosine is computed, and as 384 sign bits
//! of its rotated and centred self with one factor, from which its cosine is estimated many times faster. A search
//! estimates all, and computes only the best. Segments with few vectors have no bits: computing all is as fast.

mod kernels;
mod rotate;

use std::sync::OnceLock;

use rotate::Rotation;
use tantivy::directory::OwnedBytes;

use crate::{Error, Result};

/// Numbers in a vector.
pub const DIMENSIONS: usize = 384;
/// 64-bit words of sign bits.
const WORDS: usize = DIMENSIONS / 64;
/// Vectors whose bits lie together, word by word, so that one instruction works on all of them.
const GROUP: usize = 8;
const GROUP_BYTES: usize = GROUP * WORDS * 8;
/// From this many vectors on a segment has bits.
const CODED: usize = 2_048;

fn rotation() -> &'static Rotation {
    static ROTATION: OnceLock<Rotation> = OnceLock::new();
    ROTATION.get_or_init(Rotation::new)
}

/// Gathers vectors.
#[derive(Default)]
pub(crate) struct VectorsBuilder {
    bytes: Vec<u8>,
    scales: Vec<f32>,
}

impl VectorsBuilder {
    /// Adds a vector of length one, or a zero vector.
    pub(crate) fn add(&mut self, vector: &[f32; DIMENSIONS]) {
        let most = vector.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
        let scale = if most > 0.0 { most / 127.0 } else { 0.0 };
        let inverse = if scale > 0.0 { scale.recip() } else { 0.0 };
        self.bytes.extend(vector.iter().map(|value| (value * inverse).round() as i8 as u8));
        self.scales.push(scale);
    }

    /// Adds a vector of another segment as it is.
    pub(crate) fn add_stored(&mut self, vectors: &Vectors, at: usize) {
        self.bytes.extend_from_slice(vectors.row(at));
        self.scales.push(vectors.scale(at));
    }

    /// The three parts: bytes, scales, codes (empty when there are few).
    pub(crate) fn finish(self) -> [(&'static str, Vec<u8>); 3] {
        let codes = if self.scales.len() < CODED { Vec::new() } else { self.codes() };
        let scales = self.scales.iter().flat_map(|scale| scale.to_le_bytes()).collect();
        [("vector.bytes", self.bytes), ("vector.scales", scales), ("vector.codes", codes)]
    }

    fn vector(&self, at: usize) -> [f32; DIMENSIONS] {
        let row = &self.bytes[at * DIMENSIONS..][..DIMENSIONS];
        std::array::from_fn(|dimension| f32::from(row[dimension] as i8) * self.scales[at])
    }

    /// Centre (f32 × 384), factors (f32 × count), then groups of eight codes.
    fn codes(&self) -> Vec<u8> {
        let count = self.scales.len();
        let mut centre = [0.0; DIMENSIONS];
        for at in 0..count {
            for (sum, value) in centre.iter_mut().zip(self.vector(at)) {
                *sum += value / count as f32;
            }
        }
        let mut factors = Vec::with_capacity(4 * count);
        let mut groups = vec![0_u8; count.div_ceil(GROUP) * GROUP_BYTES];
        for at in 0..count {
            let mut rest = self.vector(at);
            for (value, middle) in rest.iter_mut().zip(&centre) {
                *value -= middle;
            }
            let turned = rotation().apply(&rest);
            factors.extend_from_slice(&factor(&turned).to_le_bytes());
            let group = &mut groups[at / GROUP * GROUP_BYTES..][..GROUP_BYTES];
            for (word, values) in turned.as_chunks::<64>().0.iter().enumerate() {
                let bits = values.iter().rev().fold(0_u64, |bits, value| bits << 1 | u64::from(*value > 0.0));
                group[(word * GROUP + at % GROUP) * 8..][..8].copy_from_slice(&bits.to_le_bytes());
            }
        }
        let mut bytes: Vec<u8> = centre.iter().flat_map(|value| value.to_le_bytes()).collect();
        bytes.extend_from_slice(&factors);
        bytes.extend_from_slice(&groups);
        bytes
    }
}

/// What the product of the sign vector with a query must be multiplied by to estimate that of the vector itself.
fn factor(turned: &[f32; DIMENSIONS]) -> f32 {
    let square: f32 = turned.iter().map(|value| value * value).sum();
    let along: f32 = turned.iter().map(|value| value.abs()).sum();
    if along > 0.0 { square / along } else { 0.0 }
}

/// The vectors of a segment.
pub(crate) struct Vectors {
    bytes: OwnedBytes,
    scales: OwnedBytes,
    codes: Option<Codes>,
    count: usize,
}

struct Codes {
    centre: [f32; DIMENSIONS],
    factors: OwnedBytes,
    groups: OwnedBytes,
}

impl Vectors {
    pub(crate) fn open(bytes: OwnedBytes, scales: OwnedBytes, codes: OwnedBytes) -> Result<Self> {
        let count = scales.len() / 4;
        if scales.len() != 4 * count || bytes.len() != DIMENSIONS * count {
            return Err(Error::damaged("vectors", "its lengths do not agree"));
        }
        let codes = if codes.is_empty() { None } else { Some(Codes::open(&codes, count)?) };
        Ok(Self { bytes, scales, codes, count })
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

    /// The cosine of one vector with the query.
    pub(crate) fn cosine(&self, query: &Query, at: usize) -> f32 {
        kernels::dot(&query.vector, self.row(at)) * self.scale(at)
    }

    /// Calls `each` with the cosine of every vector that may be among the nearest `most` allowed ones or reach
    /// `floor`; all of those are among them.
    pub(crate) fn near(
        &self,
        query: &Query,
        most: usize,
        floor: f32,
        allowed: &dyn Fn(usize) -> bool,
        each: &mut dyn FnMut(usize, f32),
    ) {
        let Some(codes) = &self.codes else {
            (0..self.count).filter(|at| allowed(*at)).for_each(|at| each(at, self.cosine(query, at)));
            return;
        };
        let mut best = Best::new(most, floor - MARGIN);
        codes.estimate(query, self.count, &mut |at, estimate| {
            if best.takes(estimate) && allowed(at) {
                best.add(at, estimate);
            }
        });
        for (at, _) in best.finish() {
            each(at, self.cosine(query, at));
        }
    }
}

/// How far an estimate may be off; six times the deviation measured over real passages.
const MARGIN: f32 = 0.12;

impl Codes {
    fn open(bytes: &OwnedBytes, count: usize) -> Result<Self> {
        let (centre_bytes, factor_bytes) = (4 * DIMENSIONS, 4 * count);
        if bytes.len() != centre_bytes + factor_bytes + count.div_ceil(GROUP) * GROUP_BYTES {
            return Err(Error::damaged("vector.codes", "its length does not agree"));
        }
        Ok(Self {
            centre: std::array::from_fn(|at| float_at(bytes, at)),
            factors: bytes.slice(centre_bytes..centre_bytes + factor_bytes),
            groups: bytes.slice(centre_bytes + factor_bytes..bytes.len()),
        })
    }

    /// Calls `each` with an estimate for every vector.
    fn estimate(&self, query: &Query, count: usize, each: &mut dyn FnMut(usize, f32)) {
        let middle: f32 = self.centre.iter().zip(&query.vector).map(|(a, b)| a * b).sum();
        let mut sums = [0_u32; GROUP];
        let mut ones = [0_u32; GROUP];
        for (group, codes) in self.groups.as_chunks::<GROUP_BYTES>().0.iter().enumerate() {
            kernels::weigh(codes, &query.planes, &mut sums, &mut ones);
            let first = group * GROUP;
            for lane in 0..GROUP.min(count - first) {
                let inside = query.low * ones[lane] as f32 + query.step * sums[lane] as f32;
                let product = 2.0 * inside - query.total;
                each(first + lane, middle + float_at(&self.factors, first + lane) * product);
            }
        }
    }
}

/// A query, prepared for both ways of comparing.
pub(crate) struct Query {
    vector: [f32; DIMENSIONS],
    planes: [[u64; WORDS]; PLANES],
    low: f32,
    step: f32,
    total: f32,
}

/// Bits of a query's dimension while it is compared with sign bits.
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

/// The best estimates so far. The bar rises each time the buffer is full, so that most vectors cost one comparison.
struct Best {
    most: usize,
    bar: f32,
    floor: f32,
    found: Vec<(usize, f32)>,
}

impl Best {
    fn new(most: usize, floor: f32) -> Self {
        Self { most, bar: f32::NEG_INFINITY, floor, found: Vec::with_capacity(4 * most) }
    }

    fn takes(&self, estimate: f32) -> bool {
        estimate > self.bar || estimate >= self.floor
    }

    fn add(&mut self, at: usize, estimate: f32) {
        self.found.push((at, estimate));
        if self.found.len() >= 4 * self.most && estimate < self.floor {
            self.shrink();
        }
    }

    fn shrink(&mut self) {
        if self.found.len() <= self.most {
            return;
        }
        self.found.select_nth_unstable_by(self.most - 1, |a, b| b.1.total_cmp(&a.1));
        self.bar = self.found[self.most - 1].1;
        let (bar, floor) = (self.bar, self.floor);
        self.found.retain(|(_, estimate)| *estimate >= bar || *estimate >= floor);
    }

    fn finish(mut self) -> Vec<(usize, f32)> {
        self.shrink();
        self.found
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

    fn nearest(vectors: &Vectors, query: &Query, most: usize) -> Vec<usize> {
        let mut found = Vec::new();
        vectors.near(query, most, 2.0, &|_| true, &mut |at, cosine| found.push((at, cosine)));
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
        let coded = opened(5_000);
        assert!(coded.codes.is_some());
        let mut hits = 0;
        for seed in 0..20 {
            let query = Query::new(&random(seed * 97 + 3));
            let mut exact: Vec<usize> = (0..5_000).collect();
            exact.sort_by(|a, b| coded.cosine(&query, *b).total_cmp(&coded.cosine(&query, *a)));
            let found = nearest(&coded, &query, 500);
            hits += exact[..10].iter().filter(|at| found.contains(at)).count();
        }
        assert!(hits >= 194, "{hits} of 200");
    }

    #[test]
    fn a_floor_is_complete_and_zero_vectors_do_no_harm() {
        let mut builder = VectorsBuilder::default();
        (0..3_000).for_each(|at| builder.add(&random(at % 50 + 1)));
        builder.add(&[0.0; DIMENSIONS]);
        let [bytes, scales, codes] = builder.finish().map(|(_, part)| OwnedBytes::new(part));
        let vectors = Vectors::open(bytes, scales, codes).unwrap();
        let mut same = 0;
        vectors.near(&Query::new(&random(1)), 5, 0.9, &|_| true, &mut |_, cosine| {
            same += usize::from(cosine >= 0.9);
        });
        assert_eq!(same, 60);
        assert!(Vectors::open(OwnedBytes::new(vec![0; 3]), OwnedBytes::new(vec![0; 4]), OwnedBytes::empty()).is_err());
    }
}
