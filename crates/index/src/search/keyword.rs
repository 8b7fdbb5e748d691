//! The keyword leg: BM25 over passages, term at a time.
//!
//! All passages with any of the words are scored, since the exact number of hits is part of the reply; scores are kept
//! in one array per segment. Document frequencies are counted over the live documents that the caller may see, so
//! that scores depend neither on other people's documents nor on deleted ones nor on the division into segments.

use std::cell::RefCell;

use tantivy::{
    DocSet, InvertedIndexReader, TERMINATED,
    postings::{Postings, SegmentPostings},
    schema::IndexRecordOption,
};

use super::resolve::{Group, MOST_GROUPS, MatchMode, Resolved};
use crate::{
    Result, View,
    bits::Bits,
    segment::Segment,
    text::words::{Sort, Words},
};

const K1: f32 = 1.2;
const B: f32 = 0.75;
/// The weight of a word in the title or path relative to one in the text.
const NAME: f32 = 0.5;

/// The scores of one segment. The arrays have an element for every passage; `touched` marks those in use.
#[derive(Default)]
pub(super) struct Scores {
    passages: Vec<f32>,
    groups: Vec<u64>,
    /// One bit for each passage.
    touched: Vec<u64>,
    /// For each match in a name: the document, the score it adds, and the group that matched.
    pub names: Vec<(u32, f32, u64)>,
}

impl Scores {
    /// The score of a passage, and the groups it contains.
    pub(super) fn of(&self, passage: u32) -> (f32, u64) {
        (self.passages[passage as usize], self.groups[passage as usize])
    }

    /// Passages with any of the words, in ascending order.
    pub(super) fn touched(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.touched).flat_map(|(at, word)| bits_of(at, *word))
    }

    fn add(&mut self, passage: u32, score: f32, group: u64) {
        let at = passage as usize;
        self.touched[at / 64] |= 1 << (at % 64);
        self.passages[at] += score;
        self.groups[at] |= group;
    }

    /// Clears the elements in use and makes the arrays large enough.
    fn begin(&mut self, passages: usize) {
        for (at, word) in (0..).zip(&mut self.touched) {
            for passage in bits_of(at, std::mem::take(word)) {
                self.passages[passage as usize] = 0.0;
                self.groups[passage as usize] = 0;
            }
        }
        self.names.clear();
        if self.passages.len() < passages {
            self.passages.resize(passages, 0.0);
            self.groups.resize(passages, 0);
            self.touched.resize(passages.div_ceil(64), 0);
        }
    }
}

/// The numbers that the bits of a word stand for.
fn bits_of(at: u32, word: u64) -> impl Iterator<Item = u32> {
    let after = |word: &u64| Some(word & (word - 1)).filter(|rest| *rest != 0);
    std::iter::successors(Some(word).filter(|word| *word != 0), after)
        .map(move |word| 64 * at + word.trailing_zeros())
}

thread_local! {
    /// The arrays are large, so each thread reuses them from search to search.
    static SCRATCH: RefCell<Scores> = RefCell::default();
}

/// The matches of a group in one segment: passage and weighted frequency.
type List = Vec<(u32, f32)>;

/// The matches of a group in all segments, and the weight of a match.
struct Found {
    bodies: Vec<List>,
    names: Vec<List>,
    body_weight: f32,
    name_weight: f32,
}

/// Scores all passages that contain any of the groups, and passes the scores to `take`, segment by segment. Returns how much
/// each group tells, which is the weight of a match in a text, and the average length of a passage.
pub(super) fn score(
    view: &View,
    resolved: &Resolved,
    allowed: &[Bits],
    take: &mut dyn FnMut(usize, &Scores),
) -> Result<(Vec<f32>, f32)> {
    let measure = Measure::of(view, allowed);
    let groups = resolved.groups.iter().take(MOST_GROUPS);
    let found: Vec<Found> =
        groups.map(|group| find_all(view, group, allowed, &measure)).collect::<Result<_>>()?;
    SCRATCH.with_borrow_mut(|scores| {
        for (at, placed) in view.segments.iter().enumerate() {
            scores.begin(placed.segment.passages());
            add_up_groups(&placed.segment, at, &found, &measure, scores);
            take(at, scores);
        }
    });
    Ok((found.iter().map(|found| found.body_weight).collect(), measure.average))
}

/// The score of one passage for its own words, given the weights of the groups. Phrases are not looked for.
pub(super) fn of_passage(
    segment: &Segment,
    resolved: &Resolved,
    weights: &[f32],
    average: f32,
    passage: u32,
) -> Result<f32> {
    let words = segment.body()?;
    let length = segment.tokens_of(passage as usize) as f32;
    let mut score = 0.0;
    for (group, weight) in
        resolved.groups.iter().zip(weights).filter(|(group, _)| group.mode == MatchMode::Any)
    {
        let mut frequency = 0.0;
        for (form, share) in &group.forms {
            let Some(info) = words.terms().get(form.as_bytes())? else { continue };
            let mut postings = words.read_postings_from_terminfo(&info, IndexRecordOption::WithFreqs)?;
            if postings.doc() <= passage && postings.seek(passage) == passage {
                frequency += postings.term_freq() as f32 * share;
            }
        }
        score += weight * damped(frequency, length, average);
    }
    Ok(score)
}

/// How much a frequency counts in a passage of this length.
fn damped(frequency: f32, length: f32, average: f32) -> f32 {
    frequency * (K1 + 1.0) / (frequency + K1 * (1.0 - B + B * length / average))
}

fn find_all(view: &View, group: &Group, allowed: &[Bits], measure: &Measure) -> Result<Found> {
    let (mut bodies, mut names) = (Vec::new(), Vec::new());
    for (placed, allowed) in view.segments.iter().zip(allowed) {
        let segment = &*placed.segment;
        bodies.push(find(segment, &*segment.body()?, group, allowed)?);
        names.push(match group.mode {
            MatchMode::Any => find(segment, &*segment.name()?, group, allowed)?,
            MatchMode::SideBySide => named_so(segment, group, allowed)?,
        });
    }
    let count = |lists: &[List]| lists.iter().map(List::len).sum();
    Ok(Found {
        body_weight: group.weight * rarity(count(&bodies), measure.passages),
        name_weight: group.weight * NAME * rarity(count(&names), measure.documents),
        bodies,
        names,
    })
}

fn add_up_groups(segment: &Segment, at: usize, found: &[Found], measure: &Measure, scores: &mut Scores) {
    for (group, found) in found.iter().enumerate() {
        let bit = 1 << group;
        for (passage, frequency) in &found.bodies[at] {
            let length = segment.tokens_of(*passage as usize) as f32;
            let score = found.body_weight * damped(*frequency, length, measure.average);
            scores.add(*passage, score, bit);
        }
        scores.names.extend(found.names[at].iter().map(|(passage, frequency)| {
            let document = segment.document_of(*passage as usize) as u32;
            (document, found.name_weight * frequency.min(1.0), bit)
        }));
    }
}

/// The collection statistics that BM25 needs.
struct Measure {
    documents: f32,
    passages: f32,
    average: f32,
}

impl Measure {
    fn of(view: &View, allowed: &[Bits]) -> Self {
        let (mut documents, mut passages, mut tokens) = (0_u64, 0_u64, 0_u64);
        for (placed, allowed) in view.segments.iter().zip(allowed) {
            if allowed.count() == placed.segment.documents() {
                documents += placed.segment.documents() as u64;
                passages += placed.segment.passages() as u64;
                tokens += placed.segment.tokens();
                continue;
            }
            for at in allowed.iter() {
                let row = placed.segment.document(at);
                documents += 1;
                passages += u64::from(row.passages);
                tokens += u64::from(row.tokens);
            }
        }
        Self {
            documents: documents as f32,
            passages: passages as f32,
            average: (tokens as f32 / passages.max(1) as f32).max(1.0),
        }
    }
}

fn rarity(found: usize, of: f32) -> f32 {
    let found = found as f32;
    (1.0 + (of - found + 0.5).max(0.0) / (found + 0.5)).ln()
}

fn find(segment: &Segment, words: &InvertedIndexReader, group: &Group, allowed: &Bits) -> Result<List> {
    let mut list = match group.mode {
        MatchMode::Any => any(segment, words, group)?,
        MatchMode::SideBySide => side_by_side(words, group)?,
    };
    if allowed.count() < segment.documents() {
        list.retain(|(passage, _)| allowed.has(segment.document_of(*passage as usize)));
    }
    Ok(list)
}

/// Passages with any of the forms. Most groups have one form in a segment; the frequencies of several are summed.
fn any(segment: &Segment, words: &InvertedIndexReader, group: &Group) -> Result<List> {
    let mut list = List::new();
    let mut lists = 0;
    for (form, weight) in &group.forms {
        let Some(info) = words.terms().get(form.as_bytes())? else { continue };
        let mut postings = words.read_block_postings_from_terminfo(&info, IndexRecordOption::WithFreqs)?;
        lists += 1;
        list.reserve(info.doc_freq as usize);
        while !postings.docs().is_empty() {
            // Names are indexed without frequencies, so every occurrence counts as one.
            let frequencies = postings.freqs().iter().copied().chain(std::iter::repeat(1));
            let found = postings.docs().iter().zip(frequencies);
            list.extend(found.map(|(passage, frequency)| (*passage, frequency as f32 * weight)));
            postings.advance();
        }
    }
    if lists > 1 {
        list = add_up(&list, segment.passages());
    }
    Ok(list)
}

/// The first passages of documents whose path has the forms side by side. Names are indexed without positions, so the paths
/// of those that have all forms are read.
fn named_so(segment: &Segment, group: &Group, allowed: &Bits) -> Result<List> {
    let words = segment.name()?;
    let mut common: Option<Vec<u32>> = None;
    for (form, _) in &group.forms {
        let Some(info) = words.terms().get(form.as_bytes())? else { return Ok(List::new()) };
        let mut postings = words.read_block_postings_from_terminfo(&info, IndexRecordOption::Basic)?;
        let mut own = Vec::new();
        while !postings.docs().is_empty() {
            own.extend_from_slice(postings.docs());
            postings.advance();
        }
        match &mut common {
            Some(common) => common.retain(|passage| own.binary_search(passage).is_ok()),
            None => common = Some(own),
        }
        if common.as_ref().is_some_and(Vec::is_empty) {
            return Ok(List::new());
        }
    }
    let is_named_so = |passage: &u32| {
        let document = segment.document_of(*passage as usize);
        allowed.has(document) && has_side_by_side(segment.path(&segment.document(document)), group)
    };
    let found = common.unwrap_or_default().into_iter().filter(is_named_so);
    Ok(found.map(|passage| (passage, 1.0)).collect())
}

fn has_side_by_side(text: &str, group: &Group) -> bool {
    let (mut words, mut word, mut all) = (Words::new(text), String::new(), Vec::new());
    while let Some(place) = words.next(&mut word) {
        if place.sort != Sort::Whole {
            all.push(word.clone());
        }
    }
    let fits = |run: &[String]| run.iter().zip(&group.forms).all(|(word, (form, _))| word == form);
    all.windows(group.forms.len().max(1)).any(fits)
}

fn add_up(list: &List, passages: usize) -> List {
    let mut sums = vec![0.0_f32; passages];
    let mut order = Vec::with_capacity(list.len());
    for (passage, frequency) in list {
        let sum = &mut sums[*passage as usize];
        if *sum == 0.0 {
            order.push(*passage);
        }
        *sum += frequency;
    }
    order.into_iter().map(|passage| (passage, sums[passage as usize])).collect()
}

/// Passages that contain the forms as a phrase.
fn side_by_side(words: &InvertedIndexReader, group: &Group) -> Result<List> {
    let mut lists: Vec<(u32, SegmentPostings)> = Vec::new();
    for (at, (form, _)) in group.forms.iter().enumerate() {
        let Some(info) = words.terms().get(form.as_bytes())? else { return Ok(List::new()) };
        let option = IndexRecordOption::WithFreqsAndPositions;
        lists.push((at as u32, words.read_postings_from_terminfo(&info, option)?));
    }
    lists.sort_by_key(|(_, postings)| postings.doc_freq());
    let mut found = List::new();
    let Some(((first_at, first), others)) = lists.split_first_mut() else { return Ok(found) };
    let (mut starts, mut positions) = (Vec::new(), Vec::new());
    'passages: while first.doc() != TERMINATED {
        let passage = first.doc();
        for (_, other) in &mut *others {
            if other.doc() < passage {
                other.seek(passage);
            }
            if other.doc() != passage {
                first.advance();
                continue 'passages;
            }
        }
        first.positions(&mut starts);
        starts.retain_mut(|start| start.checked_sub(*first_at).map(|moved| *start = moved).is_some());
        for (at, other) in &mut *others {
            other.positions(&mut positions);
            starts.retain(|start| positions.binary_search(&(start + *at)).is_ok());
        }
        if !starts.is_empty() {
            found.push((passage, starts.len() as f32));
        }
        first.advance();
    }
    Ok(found)
}
