//! Tests that narrowing candidates by words never drops a document that the pattern matches.

use proptest::prelude::*;
use regex_syntax::ParserBuilder;
use shelf_base::{Digest, ids::CollectionId};

use super::{Builder, Entry, EntryPassage, Grep, Segment, Span};
use crate::{
    Needs,
    trigram::{Word, needed_words},
};

/// A segment of these texts, each cut into passages that overlap like those of real documents.
fn segment(texts: &[String], passage: usize) -> Segment {
    let mut builder = Builder::new().unwrap();
    for (number, text) in texts.iter().enumerate() {
        let mut passages = Vec::new();
        let mut start = 0;
        loop {
            let end = text.floor_char_boundary((start + passage).min(text.len()));
            let span = Span {
                start: start as u32,
                end: end as u32,
                first_line: 1,
                last_line: 1,
                first_page: 0,
                last_page: 0,
            };
            passages.push(EntryPassage {
                span,
                tokens: 1,
                lead: String::new(),
                vector: [0.0; crate::vector::DIMENSIONS],
            });
            if end == text.len() {
                break;
            }
            start = text.floor_char_boundary(end - 27);
        }
        let entry = Entry {
            number: number as i64 + 1,
            hash: Digest::of(text.as_bytes()),
            collection: CollectionId::new(Default::default()),
            path: "path",
            name: "title path",
            text,
            text_variant: None,
            is_whole: true,
            passages,
            grep: Grep::Bytes(text.as_bytes()),
            part: super::Part::Whole,
            facts: &[],
            mentions: &[],
        };
        builder.add(&entry).unwrap();
    }
    builder.finish().unwrap().in_memory().unwrap()
}

/// Documents that contain a needed word.
fn holders(segment: &Segment, word: &Word) -> Vec<usize> {
    let all = || (0..segment.documents()).collect();
    segment.holders(word).unwrap().map_or_else(all, |bits| bits.iter().collect())
}

fn words(pattern: &str) -> Vec<Word> {
    needed_words(&ParserBuilder::new().utf8(false).build().parse(pattern).unwrap())
}

fn matching(pattern: &str, texts: &[String]) -> Vec<usize> {
    let regex = regex::bytes::Regex::new(pattern).unwrap();
    (0..texts.len()).filter(|at| regex.is_match(texts[*at].as_bytes())).collect()
}

/// Checks that every document that the pattern matches contains every word that the pattern needs.
fn check(pattern: &str, texts: &[String], passage: usize) -> Result<(), TestCaseError> {
    let segment = segment(texts, passage);
    for word in words(pattern) {
        let held = holders(&segment, &word);
        for document in matching(pattern, texts) {
            prop_assert!(held.contains(&document), "{pattern:?} needs {word:?}: {:?}", texts[document]);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_matches_has_the_words(
        texts in prop::collection::vec("([abAB1_é字]{0,6}[ .(_\n]){0,12}|[ab_]{0,90}|[abB_ ]{0,160}", 1..24),
        piece in "[ab1_]{1,12}[ (]?[ab_]{0,6}",
        pattern in r"(|[ab]\+|\\w\+|\\b)",
    ) {
        let mut texts = texts;
        // The piece that is searched for occurs in at least one text, surrounded by other text.
        let inside = format!("{}{piece}{}", texts[0], texts[texts.len() - 1]);
        texts.push(inside);
        // Words that occur in most passages are not looked up, so add passages without them.
        texts.extend((0..150).map(|_| "zz".to_owned()));
        let pattern = format!("{pattern}{}", regex_syntax::escape(&piece));
        check(&pattern, &texts, 90)?;
    }
}

#[test]
fn long_words_are_not_lost() {
    let long = format!("{}needle{}", "a".repeat(100), "b".repeat(100));
    let identifier = format!("{}_needle_{}", "a".repeat(40), "b".repeat(60));
    let mut texts: Vec<String> = vec![long, identifier, "needles".into(), "a_needle_b".into()];
    texts.extend((0..20).map(|_| "pin".to_owned()));
    let segment = segment(&texts, 400);
    assert_eq!(holders(&segment, &Word::Inside("needle".into())), [0, 1, 2, 3]);
    assert_eq!(holders(&segment, &Word::Inside("a_needle".into())), [0, 1, 3]);
    assert_eq!(holders(&segment, &Word::End("dles".into())), [0, 1, 2]);
}

#[test]
fn words_leave_few_of_many_candidates() {
    let text = |number: usize| match number % 10 {
        0 => format!("the material of number_{number}_this(x)"),
        1 => "immaterial and so on".to_owned(),
        _ => "mate ater teri eria rial in pieces; this(y) and other_this".to_owned(),
    };
    let texts: Vec<String> = (0..1_000).map(text).collect();
    let segment = segment(&texts, 400);
    let candidates = |pattern: &str| {
        let parsed = ParserBuilder::new().utf8(false).build().parse(pattern).unwrap();
        let found = segment.candidates(&Needs::of(&parsed), &needed_words(&parsed)).unwrap();
        let found: Vec<usize> = found.iter().collect();
        assert!(matching(pattern, &texts).iter().all(|document| found.contains(document)));
        found.len()
    };
    assert_eq!(candidates("material"), 200);
    assert_eq!(candidates(r"[0-9]+_this\("), 1_000 / 10 + 800, "`other_this` has the same suffix");
    assert_eq!(candidates(r"number_[0-9]+_this"), 100);
}
