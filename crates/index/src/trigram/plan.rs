//! Translates a regular expression into the trigrams that a document must contain in order to match.
//!
//! The walk collects the exact strings that consecutive parts of the expression can match (a run) as long as there are
//! few of them; otherwise it ends the run. A document must contain one string of each run, and all trigrams of that
//! string. The result is a necessary condition, never a sufficient one: candidates are then matched against the real
//! expression.

use regex_syntax::hir::{Class, Hir, HirKind};

use super::{Trigrams, build::grams_of};
use crate::bits::Bits;

/// The maximum number of strings in a run.
const STRINGS: usize = 24;
/// The maximum length of a string in a run, in bytes.
const BYTES: usize = 64;
/// The maximum number of copies to which a counted repetition is expanded.
const COPIES: u32 = 8;
/// How deeply the expression may nest; deeper parts are ignored.
const DEPTH: usize = 64;

/// What a document must contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing in particular: every document may match.
    Anything,
    /// This trigram.
    Gram(u32),
    /// All of these.
    All(Vec<Needs>),
    /// One of these.
    One(Vec<Needs>),
}

impl Needs {
    /// The needs of a parsed expression.
    pub fn of(expression: &Hir) -> Self {
        let mut walk = Walk::default();
        let part = walk.part(expression, DEPTH);
        walk.take(part);
        walk.finish()
    }

    /// Whether every document may match.
    pub fn is_anything(&self) -> bool {
        *self == Self::Anything
    }

    /// The documents of a segment that may match.
    pub(crate) fn documents(&self, lists: &Trigrams, documents: usize) -> Bits {
        match self {
            Self::Anything => Bits::all(documents),
            Self::Gram(gram) => lists.documents(*gram),
            Self::All(all) => {
                let mut order: Vec<(u32, &Self)> =
                    all.iter().map(|needs| (needs.bound(lists), needs)).collect();
                order.sort_by_key(|(bound, _)| *bound);
                let mut bits: Option<Bits> = None;
                for (_, needs) in order {
                    let found = needs.documents(lists, documents);
                    match &mut bits {
                        None => bits = Some(found),
                        Some(bits) => bits.intersect(&found),
                    }
                    // Reading a handful of documents is faster than reading another list.
                    if bits.as_ref().is_some_and(|bits| bits.count() <= 4) {
                        break;
                    }
                }
                bits.unwrap_or_else(|| Bits::all(documents))
            }
            Self::One(any) => {
                let mut bits = Bits::none(documents);
                any.iter().for_each(|needs| bits.unite(&needs.documents(lists, documents)));
                bits
            }
        }
    }

    /// An upper bound on the number of documents that can match.
    fn bound(&self, lists: &Trigrams) -> u32 {
        match self {
            Self::Anything => u32::MAX,
            Self::Gram(gram) => lists.count(*gram),
            Self::All(all) => all.iter().map(|needs| needs.bound(lists)).min().unwrap_or(u32::MAX),
            Self::One(any) => any.iter().fold(0, |sum, needs| sum.saturating_add(needs.bound(lists))),
        }
    }

    fn all(mut parts: Vec<Self>) -> Self {
        parts.retain(|part| !part.is_anything());
        parts.dedup();
        match parts.len() {
            0 => Self::Anything,
            1 => parts.remove(0),
            _ => Self::All(parts),
        }
    }

    fn one(mut parts: Vec<Self>) -> Self {
        if parts.is_empty() || parts.iter().any(Self::is_anything) {
            return Self::Anything;
        }
        parts.dedup();
        if parts.len() == 1 { parts.remove(0) } else { Self::One(parts) }
    }

    /// The needs of a document that contains one of these strings.
    fn of_strings(strings: &[Vec<u8>]) -> Self {
        let of_string = |string: &Vec<u8>| {
            let mut grams: Vec<u32> = grams_of(string).collect();
            grams.sort_unstable();
            grams.dedup();
            Self::all(grams.into_iter().map(Self::Gram).collect())
        };
        Self::one(strings.iter().map(of_string).collect())
    }
}

/// What is known about a part of the expression.
enum Part {
    /// It matches exactly one of these strings.
    Strings(Vec<Vec<u8>>),
    /// It matches something that has these needs.
    Needs(Needs),
}

/// A walk over a sequence: the run of strings so far, and the needs of what came before.
struct Walk {
    run: Vec<Vec<u8>>,
    needs: Vec<Needs>,
}

impl Default for Walk {
    fn default() -> Self {
        Self { run: vec![Vec::new()], needs: Vec::new() }
    }
}

impl Walk {
    fn take(&mut self, part: Part) {
        match part {
            Part::Strings(strings) => {
                let longest = |strings: &[Vec<u8>]| strings.iter().map(Vec::len).max().unwrap_or(0);
                let too_many = self.run.len() * strings.len() > STRINGS;
                if too_many || longest(&self.run) + longest(&strings) > BYTES {
                    self.break_run(&strings);
                } else {
                    let join = |start: &Vec<u8>| {
                        strings.iter().map(|end| [&start[..], end].concat()).collect::<Vec<_>>()
                    };
                    self.run = self.run.iter().flat_map(join).collect();
                }
            }
            Part::Needs(needs) => {
                self.break_run(&[]);
                self.needs.push(needs);
            }
        }
    }

    /// Ends the run. If possible, the next run starts with the last two bytes of this one, so that trigrams across the
    /// boundary are not lost.
    fn break_run(&mut self, next: &[Vec<u8>]) {
        let run = std::mem::replace(&mut self.run, vec![Vec::new()]);
        self.needs.push(Needs::of_strings(&run));
        if next.is_empty() {
            return;
        }
        let mut tails: Vec<Vec<u8>> =
            run.iter().map(|run| run[run.len().saturating_sub(2)..].to_vec()).collect();
        tails.sort();
        tails.dedup();
        if tails.len() * next.len() <= STRINGS {
            let join =
                |tail: &Vec<u8>| next.iter().map(|next| [&tail[..], next].concat()).collect::<Vec<_>>();
            self.run = tails.iter().flat_map(join).collect();
        } else if next.len() <= STRINGS {
            self.run = next.to_vec();
        }
    }

    fn finish(mut self) -> Needs {
        self.break_run(&[]);
        Needs::all(self.needs)
    }

    fn part(&mut self, expression: &Hir, depth: usize) -> Part {
        if depth == 0 {
            return Part::Needs(Needs::Anything);
        }
        match expression.kind() {
            HirKind::Empty | HirKind::Look(_) => Part::Strings(vec![Vec::new()]),
            HirKind::Literal(literal) => Part::Strings(vec![literal.0.to_vec()]),
            HirKind::Class(class) => of_class(class),
            HirKind::Capture(capture) => self.part(&capture.sub, depth - 1),
            HirKind::Concat(parts) => of_sequence(parts.iter(), depth - 1),
            HirKind::Alternation(parts) => of_alternatives(parts, depth - 1),
            HirKind::Repetition(repetition) => match (repetition.min, repetition.max) {
                (0, Some(1)) => of_optional(&repetition.sub, depth - 1),
                (0, _) => Part::Needs(Needs::Anything),
                (least, most) if most == Some(least) && least <= COPIES => {
                    of_sequence(std::iter::repeat_n(&*repetition.sub, least as usize), depth - 1)
                }
                (least, _) => {
                    let copies = std::iter::repeat_n(&*repetition.sub, least.min(COPIES) as usize);
                    Part::Needs(needs_of(of_sequence(copies, depth - 1)))
                }
            },
        }
    }
}

fn of_sequence<'a>(parts: impl Iterator<Item = &'a Hir>, depth: usize) -> Part {
    let mut walk = Walk::default();
    for part in parts {
        let part = walk.part(part, depth);
        walk.take(part);
    }
    if walk.needs.is_empty() { Part::Strings(walk.run) } else { Part::Needs(walk.finish()) }
}

fn of_alternatives(parts: &[Hir], depth: usize) -> Part {
    let found: Vec<Part> = parts.iter().map(|part| Walk::default().part(part, depth)).collect();
    let strings: usize = found
        .iter()
        .map(|part| if let Part::Strings(strings) = part { strings.len() } else { STRINGS + 1 })
        .sum();
    if strings <= STRINGS {
        let all = found
            .into_iter()
            .flat_map(|part| if let Part::Strings(strings) = part { strings } else { Vec::new() });
        return Part::Strings(all.collect());
    }
    Part::Needs(Needs::one(found.into_iter().map(needs_of).collect()))
}

fn of_optional(expression: &Hir, depth: usize) -> Part {
    match Walk::default().part(expression, depth) {
        Part::Strings(mut strings) if strings.len() < STRINGS => {
            strings.push(Vec::new());
            Part::Strings(strings)
        }
        _ => Part::Needs(Needs::Anything),
    }
}

fn needs_of(part: Part) -> Needs {
    match part {
        Part::Strings(strings) => Needs::of_strings(&strings),
        Part::Needs(needs) => needs,
    }
}

/// Expands a class of few characters; the upper and lower case of an ASCII letter count as one character.
fn of_class(class: &Class) -> Part {
    let mut strings: Vec<Vec<u8>> = match class {
        Class::Unicode(class) => {
            let size: u64 =
                class.iter().map(|range| u64::from(range.end() as u32 - range.start() as u32) + 1).sum();
            if size > STRINGS as u64 {
                return Part::Needs(Needs::Anything);
            }
            let characters = class.iter().flat_map(|range| range.start()..=range.end());
            characters.map(|character| character.to_string().into_bytes()).collect()
        }
        Class::Bytes(class) => {
            let size: usize = class.iter().map(|range| usize::from(range.end() - range.start()) + 1).sum();
            if size > STRINGS {
                return Part::Needs(Needs::Anything);
            }
            class.iter().flat_map(|range| range.start()..=range.end()).map(|byte| vec![byte]).collect()
        }
    };
    strings.iter_mut().for_each(|string| string.make_ascii_lowercase());
    strings.sort();
    strings.dedup();
    if strings.is_empty() { Part::Needs(Needs::Anything) } else { Part::Strings(strings) }
}

#[cfg(test)]
mod tests {
    use tantivy::directory::OwnedBytes;

    use super::{super::TrigramsBuilder, *};

    fn needs(pattern: &str, ignore_case: bool) -> Needs {
        let parsed = regex_syntax::ParserBuilder::new()
            .case_insensitive(ignore_case)
            .utf8(false)
            .build()
            .parse(pattern);
        Needs::of(&parsed.unwrap())
    }

    fn candidates(pattern: &str, ignore_case: bool, texts: &[&str]) -> Vec<usize> {
        let mut builder = TrigramsBuilder::default();
        texts.iter().for_each(|text| builder.add(text.as_bytes()));
        let lists = Trigrams::open(OwnedBytes::new(builder.finish())).unwrap();
        needs(pattern, ignore_case).documents(&lists, texts.len()).iter().collect()
    }

    const TEXTS: [&str; 6] = [
        "hello world",
        "HELLO there",
        "the cat sat",
        "a dog",
        "K\u{212A}elvin ta\u{17F}k",
        "catastrophe dog library",
    ];

    #[test]
    fn patterns_choose_documents() {
        assert_eq!(candidates("hello", false, &TEXTS), [0, 1]);
        assert_eq!(candidates("cat.*library", false, &TEXTS), [5]);
        assert_eq!(candidates("(?:cat|dog)", false, &TEXTS), [2, 3, 5]);
        assert_eq!(candidates("wor(ld|k)?", false, &TEXTS), [0]);
        assert_eq!(candidates(r"\bsat\b", false, &TEXTS), [2]);
        assert_eq!(candidates("(?:ca){2}", false, &TEXTS), [] as [usize; 0]);
        assert_eq!(candidates("task", true, &TEXTS), [4]);
        assert_eq!(candidates("zzz", false, &TEXTS), [] as [usize; 0]);
        assert!(needs("a|b.*", false).is_anything());
        assert!(needs(r"\w+", false).is_anything());
        assert!(needs(".*", false).is_anything());
        assert!(needs("(?:abc)*", false).is_anything());
        assert!(!needs("(?:abc)+x", false).is_anything());
    }

    proptest::proptest! {
        #[test]
        fn what_matches_is_always_a_candidate(
            text in "[abcABC xyzé\n]{0,60}",
            pattern in r"[abc]{1,4}(\.\*|[abc]\+|\[ab\]|\(\?:ab\|c\)|b\?|é|\{2\}|a\{2,3\}|\\b){0,3}[abcxyz]{0,4}",
            ignore_case in proptest::bool::ANY,
        ) {
            let Ok(regex) = grep_like(&pattern, ignore_case) else { return Ok(()) };
            if regex.is_match(text.as_bytes()) {
                proptest::prop_assert_eq!(candidates(&pattern, ignore_case, &[&text]), [0]);
            }
        }

        #[test]
        fn lists_come_back_and_merge(documents in proptest::collection::vec("[ab]{0,12}|[a-z]{0,30}", 1..40)) {
            let mut builder = TrigramsBuilder::default();
            documents.iter().for_each(|text| builder.add(text.as_bytes()));
            let lists = Trigrams::open(OwnedBytes::new(builder.finish())).unwrap();
            let places: Vec<Option<u32>> = (0..documents.len()).map(|at| (at % 3 != 0).then_some((at - at / 3 - 1) as u32)).collect();
            let live = places.iter().flatten().count() as u32;
            let merged = Trigrams::open(OwnedBytes::new(Trigrams::merge(&[&lists], std::slice::from_ref(&places), live))).unwrap();
            for text in &documents {
                for gram in grams_of(text.as_bytes()) {
                    let expected: Vec<usize> = (0..documents.len())
                        .filter(|at| grams_of(documents[*at].as_bytes()).any(|other| other == gram))
                        .collect();
                    proptest::prop_assert_eq!(lists.documents(gram).iter().collect::<Vec<_>>(), expected.clone());
                    let moved: Vec<usize> = expected.iter().filter_map(|at| places[*at]).map(|at| at as usize).collect();
                    proptest::prop_assert_eq!(merged.documents(gram).iter().collect::<Vec<_>>(), moved);
                }
            }
        }
    }

    fn grep_like(pattern: &str, ignore_case: bool) -> Result<regex::bytes::Regex, regex::Error> {
        regex::bytes::RegexBuilder::new(pattern).case_insensitive(ignore_case).build()
    }
}
