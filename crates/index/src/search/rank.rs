//! Ranking: the candidates of the keyword leg and of the vector leg, put in order.

use std::collections::{BTreeMap, HashMap, HashSet};

use shelf_base::Digest;

use super::{
    Search, Wanted, fusion,
    fusion::Fusion,
    keyword,
    meaning::{Levels, Meaning},
};
use crate::{Result, Span, bits::Bits, segment::Segment, vector::Moments};

/// The minimum cosine of a match by meaning when other documents match by keyword.
const FLOOR: f32 = 0.3;
/// The minimum when no document has any of the words: texts about something else reach 0.2.
const FLOOR_ALONE: f32 = 0.25;
/// The minimum in a semantic search, whose caller wants to see the nearest.
const FLOOR_SEMANTIC: f32 = 0.15;
/// How far an estimate may be below the cosine.
const ERROR: f32 = 0.04;
/// What the score of everything else is multiplied by when documents are named by the query.
const BELOW_NAMED: f32 = 0.9;
/// The number of words from which a query tells enough to judge whether a passage has all of it.
const TELLING: u32 = 7;

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
    /// Whether a passage of it contains every counted group of the query, together with its name.
    full: bool,
    /// The groups of that passage and of its name.
    pub(super) groups: u64,
    pub(super) cosine: Option<f32>,
    /// The cosine as it is compared with those of vectors of the other kind.
    pub(super) level: f32,
    /// The passage that the cosine belongs to.
    pub(super) meant: u32,
    pub(super) score: f32,
}

pub(super) fn page(search: &Search<'_>, wanted: &Wanted<'_>) -> Result<Hits> {
    let (mut levels, mut telling) = (Levels::default(), Telling::default());
    let mut found = match wanted.kind {
        Kind::Keyword => by_words(search, wanted.unit, true)?.0,
        Kind::Semantic => by_meaning(search, wanted, FLOOR_SEMANTIC, &mut levels),
        Kind::Hybrid => by_both(search, wanted, &mut levels, &mut telling)?,
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
    let named = wanted.named.map(|name| named_so(search, &found, name)).unwrap_or_default();
    let mut scale = None;
    match wanted.kind {
        Kind::Hybrid => {
            let (dense, named) = (levels.dense(), &named);
            scale = Some(fusion::order(
                search,
                &mut found,
                &Fusion { wanted, levels: &levels, telling: &telling, named, dense },
                most,
            ));
        }
        Kind::Semantic => order(search, &mut found, most, |a, b| b.score.partial_cmp(&a.score)),
        Kind::Keyword => {
            level_keyword(&mut found, largest);
            lift(&mut found, &named);
            order(search, &mut found, most, |a, b| (b.score, b.words).partial_cmp(&(a.score, a.words)));
        }
    }
    if wanted.min_score > 0.0 {
        found.retain(|one| shown(one.score) >= shown(wanted.min_score));
        total = found.len() as u64;
    }
    let mut page: Vec<Candidate> = found.into_iter().skip(wanted.from).take(wanted.limit).collect();
    if let (Some(scale), Some(legs)) = (scale, Meaning::of(wanted)) {
        for one in &mut page {
            choose_passage(search, one, &legs, (&levels, &telling, &scale))?;
        }
    }
    let hits = page.iter().map(|candidate| hit(search, candidate, largest));
    Ok(Hits { total, hits: hits.collect() })
}

/// A score as callers see it: with four decimals.
fn shown(score: f32) -> i64 {
    (f64::from(score.clamp(0.0, 1.0)) * 10_000.0).round() as i64
}

/// The documents whose path is this name, or ends with it.
fn named_so(search: &Search<'_>, found: &[Candidate], name: &str) -> HashSet<(u32, u32)> {
    let is_named_so = |one: &&Candidate| {
        let segment = &search.view.segments[one.segment as usize].segment;
        let path = segment.path(&segment.document(one.document as usize));
        path.strip_suffix(name)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('/') || name.starts_with('/'))
    };
    found.iter().filter(is_named_so).map(|one| (one.segment, one.document)).collect()
}

/// Gives documents that the query names the highest score.
pub(super) fn lift(found: &mut [Candidate], named: &HashSet<(u32, u32)>) {
    if named.is_empty() {
        return;
    }
    for one in found {
        // What is named is above everything else, which stays in its order.
        let is_named = named.contains(&(one.segment, one.document));
        one.score = if is_named { 1.0 } else { one.score.min(1.0) * BELOW_NAMED };
    }
}

/// Shows the passage of a document that answers best by words and meaning together. Until now, its words and its cosine may
/// come from different ones.
fn choose_passage(
    search: &Search<'_>,
    one: &mut Candidate,
    legs: &Meaning<'_>,
    (levels, telling, scale): (&Levels, &Telling, &fusion::Scale),
) -> Result<()> {
    if one.words <= 0.0 || one.cosine.is_none() {
        one.passage = if one.words > 0.0 { one.passage } else { one.meant };
        return Ok(());
    }
    if one.meant == one.passage {
        return Ok(());
    }
    let segment = &search.view.segments[one.segment as usize].segment;
    // A large document has rows in several segments; its passages are compared within one.
    if segment.document_of(one.meant as usize) != segment.document_of(one.passage as usize) {
        return Ok(());
    }
    let cosine = legs.cosine(segment, one.segment, one.passage);
    let by_words = scale.of(one.words, levels.of_cosine(segment, one.passage, cosine));
    let words = keyword::of_passage(segment, &search.resolved, &telling.weights, telling.average, one.meant)?;
    if scale.of(words, one.level) > by_words {
        one.passage = one.meant;
    } else {
        (one.cosine, one.meant) = (Some(cosine), one.passage);
    }
    Ok(())
}

/// Whether any document has what the query requires.
pub(super) fn has_words(search: &Search<'_>) -> Result<bool> {
    Ok(!by_words(search, Unit::Document, false)?.0.is_empty())
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

/// How much the groups of a query tell.
#[derive(Default)]
pub(super) struct Telling {
    /// The weight of a match of each group.
    weights: Vec<f32>,
    /// The groups of the query proper that some document has.
    counted: u64,
    /// The passages' average length in words.
    average: f32,
}

impl Telling {
    /// The share of what the query tells that these groups have, if it tells enough to judge by.
    pub(super) fn share(&self, groups: u64) -> Option<f32> {
        let sum = |groups: u64| -> f32 {
            let weights = self.weights.iter().enumerate();
            weights.filter(|(at, _)| groups & 1 << at != 0).map(|(_, weight)| weight).sum()
        };
        (self.counted.count_ones() >= TELLING).then(|| sum(groups & self.counted) / sum(self.counted))
    }
}

/// All candidates of the keyword leg. A document's score is that of its best passage plus that of its name. If the best is
/// to be `whole`, a passage with all words is better than one with a higher score.
fn by_words(search: &Search<'_>, unit: Unit, whole: bool) -> Result<(Vec<Candidate>, Telling)> {
    let groups = &search.resolved.groups;
    let mask = |wanted: fn(&super::resolve::Group) -> bool| {
        let numbered = groups.iter().enumerate().take(64);
        numbered.filter(|(_, group)| wanted(group)).fold(0_u64, |mask, (at, _)| mask | 1 << at)
    };
    let (required, counted) = (mask(|group| group.required), mask(|group| group.counted));
    let (mut found, mut pieces, mut matches) = (Vec::new(), HashMap::new(), Vec::new());
    let mut seen = 0;
    let add = |found: &mut Vec<Candidate>, one: Candidate, groups: u64| {
        if groups & required == required {
            found.push(one);
        }
    };
    let (weights, average) =
        keyword::score(search.view, &search.resolved, &search.allowed, &mut |segment, scores| {
            let placed = &search.view.segments[segment].segment;
            of_segment(placed, scores, &Rule { unit, whole, counted }, &mut matches);
            for one in &matches {
                seen |= one.all;
                let row = (unit == Unit::Document && placed.has_pieces())
                    .then(|| placed.document(one.document as usize));
                let found_here = Candidate {
                    full: one.full,
                    groups: one.groups,
                    ..candidate(segment, one.document, one.passage, one.words)
                };
                match row.filter(|row| row.is_piece()) {
                    // The groups of a document are those of all its pieces together.
                    Some(row) => {
                        join(pieces.entry(row.number).or_insert((found_here, 0)), found_here, one.all)
                    }
                    None => add(&mut found, found_here, one.all),
                }
            }
        })?;
    pieces.into_values().for_each(|(one, groups)| add(&mut found, one, groups));
    Ok((found, Telling { weights, counted: counted & seen, average }))
}

/// Adds the groups of a piece to its document, which is represented by its best piece.
fn join(known: &mut (Candidate, u64), one: Candidate, all: u64) {
    let full = known.0.full || one.full;
    if one.words > known.0.words {
        known.0 = one;
    }
    known.0.full = full;
    known.1 |= all;
}

/// A match of the keyword leg in one segment. There may be many, so it is small.
struct Match {
    document: u32,
    passage: u32,
    words: f32,
    /// The groups of its best passage and of its name.
    groups: u64,
    /// The groups of all passages.
    all: u64,
    /// Whether one passage has all counted groups.
    full: bool,
}

/// How the matches of a segment are put together.
struct Rule {
    unit: Unit,
    whole: bool,
    counted: u64,
}

/// Finds the matches of one segment.
fn of_segment(placed: &Segment, scores: &keyword::Scores, rule: &Rule, matches: &mut Vec<Match>) {
    matches.clear();
    let mut names: BTreeMap<u32, (f32, u64)> = BTreeMap::new();
    for (document, score, group) in &scores.names {
        let name = names.entry(*document).or_default();
        *name = (name.0 + score, name.1 | group);
    }
    let mut name = (0.0, 0);
    for passage in scores.touched() {
        let document = placed.document_of(passage as usize) as u32;
        if matches.last().is_none_or(|last| last.document != document) {
            name = names.get(&document).copied().unwrap_or_default();
        }
        let (words, groups) = scores.of(passage);
        let (words, groups) = (words + name.0, groups | name.1);
        let full = groups & rule.counted == rule.counted;
        let one = Match { document, passage, words, groups, all: groups, full };
        match matches.last_mut().filter(|last| rule.unit == Unit::Document && last.document == document) {
            Some(last) => {
                let is_better = if rule.whole && full != last.full { full } else { words > last.words };
                let (all, any_full) = (last.all | groups, last.full || full);
                if is_better {
                    *last = one;
                }
                (last.all, last.full) = (all, any_full);
            }
            None => matches.push(one),
        }
    }
    add_names(placed, &names, rule, matches);
}

/// Adds the documents that only their names have found. `matches` is ordered by document.
fn add_names(placed: &Segment, names: &BTreeMap<u32, (f32, u64)>, rule: &Rule, matches: &mut Vec<Match>) {
    let known = matches.len();
    for (document, (words, groups)) in names {
        if matches[..known].binary_search_by_key(document, |one| one.document).is_ok() {
            continue;
        }
        let passage = placed.document(*document as usize).first_passage;
        // A document without text has a name, but no passage to show.
        if rule.unit == Unit::Document || placed.tokens_of(passage as usize) > 0 {
            let full = groups & rule.counted == rule.counted;
            matches.push(Match {
                document: *document,
                passage,
                words: *words,
                groups: *groups,
                all: *groups,
                full,
            });
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
        groups: 0,
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
fn by_both(
    search: &Search<'_>,
    wanted: &Wanted<'_>,
    levels: &mut Levels,
    telling: &mut Telling,
) -> Result<Vec<Candidate>> {
    let mut found;
    (found, *telling) = by_words(search, wanted.unit, false)?;
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
    let passage = one.passage;
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
