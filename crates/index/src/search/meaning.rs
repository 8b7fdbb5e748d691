//! The vector leg: where cosines come from, and how those of the two kinds of vectors compare.

use super::Wanted;
use crate::{
    Cosines,
    segment::Segment,
    vector::{self, Moments},
};

/// The weight of the vector leg in the sum, when all vectors are the table's and when all are deep.
const DENSE: [f32; 2] = [0.5, 0.6];

/// The number of vectors of a kind below which it is not compared with the other kind by its moments.
const FEW: u64 = 16;

/// How cosines of the two kinds of vectors compare. A question is nearer to deep vectors than to the table's, so the
/// table's are moved to where they would lie among the deep ones: the same number of deviations from the mean.
#[derive(Clone, Copy, Debug)]
pub(super) struct Levels {
    factor: f32,
    offset: f32,
    /// The share of vectors that are deep.
    deep: f32,
}

impl Default for Levels {
    fn default() -> Self {
        Self { factor: 1.0, offset: 0.0, deep: 0.0 }
    }
}

impl Levels {
    pub(super) fn of([table, deep]: &[Moments; 2]) -> Self {
        let all = table.count() + deep.count();
        let share = deep.count() as f32 / all.max(1) as f32;
        // The moments of a handful of vectors say nothing.
        if table.count().min(deep.count()) < FEW || table.deviation() <= 0.0 {
            return Self { deep: share, ..Self::default() };
        }
        let factor = deep.deviation() / table.deviation();
        Self { factor, offset: deep.mean() - factor * table.mean(), deep: share }
    }

    pub(super) fn of_cosine(&self, segment: &Segment, passage: u32, cosine: f32) -> f32 {
        if segment.vectors.is_deep(passage as usize) { cosine } else { self.factor * cosine + self.offset }
    }

    /// The weight of the vector leg.
    pub(super) fn dense(&self) -> f32 {
        DENSE[0] + self.deep * (DENSE[1] - DENSE[0])
    }
}

/// The source of cosines: the built-in vectors, or those of a remote model.
pub(super) enum Meaning<'a> {
    BuiltIn(Box<vector::Query>),
    Other(&'a Cosines),
}

impl<'a> Meaning<'a> {
    pub(super) fn of(wanted: &Wanted<'a>) -> Option<Self> {
        if let Some(cosines) = wanted.cosines {
            return Some(Self::Other(cosines));
        }
        // The built-in vector of meaningless letters is near to odd texts by chance.
        if !wanted.has_words {
            return None;
        }
        let vector = wanted.vector.filter(|vector| vector.iter().any(|value| *value != 0.0))?;
        Some(Self::BuiltIn(Box::new(vector::Query::new(vector))))
    }

    /// Calls `each` with every allowed passage of a segment whose cosine, estimated or exact, reaches `floor`.
    pub(super) fn each(
        &self,
        segment: &Segment,
        at: usize,
        (floor, moments): (f32, &mut [Moments; 2]),
        may: Option<&dyn Fn(usize) -> bool>,
        each: &mut dyn FnMut(usize, f32),
    ) {
        match self {
            Self::BuiltIn(query) => segment.vectors.estimate(query, floor, may, moments, each),
            Self::Other(cosines) => {
                let may = |passage: usize| may.is_none_or(|may| may(passage));
                let near = cosines.0[at]
                    .iter()
                    .enumerate()
                    .filter(|(passage, cosine)| **cosine >= floor && may(*passage));
                near.for_each(|(passage, cosine)| each(passage, *cosine));
            }
        }
    }

    pub(super) fn cosine(&self, segment: &Segment, at: u32, passage: u32) -> f32 {
        match self {
            Self::BuiltIn(query) => segment.vectors.cosine(query, passage as usize),
            Self::Other(cosines) => cosines.0[at as usize][passage as usize],
        }
    }
}
