//! The deep model agrees with the reference on every kernel, and holds for any text.

use proptest::prelude::*;
use serde::Deserialize;
use shelf_base::Digest;

use super::*;
use crate::{Tokens, tokenize};

/// How far a value may be from the reference's.
const TOLERANCE: f64 = 2e-4;

#[derive(Deserialize)]
struct Golden {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    text: String,
    ids: Vec<u16>,
    first8: [f64; 8],
    sum: f64,
    dot_ramp: f64,
}

fn golden() -> Vec<Case> {
    let golden: Golden = serde_json::from_str(include_str!("../../model/deep384.golden.json")).unwrap();
    assert!(golden.cases.len() >= 20);
    golden.cases
}

fn available() -> Vec<Kernel> {
    Kernel::ALL.into_iter().filter(|kernel| kernel.is_available()).collect()
}

fn one(deep: &Deep, ids: &[u16]) -> [f32; DIMENSIONS] {
    deep.encode_marked(&[ids], &mut Scratch::default())[0]
}

fn distance(left: &[f32], right: &[f32]) -> f32 {
    left.iter().zip(right).map(|(left, right)| (left - right).abs()).fold(0.0, f32::max)
}

/// Ids that are spread over the vocabulary.
fn some_ids(count: usize) -> Vec<u16> {
    (0..count as u32).map(|number| (1_000 + number * 7_919 % 28_000) as u16).collect()
}

#[test]
fn the_weights_are_those_of_the_model_card() {
    let digest = Digest::of(weights::file()).to_string();
    assert_eq!(digest, "2554fb36bda143c9fa169e1b7e67333daca8ba9ee50fcbf3930eeb6928396736");
    assert!(include_str!("../../model/DEEP_CARD.md").contains(&digest));
}

#[test]
fn every_kernel_agrees_with_the_reference() {
    for kernel in available() {
        let deep = Deep::with_kernel(kernel);
        assert_eq!(deep.kernel(), kernel);
        for Case { text, ids, first8, sum, dot_ramp } in golden() {
            let vector = one(&deep, &ids).map(f64::from);
            let ramp: f64 = vector.iter().enumerate().map(|(at, value)| value * at as f64 / 384.0).sum();
            let found = vector[..8].iter().copied().chain([vector.iter().sum(), ramp]);
            for (found, expected) in found.zip(first8.into_iter().chain([sum, dot_ramp])) {
                assert!((found - expected).abs() < TOLERANCE, "{kernel:?}: {text}: {found} {expected}");
            }
        }
    }
}

/// The reference's tokenizer turns the names of special tokens into these tokens. Here they are text like any other, as
/// in the table's tokenizer: what a document says must not pass for the end of a text.
#[test]
fn tokens_agree_with_the_reference_except_for_special_names() {
    let special = "[CLS] [SEP] [MASK] brackets";
    let mut different = Vec::new();
    for Case { text, ids, .. } in golden() {
        let mut tokens = Tokens::default();
        tokenize(&text, &mut tokens);
        if tokens.ids != ids {
            different.push((text, tokens.ids));
        }
    }
    let ours = vec![1031, 18856, 2015, 1033, 1031, 19802, 1033, 1031, 7308, 1033, 19719];
    assert_eq!(different, [(special.to_owned(), ours)]);
}

/// Lengths around every size of a tile, of a panel and of a text.
#[test]
fn kernels_agree_at_every_length() {
    let portable = Deep::with_kernel(Kernel::Portable);
    for length in (1..40).chain([62, 63, 126, 253, 254, 255, 300]) {
        let ids = some_ids(length);
        let expected = one(&portable, &ids);
        for kernel in available() {
            let found = one(&Deep::with_kernel(kernel), &ids);
            assert!(distance(&found, &expected) < 1e-5, "{kernel:?} at {length}");
        }
    }
}

#[test]
fn a_text_without_tokens_has_a_vector_of_zeros() {
    let deep = Deep::new();
    let vectors = deep.encode(&["", "one text", " \n\t", "\u{200b}"]);
    assert_eq!(vectors.len(), 4);
    for empty in [0, 2, 3] {
        assert_eq!(vectors[empty], [0.0; DIMENSIONS]);
    }
    assert_eq!(vectors[1], deep.encode(&["one text"])[0]);
    assert!(deep.encode(&[]).is_empty());
    // Unlike in the table, an unknown word counts.
    assert_ne!(deep.encode(&["🦀"])[0], [0.0; DIMENSIONS]);
}

#[test]
fn a_long_text_is_cut_after_254_tokens() {
    let deep = Deep::new();
    let words = |count: usize| "word ".repeat(count);
    let [full, longer, huge] = [words(254), words(255), words(1_000_000)];
    let shorter = words(253);
    let vectors = deep.encode(&[&full, &longer, &huge, &shorter]);
    assert_eq!(vectors[0], vectors[1]);
    assert_eq!(vectors[0], vectors[2]);
    assert_ne!(vectors[0], vectors[3]);
    assert_eq!(vectors[0], deep.encode_tokens(&[&[2_773; 400]])[0]);
    // Without spaces, and with words of several tokens across the end.
    let ideographs = "語".repeat(1_000_000);
    assert_eq!(deep.encode(&[&ideographs])[0], deep.encode(&[&"語".repeat(254)])[0]);
    let cut = deep.encode(&[&"antidisestablishmentarianism ".repeat(300)])[0];
    let mut tokens = Tokens::default();
    tokenize(&"antidisestablishmentarianism ".repeat(300), &mut tokens);
    assert_eq!(cut, deep.encode_tokens(&[&tokens.ids[..254]])[0]);
}

#[test]
fn ids_without_a_row_are_unknown_words() {
    let deep = Deep::new();
    let vectors = deep.encode_tokens(&[&[2_129, u16::MAX, 30_522], &[2_129, 100, 100]]);
    assert_eq!(vectors[0], vectors[1]);
}

#[test]
fn threads_share_the_weights_and_survive_their_release() {
    let deep = Deep::new();
    let expected = deep.encode(&["a library of documents"]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    assert_eq!(deep.encode(&["a library of documents"]), expected);
                    deep.release();
                }
            });
        }
    });
    deep.release();
    assert!(deep.weights.lock().is_none());
}

#[test]
fn the_weights_are_unpacked_late_and_stay_small() {
    let deep = Deep::new();
    deep.encode(&[""]);
    assert!(deep.weights.lock().is_none(), "an empty text needs no weights");
    deep.encode(&["one text"]);
    let weights = deep.weights();
    let layers = weights.layers.iter().flat_map(|layer| {
        [&layer.project, &layer.merge, &layer.expand, &layer.contract].map(|linear| linear.weights.len())
    });
    assert_eq!(layers.sum::<usize>(), 4_718_592);
}

#[test]
fn embeds_in_order_until_cancelled() {
    let deep = Deep::new();
    let call = CallContext::new();
    let texts: Vec<String> = (0..300).map(|number| format!("text number {number}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vectors = deep.embed(&texts, &call).unwrap();
    assert_eq!(vectors.len(), texts.len());
    assert_eq!(vectors[299], deep.encode(&texts[299..])[0]);
    assert_eq!((deep.model(), deep.dimensions()), (DEEP, Some(DIMENSIONS)));
    call.cancel();
    assert!(deep.embed(&texts, &call).is_err());
}

#[test]
fn its_space_is_the_tables() {
    let deep = Deep::new();
    let cosine = |left: &[f32], right: &[f32]| -> f32 { left.iter().zip(right).map(|(l, r)| l * r).sum() };
    let question = deep.encode(&["How do I reset my password?"])[0];
    let near = crate::embed_text("Changing a forgotten login credential");
    let far = crate::embed_text("The mitochondria is the powerhouse of the cell.");
    assert!(cosine(&question, &near) > cosine(&question, &far) + 0.2);
    // Order matters, which it does not in the table.
    let [left, right] = ["dog bites man", "man bites dog"].map(|text| deep.encode(&[text])[0]);
    assert!(distance(&left, &right) > 1e-3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_text_has_a_vector_of_length_one_or_zero(text in "\\PC{0,200}|(.|\\s){0,60}|[\u{0}-\u{10ffff}]{0,80}") {
        let vector = Deep::new().encode(&[&text])[0];
        let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        let mut tokens = Tokens::default();
        tokenize(&text, &mut tokens);
        let expected = if tokens.ids.is_empty() { 0.0 } else { 1.0 };
        prop_assert!((length - expected).abs() < 1e-5, "{length}");
    }

    #[test]
    fn the_first_tokens_are_those_of_the_whole_text(text in "(\\PC|\\s|[a-z ]){0,80}", count in 0_usize..20) {
        let (mut first, mut whole) = (Tokens::default(), Tokens::default());
        tokenize_first(&text, count, &mut first);
        tokenize(&text, &mut whole);
        let count = count.min(whole.ids.len());
        prop_assert!(first.ids.len() >= count);
        prop_assert_eq!(&first.ids[..count], &whole.ids[..count]);
    }
}

proptest! {
    // Few and short, because the portable kernel takes its time.
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn a_batch_gives_what_single_texts_give(lengths in prop::collection::vec(0_usize..120, 1..7)) {
        let texts: Vec<Vec<u16>> = lengths.iter().map(|length| some_ids(*length)).collect();
        let texts: Vec<&[u16]> = texts.iter().map(Vec::as_slice).collect();
        for kernel in available() {
            let deep = Deep::with_kernel(kernel);
            for (text, vector) in texts.iter().zip(deep.encode_tokens(&texts)) {
                prop_assert!(distance(&vector, &deep.encode_tokens(&[text])[0]) < 1e-5);
            }
        }
    }
}

#[test]
fn every_kernel_ranks_alike() {
    let (subjects, places) = (
        [
            "a doctor",
            "the baker",
            "an old sailor",
            "my neighbour",
            "the committee",
            "a violin player",
            "two thieves",
        ],
        [
            "a harbour",
            "the hospital",
            "a concert hall",
            "the mountains",
            "an office",
            "the kitchen",
            "a court",
        ],
    );
    let passages: Vec<String> = (0..49)
        .map(|at| {
            format!("This is a report of what {} did in {} last year.", subjects[at % 7], places[at / 7])
        })
        .collect();
    let questions: Vec<String> = subjects
        .iter()
        .zip(places.iter().rev())
        .flat_map(|(subject, place)| [format!("what did {subject} do?"), format!("who was in {place}?")])
        .collect();
    let first_ten = |kernel: Kernel| -> Vec<usize> {
        let deep = Deep::with_kernel(kernel);
        let encode = |texts: &[String]| deep.encode(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        let passages = encode(&passages);
        let ranked = encode(&questions).into_iter().flat_map(|question| {
            let cosine = |passage: &[f32; DIMENSIONS]| -> f32 {
                question.iter().zip(passage).map(|(one, other)| one * other).sum()
            };
            let mut order: Vec<usize> = (0..passages.len()).collect();
            order.sort_by(|one, other| cosine(&passages[*other]).total_cmp(&cosine(&passages[*one])));
            order.into_iter().take(10).collect::<Vec<_>>()
        });
        ranked.collect()
    };
    let portable = first_ten(Kernel::Portable);
    for kernel in available() {
        let same = first_ten(kernel).iter().zip(&portable).filter(|(one, other)| one == other).count();
        let share = same as f64 / portable.len() as f64;
        assert!(share >= 0.999, "{kernel:?}: {:.2} % of the first ten are in the same place", 100.0 * share);
    }
}

#[test]
fn a_long_text_is_embedded_in_parts_of_equal_length() {
    let deep = Deep::new();
    let call = CallContext::new();
    let (first, second) = ("the river bends south ".repeat(50), "a lamp burns in the attic ".repeat(30));
    let whole = format!("{first}{second}");
    let mut tokens = Tokens::default();
    tokenize(&whole, &mut tokens);
    assert!(tokens.ids.len() > LONGEST && tokens.ids.len() <= 2 * LONGEST);
    let (one, other) = tokens.ids.split_at(tokens.ids.len().div_ceil(2));
    let halves = deep.encode_tokens(&[one, other]);
    let expected = mean(halves.into_iter());
    let found = deep.embed(&[&whole, "short"], &call).unwrap();
    assert!(distance(&found[0], &expected) < 1e-5);
    assert_eq!(found[1], deep.encode(&["short"])[0].to_vec());
    let length: f32 = found[0].iter().map(|value| value * value).sum();
    assert!((length - 1.0).abs() < 1e-4);
}
