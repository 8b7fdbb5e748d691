//! Ranking: the candidates of the keyword leg and of the vector leg, put in order.

use std::collections::{BTreeMap, HashMap};

use shelf_base::Digest;

use super::{Search, Wanted, fusion, keyword};
use crate::{
    Cosines, Result, Span,
    bits::Bits,
    segment::Segment,
    vector::{self, Moments},
};

/// The minimum cosine of a match by meaning when other documents match by keyword.
const FLOOR: f32 = 0.3;
/// The minimum when no document has any of the words: texts about something else reach 0.2.
const FLOOR_ALONE: f32 = 0.25;
/// The minimum in a semantic search, whose caller wants to see the nearest.
const FLOOR_SEMANTIC: f32 = 0.15;
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
pub(super) struct Candidate {
    pub(super) segment: u32,
    pub(super) document: u32,
    pub(super) passage: u32,
    pub(super) words: f32,
    /// Whether it contains every counted group of the query.
    full: bool,
    pub(super) cosine: Option<f32>,
    /// The cosine as it is compared with those of vectors of the other kind.
    pub(super) level: f32,
    /// The passage that the cosine belongs to.
    pub(super) meant: u32,
    pub(super) score: f32,
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
        Kind::Hybrid => fusion::order(search, &mut found, wanted, &levels, most),
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
    let (mut found, mut pieces, mut matches) = (Vec::new(), HashMap::new(), Vec::new());
    let add = |found: &mut Vec<Candidate>, one: Candidate, groups: u64| {
        if groups & required == required {
            found.push(Candidate { full: groups & counted == counted, ..one });
        }
    };
    keyword::score(search.view, &search.resolved, &search.allowed, &mut |segment, scores| {
        let placed = &search.view.segments[segment].segment;
        of_segment(placed, scores, unit, &mut matches);
        for one in &matches {
            let row = (unit == Unit::Document && placed.has_pieces())
                .then(|| placed.document(one.document as usize));
            let found_here = candidate(segment, one.document, one.passage, one.words);
            match row.filter(|row| row.is_piece()) {
                // The groups of a document are those of all its pieces together.
                Some(row) => {
                    join(pieces.entry(row.number).or_insert((found_here, 0)), found_here, one.groups)
                }
                None => add(&mut found, found_here, one.groups),
            }
        }
    })?;
    pieces.into_values().for_each(|(one, groups)| add(&mut found, one, groups));
    Ok(found)
}

/// Adds the groups of a piece to its document, which is represented by its best piece.
fn join(known: &mut (Candidate, u64), one: Candidate, all: u64) {
    if one.words > known.0.words {
        known.0 = one;
    }
    known.1 |= all;
}

/// A match of the keyword leg in one segment. There may be many, so it is small.
struct Match {
    document: u32,
    passage: u32,
    words: f32,
    /// The groups that it contains.
    groups: u64,
}

/// Finds the matches of one segment.
fn of_segment(placed: &Segment, scores: &keyword::Scores, unit: Unit, matches: &mut Vec<Match>) {
    matches.clear();
    for passage in scores.touched() {
        let document = placed.document_of(passage as usize) as u32;
        let (words, groups) = scores.of(passage);
        match matches.last_mut().filter(|last| unit == Unit::Document && last.document == document) {
            Some(last) => {
                last.groups |= groups;
                if words > last.words {
                    (last.words, last.passage) = (words, passage);
                }
            }
            None => matches.push(Match { document, passage, words, groups }),
        }
    }
    add_names(placed, scores, unit, matches);
}

/// Adds the scores of document names. `matches` is ordered by document.
fn add_names(placed: &Segment, scores: &keyword::Scores, unit: Unit, matches: &mut Vec<Match>) {
    let mut names: BTreeMap<u32, (f32, u64)> = BTreeMap::new();
    for (document, score, group) in &scores.names {
        let name = names.entry(*document).or_default();
        *name = (name.0 + score, name.1 | group);
    }
    let known = matches.len();
    for (document, (words, groups)) in names {
        let first = matches[..known].partition_point(|one| one.document < document);
        let own = matches[first..known].iter_mut().take_while(|one| one.document == document);
        let mut any = false;
        for one in own {
            one.words += words;
            one.groups |= groups;
            any = true;
        }
        let passage = placed.document(document as usize).first_passage;
        // A document without text has a name, but no passage to show.
        if !any && (unit == Unit::Document || placed.tokens_of(passage as usize) > 0) {
            matches.push(Match { document, passage, words, groups });
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

    pub(super) fn cosine(&self, segment: &Segment, at: u32, passage: u32) -> f32 {
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
    for at in fusion::best(found, |_, one| Some(one.score)) {
        let one = &mut found[at];
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
    // Ordered by place, as they were found.
    let meant = by_meaning(search, wanted, floor, levels);
    let mut near: Vec<Bits> =
        search.view.segments.iter().map(|placed| Bits::none(placed.segment.passages())).collect();
    meant.iter().map(key).for_each(|(segment, at)| near[segment as usize].set(at as usize));
    let mut joined = Bits::none(meant.len());
    for one in &mut found {
        let (segment, at) = key(one);
        // Most keyword matches are not near; testing a bit is faster than looking for them.
        if near[segment as usize].has(at as usize)
            && let Ok(at) = meant.binary_search_by_key(&(segment, at), key)
        {
            let meant = &meant[at];
            (one.cosine, one.level, one.meant) = (meant.cosine, meant.level, meant.passage);
            joined.set(at);
        }
    }
    if !quoted {
        found.extend((0..).zip(meant).filter(|(at, _)| !joined.has(*at)).map(|(_, one)| one));
    }
    Ok(found)
}

/// Sorts the first `most` candidates and drops the rest.
pub(super) fn order(
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
