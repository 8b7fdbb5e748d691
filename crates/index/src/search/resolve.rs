//! Resolves a query to words that occur in the library: forms with the same stem, words with a given prefix, and, for a
//! word that occurs in no visible document, likely corrections.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
};

use shelf_base::distance;
use tantivy::{Term, query::FuzzyTermQuery};

use super::question::{Asked, Element, Question};
use crate::{
    Result, View,
    bits::Bits,
    segment::Segment,
    text::{
        stem,
        words::{Place, Sort, Words, fold},
    },
};

/// The maximum number of edits in a correction.
const MOST_EDITS: usize = 2;
/// The maximum number of corrections for one word.
const CORRECTIONS: usize = 8;
/// The maximum number of words that a prefix expands to.
const PREFIXED: usize = 4_096;
/// The maximum number of elements of a query that are searched: a score notes with one bit each which it has.
pub(super) const MOST_GROUPS: usize = 64;

/// The cosine from which two words of the language count as the same.
const SAME_MEANING: f32 = 0.6;
/// The weight of words that are joined in the query, when all of them are plain: a hyphen often only makes a word of two.
const JOINED_PLAINLY: f32 = 0.5;
/// How quickly repeating a word in a query stops to count.
const SATURATION: f32 = 8.0;

/// The weight of a correction that starts with a different letter.
const OTHER_START: f32 = 0.4;

/// The weights of a word and of a phrase when choosing the lines to show.
const WORD: usize = 2;
const PHRASE: usize = 5;

/// How the forms of a group match.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum MatchMode {
    /// Any of the forms matches.
    Any,
    /// All of the forms, adjacent and in order.
    SideBySide,
}

/// Words that match as one element of the query.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    pub forms: Vec<(String, f32)>,
    pub mode: MatchMode,
    /// A document without it is not a hit.
    pub required: bool,
    /// It is an element of the query proper, not an addition such as a whole identifier.
    pub counted: bool,
    /// How much it counts, relative to a word that is said once.
    pub weight: f32,
}

/// Which words may be corrected.
#[derive(Clone, Copy)]
pub struct Correcting<'a> {
    /// How similar a correction must be, from 0 to 1.
    pub similarity: f32,
    /// What is known about words.
    pub words: &'a dyn Lexicon,
}

/// What is known about words, wherever they occur.
pub trait Lexicon {
    /// Whether this is a word of the language, not a typing error.
    fn is_word(&self, word: &str) -> bool;

    /// How similar two words are in meaning: a cosine.
    fn alike(&self, word: &str, other: &str) -> f32;
}

/// A word that was corrected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// The word in the query.
    pub asked: String,
    /// The most likely correction.
    pub meant: String,
    /// Other possible corrections, which were searched for too.
    pub also: Vec<String>,
    /// Whether it can hardly be anything else.
    pub is_sure: bool,
}

/// A query, resolved to words of the library.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resolved {
    pub(crate) groups: Vec<Group>,
    /// Words that were corrected.
    pub corrections: Vec<Correction>,
    /// How many words of a long query were not searched.
    pub left_out: usize,
    /// A prefix that more words of the library have than were searched.
    pub cut_prefix: Option<String>,
}

/// The words that a query looks for, ready to be found in many lines.
pub struct Marker<'a> {
    resolved: &'a Resolved,
    /// The groups of each form.
    forms: HashMap<&'a str, u64>,
}

impl Resolved {
    /// The query's text with the corrections applied that are sure.
    pub fn corrected(&self, text: &str) -> String {
        let sure = self.corrections.iter().filter(|correction| correction.is_sure);
        let meant: HashMap<&str, &str> =
            sure.map(|correction| (&*correction.asked, &*correction.meant)).collect();
        if meant.is_empty() {
            return text.to_owned();
        }
        let mut output = String::new();
        let (mut words, mut word, mut at) = (Words::new(text), String::new(), 0);
        while let Some(place) = words.next(&mut word) {
            if let Some(meant) = meant.get(word.as_str()).filter(|_| place.bytes.start >= at) {
                output.push_str(&text[at..place.bytes.start]);
                output.push_str(meant);
                at = place.bytes.end;
            }
        }
        output.push_str(&text[at..]);
        output
    }

    /// Gets ready to mark lines.
    pub fn marker(&self) -> Marker<'_> {
        let mut forms: HashMap<&str, u64> = HashMap::new();
        for (at, group) in self.groups.iter().take(MOST_GROUPS).enumerate() {
            group.forms.iter().for_each(|(form, _)| *forms.entry(form).or_default() |= 1 << at);
        }
        Marker { resolved: self, forms }
    }
}

impl Marker<'_> {
    fn groups(&self, mode: &MatchMode) -> u64 {
        let numbered = self.resolved.groups.iter().take(MOST_GROUPS).enumerate();
        numbered.filter(|(_, group)| group.mode == *mode).fold(0, |mask, (at, _)| mask | 1 << at)
    }

    /// The ranges of a line that match the query. Words of a phrase count only where they are adjacent, which may
    /// include the line before or after.
    pub fn marks(&self, before: &str, line: &str, after: &str) -> Vec<Range<usize>> {
        let any = self.groups(&MatchMode::Any);
        let mut marks: Vec<Range<usize>> = Vec::new();
        let (mut words, mut word, mut in_phrases) = (Words::new(line), String::new(), false);
        while let Some(place) = words.next(&mut word) {
            let groups = self.forms.get(word.as_str()).copied().unwrap_or_default();
            in_phrases |= groups & !any != 0;
            if groups & any != 0 {
                marks.push(place.bytes);
            }
        }
        if in_phrases {
            let phrases = self.resolved.groups.iter().filter(|group| group.mode == MatchMode::SideBySide);
            let lines = Lines::new([before, line, after]);
            let runs = phrases.flat_map(|group| lines.runs(group)).flatten();
            let here = runs.filter(|at| lines.words[*at].0 == 1);
            marks.extend(here.map(|at| lines.words[at].2.bytes.clone()));
        }
        marks.sort_by_key(|mark| (mark.start, std::cmp::Reverse(mark.end)));
        marks.dedup_by(|next, last| next.start < last.end);
        marks
    }

    /// How well a line matches the query, used to choose the lines to show. A phrase has its full weight on the line
    /// where it starts; scattered words of it count very little.
    pub fn weight(&self, line: &str, after: &str) -> usize {
        let (mut words, mut word) = (Words::new(line), String::new());
        let mut found = 0;
        while words.next(&mut word).is_some() {
            found |= self.forms.get(word.as_str()).copied().unwrap_or_default();
        }
        let of = |(at, group): (usize, &Group)| match group.mode {
            _ if found & 1 << at == 0 => 0,
            MatchMode::Any => WORD,
            MatchMode::SideBySide => {
                let lines = Lines::new([line, after, ""]);
                let begins = lines.runs(group).iter().any(|run| lines.words[run[0]].0 == 0);
                if begins { PHRASE } else { 1 }
            }
        };
        self.resolved.groups.iter().take(MOST_GROUPS).enumerate().map(of).sum()
    }

    /// Where in a line the query is matched best: the mark with the most different words of the query within `reach` bytes
    /// from a little before it.
    pub fn densest(&self, line: &str, marks: &[Range<usize>], reach: usize) -> Option<usize> {
        let (mut word, any) = (String::new(), self.groups(&MatchMode::Any));
        let groups: Vec<u64> = marks
            .iter()
            .map(|mark| {
                fold(&line[mark.clone()], &mut word);
                // A mark of a phrase is one that no word group has.
                self.forms
                    .get(word.as_str())
                    .map_or(1, |groups| if groups & any == 0 { 1 } else { groups & any })
            })
            .collect();
        let within = |from: usize| {
            let end = marks[from].start + reach;
            let seen = (from..marks.len()).take_while(|at| marks[*at].end <= end);
            seen.fold(0, |all, at| all | groups[at]).count_ones()
        };
        (0..marks.len()).max_by_key(|at| (within(*at), std::cmp::Reverse(*at)))
    }
}

/// The words of three lines, each with the index of its line.
struct Lines {
    words: Vec<(usize, String, Place)>,
}

impl Lines {
    fn new(lines: [&str; 3]) -> Self {
        let mut all = Vec::new();
        for (at, line) in lines.into_iter().enumerate() {
            let (mut words, mut word) = (Words::new(line), String::new());
            while let Some(place) = words.next(&mut word) {
                all.push((at, word.clone(), place));
            }
        }
        Self { words: all }
    }

    /// The occurrences of a group's phrase, each as a list of word indices.
    fn runs(&self, group: &Group) -> Vec<Vec<usize>> {
        // A whole identifier has the position of its first part, so only the parts are compared.
        let plain: Vec<usize> =
            (0..self.words.len()).filter(|at| self.words[*at].2.sort != Sort::Whole).collect();
        let fits =
            |run: &&[usize]| run.iter().zip(&group.forms).all(|(at, (form, _))| self.words[*at].1 == *form);
        plain.windows(group.forms.len().max(1)).filter(fits).map(<[usize]>::to_vec).collect()
    }
}

impl View {
    /// Resolves a query to words of the library. If allowed, words that occur in no allowed document are corrected to
    /// words that do.
    pub(super) fn resolve(
        &self,
        question: &Question,
        correcting: Option<Correcting<'_>>,
        allowed: &[Bits],
    ) -> Result<Resolved> {
        let mut resolved = Resolved::default();
        let is_relaxed = question.phrases_are_wishes;
        let elements = self.most_telling(question, allowed)?;
        resolved.left_out = question.elements.len() - elements.len();
        for element in elements {
            let group = match &element.asked {
                Asked::Word(_) => self.word(element, correcting, allowed, &mut resolved.corrections)?,
                Asked::Whole(word) => Group { counted: false, ..any(vec![(word.clone(), 1.0)]) },
                Asked::Quoted(words) => {
                    Group { required: !is_relaxed, counted: !is_relaxed, ..side_by_side(words) }
                }
                Asked::Run(words) => side_by_side(words),
                Asked::Together(words) => Group { counted: false, ..side_by_side(words) },
                Asked::Prefix(prefix) => {
                    let forms = self.prefixed(prefix, allowed)?;
                    if forms.len() == PREFIXED {
                        resolved.cut_prefix = Some(prefix.clone());
                    }
                    any(forms)
                }
            };
            let is_plain = |word: &String| word.bytes().all(|byte| byte.is_ascii_alphabetic());
            let share = match &element.asked {
                Asked::Together(words) if words.iter().all(is_plain) => JOINED_PLAINLY,
                _ => 1.0,
            };
            resolved.groups.push(Group { weight: share * said(element.times), ..group });
        }
        Ok(resolved)
    }

    /// What is searched of a query: everything, or of a long one the phrases in quotes and the rarest words, in their order.
    /// Words that no document has come last: they find nothing unless they are corrected.
    fn most_telling<'q>(&self, question: &'q Question, allowed: &[Bits]) -> Result<Vec<&'q Element>> {
        let elements = &question.elements;
        if elements.len() <= MOST_GROUPS {
            return Ok(elements.iter().collect());
        }
        let mut ranked = Vec::with_capacity(elements.len());
        for (at, element) in elements.iter().enumerate() {
            let found = match &element.asked {
                Asked::Quoted(_) => 0,
                Asked::Word(word) | Asked::Whole(word) | Asked::Prefix(word) => {
                    self.frequency(word, allowed)?
                }
                Asked::Run(words) | Asked::Together(words) => {
                    let each = words.iter().map(|word| self.frequency(word, allowed));
                    each.collect::<Result<Vec<u64>>>()?.into_iter().min().unwrap_or_default()
                }
            };
            let is_absent = found == 0 && !matches!(element.asked, Asked::Quoted(_));
            ranked.push((is_absent, found, at));
        }
        ranked.sort_unstable();
        let mut chosen: Vec<usize> = ranked.into_iter().take(MOST_GROUPS).map(|(_, _, at)| at).collect();
        chosen.sort_unstable();
        Ok(chosen.into_iter().map(|at| &elements[at]).collect())
    }

    /// The number of allowed passages that have a word.
    fn frequency(&self, word: &str, allowed: &[Bits]) -> Result<u64> {
        let mut found = 0;
        for (placed, allowed) in self.segments.iter().zip(allowed) {
            let segment = &placed.segment;
            let words = segment.body()?;
            let Some(info) = words.terms().get(word.as_bytes())? else { continue };
            if allowed.count() == segment.documents() {
                found += u64::from(info.doc_freq);
                continue;
            }
            let option = tantivy::schema::IndexRecordOption::Basic;
            let mut postings = words.read_block_postings_from_terminfo(&info, option)?;
            while !postings.docs().is_empty() {
                let is_allowed = |passage: &&u32| allowed.has(segment.document_of(**passage as usize));
                found += postings.docs().iter().filter(is_allowed).count() as u64;
                postings.advance();
            }
        }
        Ok(found)
    }

    fn word(
        &self,
        element: &Element,
        correcting: Option<Correcting<'_>>,
        allowed: &[Bits],
        corrections: &mut Vec<Correction>,
    ) -> Result<Group> {
        let Asked::Word(word) = &element.asked else { return Ok(any(Vec::new())) };
        let forms = self.forms(word);
        if self.stands_anywhere(&forms, allowed)? {
            return Ok(any(forms.into_iter().map(|form| (form, 1.0)).collect()));
        }
        let Some(correcting) = correcting.filter(|_| !element.is_exact) else {
            return Ok(any(vec![(word.clone(), 1.0)]));
        };
        let is_word = correcting.words.is_word(word);
        let mut near = self.near(word, correcting.similarity, allowed)?;
        if is_word {
            // A word of the language that the library does not have: only another word for the same will do.
            near.retain(|(other, _)| correcting.words.alike(word, other) >= SAME_MEANING);
        }
        if let Some(((meant, _), others)) = near.split_first() {
            let also = others.iter().map(|(other, _)| other.clone()).collect();
            let is_sure = !is_word && meant.chars().next() == word.chars().next();
            corrections.push(Correction { asked: word.clone(), meant: meant.clone(), also, is_sure });
        }
        let mut weighted: Vec<(String, f32)> = Vec::new();
        for (form, weight) in near {
            for form in self.forms(&form) {
                if !weighted.iter().any(|(known, _)| *known == form) {
                    weighted.push((form, weight));
                }
            }
        }
        Ok(any(weighted))
    }

    /// The word itself and all words of the library with the same stem, sorted.
    fn forms(&self, word: &str) -> Vec<String> {
        let stem = stem(word);
        let mut forms = vec![word.to_owned()];
        if stem != word {
            // The stem counts as a form only if it is its own stem.
            if crate::text::stem(&stem) == stem {
                forms.push(stem.to_string());
            }
        }
        for placed in &self.segments {
            placed.segment.stems.forms(&stem, |form| {
                if !forms.iter().any(|known| known == form) {
                    forms.push(form.to_owned());
                }
            });
        }
        forms.sort();
        forms
    }

    fn stands_anywhere(&self, forms: &[String], allowed: &[Bits]) -> Result<bool> {
        for (placed, allowed) in self.segments.iter().zip(allowed) {
            for form in forms {
                if stands(&placed.segment, form, allowed)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The words of allowed documents that begin so, as many as are searched.
    fn prefixed(&self, prefix: &str, allowed: &[Bits]) -> Result<Vec<(String, f32)>> {
        let mut found = BTreeMap::new();
        for (placed, allowed) in self.segments.iter().zip(allowed) {
            let segment = &placed.segment;
            let is_open = allowed.count() == segment.documents();
            for inverted in [segment.body()?, segment.name()?] {
                let mut words = inverted.terms().range().ge(prefix.as_bytes()).into_stream()?;
                while words.advance() && words.key().starts_with(prefix.as_bytes()) && found.len() < PREFIXED
                {
                    if let Ok(word) = std::str::from_utf8(words.key())
                        && (is_open || stands(segment, word, allowed)?)
                    {
                        found.insert(word.to_owned(), 1.0);
                    }
                }
            }
        }
        Ok(found.into_iter().collect())
    }

    /// Likely corrections of a word that occurs nowhere, most likely first, each with its weight. Two edits are tried
    /// only if no word is one edit away.
    fn near(&self, word: &str, similarity: f32, allowed: &[Bits]) -> Result<Vec<(String, f32)>> {
        let length = word.chars().count();
        // The other word may be longer by as many letters as there are edits.
        let reaches = |edits: &usize| 1.0 - *edits as f32 / (length + edits) as f32 >= similarity - 1e-6;
        for edits in (1..=MOST_EDITS).filter(|edits| length >= 3 && reaches(edits)) {
            let near = self.likely(word, self.within(word, edits)?, similarity, allowed)?;
            if !near.is_empty() {
                return Ok(near);
            }
        }
        Ok(Vec::new())
    }

    /// Words within the given number of edits, each with the number of passages that contain it.
    fn within(&self, word: &str, edits: usize) -> Result<BTreeMap<String, u32>> {
        let mut found: BTreeMap<String, u32> = BTreeMap::new();
        let term = Term::from_field_text(tantivy::schema::Field::from_field_id(0), word);
        // Making it takes longer than asking a small segment, so all of them share it.
        let automaton = FuzzyTermQuery::new(term, edits as u8, true).automaton()?;
        for placed in &self.segments {
            for inverted in [placed.segment.body()?, placed.segment.name()?] {
                let mut words = inverted.terms().search(&automaton).into_stream()?;
                while words.advance() {
                    let frequency = words.value().doc_freq;
                    if let Ok(word) = std::str::from_utf8(words.key()) {
                        *found.entry(word.to_owned()).or_default() += frequency;
                    }
                }
            }
        }
        Ok(found)
    }

    /// The most likely of these words that occur in allowed documents, with their weights.
    fn likely(
        &self,
        word: &str,
        found: BTreeMap<String, u32>,
        similarity: f32,
        allowed: &[Bits],
    ) -> Result<Vec<(String, f32)>> {
        let length = word.chars().count();
        let mut likely: Vec<(usize, bool, std::cmp::Reverse<u32>, String)> = found
            .into_iter()
            .map(|(other, frequency)| {
                let distance = distance(word, &other);
                (distance, other.chars().next() != word.chars().next(), std::cmp::Reverse(frequency), other)
            })
            .filter(|(distance, _, _, other)| {
                let longest = length.max(other.chars().count());
                1.0 - *distance as f32 / longest as f32 >= similarity - 1e-6
            })
            .collect();
        likely.sort();
        let mut kept = Vec::new();
        for (distance, other_start, _, other) in likely {
            if kept.len() >= CORRECTIONS {
                break;
            }
            if self.stands_anywhere(std::slice::from_ref(&other), allowed)? {
                // The first letter is rarely mistyped.
                let weight = if other_start { OTHER_START } else { 1.0 };
                kept.push((other, weight * 0.9_f32.powi(distance as i32)));
            }
        }
        Ok(kept)
    }
}

/// The weight of a word that is said so often.
fn said(times: u32) -> f32 {
    let times = times as f32;
    (SATURATION + 1.0) * times / (SATURATION + times)
}

fn any(forms: Vec<(String, f32)>) -> Group {
    Group { forms, mode: MatchMode::Any, required: false, counted: true, weight: 1.0 }
}

fn side_by_side(words: &[String]) -> Group {
    let forms = words.iter().map(|word| (word.clone(), 1.0)).collect();
    Group { forms, mode: MatchMode::SideBySide, required: false, counted: true, weight: 1.0 }
}

/// Whether an allowed document has the word in its text or its name.
fn stands(segment: &Segment, word: &str, allowed: &Bits) -> Result<bool> {
    for inverted in [segment.body()?, segment.name()?] {
        let Some(info) = inverted.terms().get(word.as_bytes())? else { continue };
        let option = tantivy::schema::IndexRecordOption::Basic;
        let mut postings = inverted.read_block_postings_from_terminfo(&info, option)?;
        while !postings.docs().is_empty() {
            if postings.docs().iter().any(|passage| allowed.has(segment.document_of(*passage as usize))) {
                return Ok(true);
            }
            postings.advance();
        }
    }
    Ok(false)
}

/// A word as it is stored in the index.
pub fn folded(word: &str) -> String {
    let mut output = String::new();
    fold(word, &mut output);
    output
}
