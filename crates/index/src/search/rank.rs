//! Ranking, and the fusion of the keyword leg and the vector leg.
//!
//! The best candidates of each leg form a **pool**. Every candidate in the pool is scored by both legs, including a leg
//! that did not find it. The keyword score is divided by the largest one in the pool, the cosine is scaled to the range
//! between the smallest and largest, and the two are added with equal weight. Matches outside the pool follow it,
//! ordered by keyword score and then by cosine, so that paging reaches the last hit. Ties are broken by document number
//! and passage.

use std::collections::{BTreeMap, HashMap};

use shelf_base::Digest;

use super::{Search, Wanted, keyword};
use crate::{
    Cosines, Result, Span,
    bits::Bits,
    segment::Segment,
    vector::{self, Moments},
};

/// The number of candidates that each leg contributes to the pool.
const POOL: usize = 1_000;
/// The minimum cosine of a match by meaning when other documents match by keyword.
const FLOOR: f32 = 0.3;
/// The minimum when no document has any of the words: texts about something else reach 0.2.
const FLOOR_ALONE: f32 = 0.25;
/// The minimum in a semantic search, whose caller wants to see the nearest.
const FLOOR_SEMANTIC: f32 = 0.15;
/// The minimum when no word of the query is a word: the vector of meaningless letters is near to odd texts by chance.
const FLOOR_MEANINGLESS: f32 = 0.35;
/// How far an estimate may be below the cosine.
const ERROR: f32 = 0.04;
/// The weight of the vector leg in the sum, when all vectors are the table's and when all are deep.
const DENSE: [f32; 2] = [0.5, 0.6];

/// The number of vectors of a kind below which it is not compared with the other kind by its moments.
const FEW: u64 = 16;

/// Which legs to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The keyword leg.
    Keyword,
    /// The vector leg.
    Semantic,
    /// Both legs.
    Hybrid,
}

/// What counts as one hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A document, represented by its best passage.
    Document,
    /// A passage.
    Passage,
}

/// One hit.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The document's number.
    pub number: i64,
    /// The SHA-256 of its content when it was indexed.
    pub hash: Digest,
    /// The passage.
    pub span: Span,
    /// The passage's ordinal in the document, from 0.
    pub ordinal: u32,
    /// From 0 to 1; comparable only within one reply.
    pub score: f32,
    /// The score of the keyword leg, from 0 to 1.
    pub keyword: Option<f32>,
    /// The cosine.
    pub semantic: Option<f32>,
    pub(crate) segment: usize,
    pub(crate) document: usize,
}

/// One page of hits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hits {
    /// The total number of hits.
    pub total: u64,
    /// The hits on this page.
    pub hits: Vec<Hit>,
}

/// A matching document or passage.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    segment: u32,
    document: u32,
    passage: u32,
    words: f32,
    /// Whether it contains every counted group of the query.
    full: bool,
    cosine: Option<f32>,
    /// The cosine as it is compared with those of vectors of the other kind.
    level: f32,
    /// The passage that the cosine belongs to.
    meant: u32,
    score: f32,
}

pub(super) fn page(search: &Search<'_>, wanted: &Wanted<'_>) -> Result<Hits> {
    let mut levels = Levels::default();
    let mut found = match wanted.kind {
        Kind::Keyword => by_words(search, wanted.unit)?,
        Kind::Semantic => by_meaning(search, wanted, FLOOR_SEMANTIC, &mut levels),
        Kind::Hybrid => by_both(search, wanted, &mut levels)?,
    };
    if wanted.unit == Unit::Document {
        join_pieces(search, &mut found);
    }
    let mut total = found.len() as u64;
    let most = match wanted.min_score {
        // How many hits reach a score is known when all have one.
        least if least > 0.0 => found.len(),
        _ => wanted.from.saturating_add(wanted.limit),
    };
    let largest = found.iter().map(|candidate| candidate.words).fold(0.0, f32::max);
    match wanted.kind {
        Kind::Hybrid => order_hybrid(search, &mut found, wanted, &levels, most),
        Kind::Semantic => order(search, &mut found, most, |a, b| b.score.partial_cmp(&a.score)),
        Kind::Keyword => {
            level_keyword(&mut found, largest);
            order(search, &mut found, most, |a, b| b.score.partial_cmp(&a.score));
        }
    }
    if wanted.min_score > 0.0 {
        found.retain(|one| one.score >= wanted.min_score);
        total = found.len() as u64;
    }
    let hits =
        found.iter().skip(wanted.from).take(wanted.limit).map(|candidate| hit(search, candidate, largest));
    Ok(Hits { total, hits: hits.collect() })
}

/// Whether any document has what the query requires.
pub(super) fn has_words(search: &Search<'_>) -> Result<bool> {
    Ok(!by_words(search, Unit::Document)?.is_empty())
}

/// Combines the pieces of a large document into one candidate: the best piece, with the best cosine of all pieces.
fn join_pieces(search: &Search<'_>, found: &mut Vec<Candidate>) {
    let segment = |one: &Candidate| &search.view.segments[one.segment as usize].segment;
    if !search.view.segments.iter().any(|placed| placed.segment.has_pieces()) {
        return;
    }
    let mut best: HashMap<i64, Candidate> = HashMap::new();
    found.retain(|one| {
        let row = segment(one).document(one.document as usize);
        if !row.is_piece() {
            return true;
        }
        let joined = best.entry(row.number).or_insert(*one);
        let rank = |one: &Candidate| (one.full, one.words, one.cosine.map_or(-1.0, |_| one.level));
        let full = joined.full || one.full;
        let nearest = if nearer(one, joined) { *one } else { *joined };
        if rank(one) > rank(joined) {
            *joined = *one;
        }
        joined.full = full;
        (joined.cosine, joined.level, joined.meant) = (nearest.cosine, nearest.level, nearest.meant);
        false
    });
    found.extend(best.into_values());
}

fn nearer(one: &Candidate, than: &Candidate) -> bool {
    one.cosine.is_some() && (than.cosine.is_none() || one.level > than.level)
}

/// All candidates of the keyword leg. A document's score is that of its best passage plus that of its name.
fn by_words(search: &Search<'_>, unit: Unit) -> Result<Vec<Candidate>> {
    let groups = &search.resolved.groups;
    let mask = |wanted: fn(&super::resolve::Group) -> bool| {
        let numbered = groups.iter().enumerate().take(64);
        numbered.filter(|(_, group)| wanted(group)).fold(0_u64, |mask, (at, _)| mask | 1 << at)
    };
    let (required, counted) = (mask(|group| group.required), mask(|group| group.counted));
    let (mut found, mut pieces) = (Vec::new(), HashMap::new());
    keyword::score(search.view, &search.resolved, &search.allowed, &mut |segment, scores| {
        let placed = &search.view.segments[segment].segment;
        for (one, all) in of_segment(placed, segment, scores, unit) {
            let row = (unit == Unit::Document && placed.has_pieces())
                .then(|| placed.document(one.document as usize));
            match row.filter(|row| row.is_piece()) {
                // The groups of a document are those of all its pieces together.
                Some(row) => join(pieces.entry(row.number).or_insert((one, 0)), one, all),
                None => found.push((one, all)),
            }
        }
    })?;
    found.extend(pieces.into_values());
    let fitting = found.into_iter().filter(|(_, all)| all & required == required);
    let found = fitting
        .map(|(mut one, all)| {
            one.full = all & counted == counted;
            one.score = one.words;
            one
        })
        .collect();
    Ok(found)
}

/// Adds the groups of a piece to its document, which is represented by its best piece.
fn join(known: &mut (Candidate, u64), one: Candidate, all: u64) {
    if one.words > known.0.words {
        known.0 = one;
    }
    known.1 |= all;
}

/// The candidates of one segment, each with the groups it contains.
fn of_segment(
    placed: &Segment,
    segment: usize,
    scores: &keyword::Scores,
    unit: Unit,
) -> Vec<(Candidate, u64)> {
    let mut candidates: Vec<(Candidate, u64)> = Vec::with_capacity(scores.touched.len());
    for passage in &scores.touched {
        let document = placed.document_of(*passage as usize) as u32;
        let (score, groups) = scores.of(*passage);
        match candidates.last_mut().filter(|(last, _)| unit == Unit::Document && last.document == document) {
            Some((last, all)) => {
                *all |= groups;
                if score > last.words {
                    (last.words, last.passage) = (score, *passage);
                }
            }
            None => candidates.push((candidate(segment, document, *passage, score), groups)),
        }
    }
    add_names(placed, segment, scores, unit, &mut candidates);
    candidates
}

/// Adds the scores of document names. `candidates` is ordered by document.
fn add_names(
    placed: &Segment,
    segment: usize,
    scores: &keyword::Scores,
    unit: Unit,
    candidates: &mut Vec<(Candidate, u64)>,
) {
    let mut names: BTreeMap<u32, (f32, u64)> = BTreeMap::new();
    for (document, score, group) in &scores.names {
        let name = names.entry(*document).or_default();
        *name = (name.0 + score, name.1 | group);
    }
    let known = candidates.len();
    for (document, (score, groups)) in names {
        let first = candidates[..known].partition_point(|(one, _)| one.document < document);
        let own = candidates[first..known].iter_mut().take_while(|(one, _)| one.document == document);
        let mut any = false;
        for (one, all) in own {
            one.words += score;
            *all |= groups;
            any = true;
        }
        let passage = placed.document(document as usize).first_passage;
        // A document without text has a name, but no passage to show.
        if !any && (unit == Unit::Document || placed.tokens_of(passage as usize) > 0) {
            candidates.push((candidate(segment, document, passage, score), groups));
        }
    }
}

const fn candidate(segment: usize, document: u32, passage: u32, words: f32) -> Candidate {
    let segment = segment as u32;
    Candidate {
        segment,
        document,
        passage,
        words,
        full: false,
        cosine: None,
        level: 0.0,
        meant: passage,
        score: words,
    }
}

/// All candidates of the vector leg that reach the floor.
fn by_meaning(search: &Search<'_>, wanted: &Wanted<'_>, floor: f32, levels: &mut Levels) -> Vec<Candidate> {
    let Some(legs) = Meaning::of(wanted) else { return Vec::new() };
    let floor = if wanted.has_words { floor } else { FLOOR_MEANINGLESS };
    let mut found: Vec<Candidate> = Vec::new();
    let mut moments = [Moments::default(); 2];
    for (at, (placed, allowed)) in search.view.segments.iter().zip(&search.allowed).enumerate() {
        let segment = &placed.segment;
        let all = allowed.count() == segment.documents();
        let may = |passage: usize| allowed.has(segment.document_of(passage));
        let may: Option<&dyn Fn(usize) -> bool> = if all { None } else { Some(&may) };
        legs.each(segment, at, (floor - ERROR, &mut moments), may, &mut |passage, estimate| {
            let (passage, document) = (passage as u32, segment.document_of(passage) as u32);
            // Passages arrive in order, so those of one document are consecutive.
            let same = |last: &&mut Candidate| {
                wanted.unit == Unit::Document && (last.segment, last.document) == (at as u32, document)
            };
            let one = Candidate {
                cosine: Some(estimate),
                score: estimate,
                ..candidate(at, document, passage, 0.0)
            };
            match found.last_mut().filter(same) {
                Some(last) if estimate > last.score => *last = one,
                Some(_) => {}
                None => found.push(one),
            }
        });
    }
    *levels = Levels::of(&moments);
    compute_best(search, &mut found, &legs, levels);
    // The cosines of the best are exact now; the others are far below them.
    found.retain(|one| one.cosine.is_some_and(|cosine| cosine >= floor));
    found
}

/// How cosines of the two kinds of vectors compare. A question is nearer to deep vectors than to the table's, so the
/// table's are moved to where they would lie among the deep ones: the same number of deviations from the mean.
#[derive(Clone, Copy, Debug)]
struct Levels {
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
    fn of([table, deep]: &[Moments; 2]) -> Self {
        let all = table.count() + deep.count();
        let share = deep.count() as f32 / all.max(1) as f32;
        // The moments of a handful of vectors say nothing.
        if table.count().min(deep.count()) < FEW || table.deviation() <= 0.0 {
            return Self { deep: share, ..Self::default() };
        }
        let factor = deep.deviation() / table.deviation();
        Self { factor, offset: deep.mean() - factor * table.mean(), deep: share }
    }

    fn of_cosine(&self, segment: &Segment, passage: u32, cosine: f32) -> f32 {
        if segment.vectors.is_deep(passage as usize) { cosine } else { self.factor * cosine + self.offset }
    }

    /// The weight of the vector leg.
    fn dense(&self) -> f32 {
        DENSE[0] + self.deep * (DENSE[1] - DENSE[0])
    }
}

/// The source of cosines: the built-in vectors, or those of a remote model.
enum Meaning<'a> {
    BuiltIn(Box<vector::Query>),
    Other(&'a Cosines),
}

impl<'a> Meaning<'a> {
    fn of(wanted: &Wanted<'a>) -> Option<Self> {
        if let Some(cosines) = wanted.cosines {
            return Some(Self::Other(cosines));
        }
        let vector = wanted.vector.filter(|vector| vector.iter().any(|value| *value != 0.0))?;
        Some(Self::BuiltIn(Box::new(vector::Query::new(vector))))
    }

    /// Calls `each` with every allowed passage of a segment whose cosine, estimated or exact, reaches `floor`.
    fn each(
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

    fn cosine(&self, segment: &Segment, at: u32, passage: u32) -> f32 {
        match self {
            Self::BuiltIn(query) => segment.vectors.cosine(query, passage as usize),
            Self::Other(cosines) => cosines.0[at as usize][passage as usize],
        }
    }
}

/// Replaces the estimates of the best candidates by exact cosines.
fn compute_best(search: &Search<'_>, found: &mut [Candidate], legs: &Meaning<'_>, levels: &Levels) {
    for one in &mut *found {
        let segment = &search.view.segments[one.segment as usize].segment;
        one.score = levels.of_cosine(segment, one.passage, one.score);
        one.level = one.score;
    }
    let by_estimate = |a: &Candidate, b: &Candidate| b.score.total_cmp(&a.score);
    if found.len() > POOL {
        found.select_nth_unstable_by(POOL, by_estimate);
    }
    let best = found.len().min(POOL);
    for one in &mut found[..best] {
        let segment = &search.view.segments[one.segment as usize].segment;
        let cosine = legs.cosine(segment, one.segment, one.passage);
        one.cosine = Some(cosine);
        one.level = levels.of_cosine(segment, one.passage, cosine);
        one.score = one.level;
    }
}

/// The union of both legs. Quoted phrases restrict the vector leg too.
fn by_both(search: &Search<'_>, wanted: &Wanted<'_>, levels: &mut Levels) -> Result<Vec<Candidate>> {
    let mut found = by_words(search, wanted.unit)?;
    let key = |candidate: &Candidate| match wanted.unit {
        Unit::Document => (candidate.segment, candidate.document),
        Unit::Passage => (candidate.segment, candidate.passage),
    };
    let floor = if found.is_empty() { FLOOR_ALONE } else { FLOOR };
    let quoted = search.resolved.groups.iter().any(|group| group.required);
    let mut meant: HashMap<(u32, u32), Candidate> =
        by_meaning(search, wanted, floor, levels).into_iter().map(|one| (key(&one), one)).collect();
    let mut near: Vec<Bits> =
        search.view.segments.iter().map(|placed| Bits::none(placed.segment.passages())).collect();
    meant.keys().for_each(|(segment, at)| near[*segment as usize].set(*at as usize));
    for one in &mut found {
        let (segment, at) = key(one);
        // Most keyword matches are not near; testing a bit is faster than a hash lookup.
        if near[segment as usize].has(at as usize)
            && let Some(meant) = meant.remove(&(segment, at))
        {
            (one.cosine, one.level, one.meant) = (meant.cosine, meant.level, meant.passage);
        }
    }
    if !quoted {
        found.extend(meant.into_values());
    }
    Ok(found)
}

/// Sorts the first `most` candidates and drops the rest.
fn order(
    search: &Search<'_>,
    found: &mut Vec<Candidate>,
    most: usize,
    compare: impl Fn(&Candidate, &Candidate) -> Option<std::cmp::Ordering>,
) {
    let place = |one: &Candidate| {
        let segment = &search.view.segments[one.segment as usize].segment;
        (segment.number(one.document as usize), one.passage)
    };
    let full = |a: &Candidate, b: &Candidate| {
        compare(a, b).unwrap_or(std::cmp::Ordering::Equal).then_with(|| place(a).cmp(&place(b)))
    };
    if most < found.len() {
        found.select_nth_unstable_by(most, &full);
        found.truncate(most);
    }
    found.sort_unstable_by(full);
}

/// Scores the pool by both legs and appends the rest.
fn order_hybrid(
    search: &Search<'_>,
    found: &mut Vec<Candidate>,
    wanted: &Wanted<'_>,
    levels: &Levels,
    most: usize,
) {
    let mut rest = std::mem::take(found);
    let mut pool = take_best(&mut rest, |one| one.words, 0.0);
    pool.extend(take_best(&mut rest, |one| one.cosine.map_or(f32::MIN, |_| one.level), f32::MIN));
    if let Some(legs) = Meaning::of(wanted) {
        let without = pool.iter_mut().filter(|one| one.cosine.is_none());
        without.for_each(|one| compute_cosine(search, one, &legs, (levels, wanted.unit)));
    }
    let largest = pool.iter().map(|one| one.words).fold(0.0, f32::max);
    fuse(&mut pool, largest, levels.dense());
    let smallest = pool.iter().map(|one| one.score).fold(1.0, f32::min);
    order(search, &mut pool, most, |a, b| (b.score, b.words).partial_cmp(&(a.score, a.words)));
    if pool.len() < most && !rest.is_empty() {
        order(search, &mut rest, most - pool.len(), |a, b| {
            (b.words, b.level).partial_cmp(&(a.words, a.level))
        });
        for one in &mut rest {
            let words = if largest > 0.0 { one.words / largest } else { 0.0 };
            one.score = smallest * 0.5 * (words + one.cosine.unwrap_or(0.0)).min(1.0);
        }
        pool.append(&mut rest);
    }
    *found = pool;
}

/// Scores the pool by both legs together.
fn fuse(pool: &mut [Candidate], largest: f32, dense: f32) {
    let levels = pool.iter().filter(|one| one.cosine.is_some()).map(|one| one.level);
    let (low, high) =
        levels.fold((f32::MAX, f32::MIN), |(low, high), level| (low.min(level), high.max(level)));
    for one in pool {
        let words = if largest > 0.0 { one.words / largest } else { 0.0 };
        let meaning = if high > low { (one.level - low) / (high - low) } else { 1.0 };
        one.score = match one.cosine {
            Some(_) => (1.0 - dense) * words + dense * meaning,
            None => words,
        };
    }
}

/// Removes and returns the best candidates by one measure, as far as they are above `least`.
fn take_best(rest: &mut Vec<Candidate>, measure: impl Fn(&Candidate) -> f32, least: f32) -> Vec<Candidate> {
    let split = |a: &Candidate, b: &Candidate| {
        let place = |one: &Candidate| (one.segment, one.passage);
        measure(b).total_cmp(&measure(a)).then_with(|| place(a).cmp(&place(b)))
    };
    let mut taken: Vec<Candidate> = if rest.len() > POOL {
        rest.select_nth_unstable_by(POOL, split);
        let after = rest.split_off(POOL);
        std::mem::replace(rest, after)
    } else {
        std::mem::take(rest)
    };
    rest.extend(taken.extract_if(.., |one| measure(one) <= least));
    taken
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

/// Ranks candidates that contain every counted group above the others.
fn level_keyword(found: &mut [Candidate], largest: f32) {
    let mixed = found.iter().any(|one| one.full) && found.iter().any(|one| !one.full);
    for one in found {
        let share = if largest > 0.0 { one.words / largest } else { 0.0 };
        one.score = match (mixed, one.full) {
            (false, _) => share,
            (true, true) => 0.5 + 0.5 * share,
            (true, false) => 0.5 * share,
        };
    }
}

fn hit(search: &Search<'_>, one: &Candidate, largest: f32) -> Hit {
    let segment = &search.view.segments[one.segment as usize].segment;
    let row = segment.document(one.document as usize);
    let passage = if one.words > 0.0 { one.passage } else { one.meant };
    Hit {
        number: row.number,
        hash: row.hash,
        span: segment.passage(passage as usize).span,
        ordinal: row.first_ordinal + passage - row.first_passage,
        score: one.score.clamp(0.0, 1.0),
        keyword: (one.words > 0.0 && largest > 0.0).then(|| (one.words / largest).min(1.0)),
        semantic: one.cosine.map(|cosine| cosine.clamp(-1.0, 1.0)),
        segment: one.segment as usize,
        document: one.document as usize,
    }
}
