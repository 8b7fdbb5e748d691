//! The fusion of the keyword leg and the vector leg.
//!
//! The best candidates of each leg form a **pool**. Every candidate in the pool is scored by both legs, including a leg
//! that did not find it. The keyword score is divided by the largest one in the pool, the cosine is scaled to the range
//! between the smallest and largest, and the two are added with weights. A few passages that have all that the question
//! says get a bonus: they are quoted, not asked about. Matches outside the pool follow it, ordered by
//! keyword score and then by cosine, so that paging reaches the last hit. Ties are broken by document number and passage.

use std::collections::HashSet;

use super::{
    Search, Wanted,
    meaning::{Levels, Meaning},
    rank::{self, Candidate, Telling, Unit},
};
use crate::bits::Bits;

/// The number of candidates that each leg contributes to the pool.
const POOL: usize = 1_000;
/// The share of what a question tells that a passage must have to count as quoted.
const QUOTED: f32 = 0.97;
/// The number of passages that may be quoted at once; more only use common words.
const MOST_QUOTED: usize = 3;
/// What being quoted adds.
const BONUS: f32 = 0.15;

/// What is needed to put candidates in order.
pub(super) struct Fusion<'a> {
    pub wanted: &'a Wanted<'a>,
    pub levels: &'a Levels,
    pub telling: &'a Telling,
    /// Documents that the query names.
    pub named: &'a HashSet<(u32, u32)>,
    /// The weight of the vector leg.
    pub dense: f32,
}

/// How the scores of the two legs become one.
pub(super) struct Scale {
    /// The largest keyword score of the pool.
    largest: f32,
    low: f32,
    high: f32,
    dense: f32,
}

impl Scale {
    /// The score of a keyword score and a level together.
    pub(super) fn of(&self, words: f32, level: f32) -> f32 {
        let meaning = if self.high > self.low { (level - self.low) / (self.high - self.low) } else { 1.0 };
        (1.0 - self.dense) * self.share(words) + self.dense * meaning
    }

    fn share(&self, words: f32) -> f32 {
        if self.largest > 0.0 { words / self.largest } else { 0.0 }
    }
}

/// The places of the best candidates by one measure, as far as they have it: as many as one leg gives to the pool. The
/// candidates themselves stay where they are, since there may be many.
pub(super) fn best(found: &[Candidate], measure: impl Fn(usize, &Candidate) -> Option<f32>) -> Vec<usize> {
    let measured = found.iter().enumerate().filter_map(|(at, one)| Some((measure(at, one)?, at as u32)));
    let mut measured: Vec<(f32, u32)> = measured.collect();
    if measured.len() > POOL {
        let place = |at: u32| (found[at as usize].segment, found[at as usize].passage);
        measured.select_nth_unstable_by(POOL, |a, b| {
            b.0.total_cmp(&a.0).then_with(|| place(a.1).cmp(&place(b.1)))
        });
        measured.truncate(POOL);
    }
    measured.into_iter().map(|(_, at)| at as usize).collect()
}

/// Scores the pool by both legs, and puts the first `most` candidates in order.
pub(super) fn order(
    search: &Search<'_>,
    found: &mut Vec<Candidate>,
    fusion: &Fusion<'_>,
    most: usize,
) -> Scale {
    let Fusion { wanted, levels, .. } = *fusion;
    let mut chosen = Bits::none(found.len());
    for at in best(found, |_, one| (one.words > 0.0).then_some(one.words)) {
        chosen.set(at);
    }
    // Those that the keyword leg has chosen take no place of the vector leg.
    for at in best(found, |at, one| one.cosine.filter(|_| !chosen.has(at)).map(|_| one.level)) {
        chosen.set(at);
    }
    // What is named is asked for, however few of its words count.
    for (at, _) in found.iter().enumerate().filter(|(_, one)| fusion.is_named(one)) {
        chosen.set(at);
    }
    let mut pool: Vec<Candidate> = chosen.iter().map(|at| found[at]).collect();
    if let Some(legs) = Meaning::of(wanted) {
        let without = pool.iter_mut().filter(|one| one.cosine.is_none());
        without.for_each(|one| compute_cosine(search, one, &legs, (levels, wanted.unit)));
    }
    let scale = fuse(&mut pool, fusion);
    let smallest = pool.iter().map(|one| one.score).fold(1.0, f32::min);
    rank::order(search, &mut pool, most, |a, b| (b.score, b.words).partial_cmp(&(a.score, a.words)));
    if pool.len() < most && chosen.count() < found.len() {
        let rest = found.iter().enumerate().filter(|(at, _)| !chosen.has(*at));
        let mut rest: Vec<Candidate> = rest.map(|(_, one)| *one).collect();
        rank::order(search, &mut rest, most - pool.len(), |a, b| {
            (b.words, b.level).partial_cmp(&(a.words, a.level))
        });
        for one in &mut rest {
            one.score = smallest * 0.5 * (scale.share(one.words) + one.cosine.unwrap_or(0.0)).min(1.0);
        }
        pool.append(&mut rest);
    }
    *found = pool;
    scale
}

impl Fusion<'_> {
    fn is_named(&self, one: &Candidate) -> bool {
        self.named.contains(&(one.segment, one.document))
    }

    /// Whether a passage of the candidate has nearly all that the question says.
    fn is_quoted(&self, one: &Candidate) -> bool {
        one.words > 0.0 && self.telling.share(one.groups).is_some_and(|share| share >= QUOTED)
    }
}

/// Scores the pool by both legs together.
fn fuse(pool: &mut [Candidate], fusion: &Fusion<'_>) -> Scale {
    let levels = pool.iter().filter(|one| one.cosine.is_some()).map(|one| one.level);
    let (low, high) =
        levels.fold((f32::MAX, f32::MIN), |(low, high), level| (low.min(level), high.max(level)));
    let largest = pool.iter().map(|one| one.words).fold(0.0, f32::max);
    let scale = Scale { largest, low, high, dense: fusion.dense };
    let quoted = pool.iter().filter(|one| fusion.is_quoted(one)).count();
    let has_quoted = (1..=MOST_QUOTED).contains(&quoted);
    for one in &mut *pool {
        one.score = match one.cosine {
            Some(_) => scale.of(one.words, one.level),
            None => scale.share(one.words),
        };
        if has_quoted {
            let bonus = if fusion.is_quoted(one) { BONUS } else { 0.0 };
            one.score = (one.score + bonus) / (1.0 + BONUS);
        }
    }
    rank::lift(pool, fusion.named);
    scale
}

/// The best cosine of the candidate's passages.
fn compute_cosine(
    search: &Search<'_>,
    one: &mut Candidate,
    legs: &Meaning<'_>,
    (levels, unit): (&Levels, Unit),
) {
    let segment = &search.view.segments[one.segment as usize].segment;
    let row = segment.document(one.document as usize);
    // Not for long documents: the vector leg has scanned all passages, so one it did not return is below the floor.
    let passages = if unit == Unit::Document && row.passages <= 16 {
        row.first_passage..row.first_passage + row.passages
    } else {
        one.passage..one.passage + 1
    };
    for passage in passages {
        let cosine = legs.cosine(segment, one.segment, passage);
        let level = levels.of_cosine(segment, passage, cosine);
        if one.cosine.is_none() || level > one.level {
            (one.cosine, one.level, one.meant) = (Some(cosine), level, passage);
        }
    }
}
