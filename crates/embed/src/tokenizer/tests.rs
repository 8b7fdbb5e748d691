//! The tokenizer with known values and with arbitrary text.

use proptest::prelude::*;

use super::*;
use crate::vocabulary::SIZE;

fn tokens(text: &str) -> Tokens {
    let mut tokens = Tokens::default();
    tokenize(text, &mut tokens);
    tokens
}

/// Compares the ids, and the parts of the text when it is split at every start.
fn check(text: &str, ids: &[u16], parts: &[&str]) {
    let found = tokens(text);
    assert_eq!(found.ids, ids, "{text:?}");
    let mut starts: Vec<usize> = found.starts.iter().map(|&start| start as usize).collect();
    starts.dedup();
    let ends = starts.iter().copied().skip(1).chain([text.len()]);
    let cut: Vec<&str> = starts.iter().zip(ends).map(|(&start, end)| &text[start..end]).collect();
    assert_eq!(cut, parts, "{text:?}");
}

#[test]
fn words_and_punctuation() {
    check("", &[], &[]);
    check(" \t\r\n", &[], &[]);
    check("Hello, World!", &[7592, 1010, 2088, 999], &["Hello", ", ", "World", "!"]);
    check("a_b", &[1037, 1035, 1038], &["a", "_", "b"]);
    check("unaffable", &[14477, 20961, 3468], &["una", "ffa", "ble"]);
}

#[test]
fn accents_are_ignored_and_stay_with_their_letter() {
    check("naïve", &[15743], &["naïve"]);
    check("e\u{301}a", &[19413], &["e\u{301}a"]);
    check("UNA\u{308}FFABLE", &[14477, 20961, 3468], &["UNA\u{308}", "FFA", "BLE"]);
    check("\u{301}", &[], &[]);
}

#[test]
fn controls_join_words_and_unicode_spaces_separate_them() {
    check("hel\0lo", &[7592], &["hel\0lo"]);
    check("hel\u{c}lo\u{7f}", &[7592], &["hel\u{c}lo\u{7f}"]);
    check("hel\u{200b}lo", &[7592], &["hel\u{200b}lo"]);
    check("hello\u{fffd} \u{fffd}world", &[7592, 2088], &["hello\u{fffd} \u{fffd}", "world"]);
    check("hello\u{a0}world\u{2003}!", &[7592, 2088, 999], &["hello\u{a0}", "world\u{2003}", "!"]);
}

#[test]
fn unicode_punctuation_and_ideographs_are_separate_words() {
    check("“hello”", &[1523, 7592, 1524], &["“", "hello", "”"]);
    check("中文hello", &[1746, 1861, 7592], &["中", "文", "hello"]);
    check("a≠b", &[1037, 1027, 1038], &["a", "≠", "b"]);
}

#[test]
fn one_syllable_may_be_several_tokens() {
    let found = tokens("한 a");
    assert!(found.ids.len() > 2);
    assert_eq!(found.starts[..2], [0, 0]);
    assert_eq!(found.starts.last(), Some(&4));
}

#[test]
fn unknown_words() {
    check("🙂 a", &[UNKNOWN, 1037], &["🙂 ", "a"]);
    check("hello🙂 a", &[UNKNOWN, 1037], &["hello🙂 ", "a"]);
    for letter in ["a", "é"] {
        assert!(!tokens(&letter.repeat(100)).ids.contains(&UNKNOWN));
        assert_eq!(tokens(&format!(" {}", letter.repeat(101))).ids, [UNKNOWN]);
        assert_eq!(tokens(&letter.repeat(100_000)).starts, [0]);
    }
}

#[test]
fn buffers_are_refilled() {
    let mut found = tokens("hello world");
    tokenize("hello", &mut found);
    assert_eq!(found, tokens("hello"));
}

fn holds_for(text: &str) {
    let Tokens { ids, starts } = tokens(text);
    assert_eq!(ids.len(), starts.len());
    assert!(ids.iter().all(|&id| (id as usize) < SIZE));
    assert!(starts.is_sorted());
    assert!(
        starts.iter().all(|&start| (start as usize) < text.len() && text.is_char_boundary(start as usize))
    );
    if text.is_ascii() {
        assert!(starts.windows(2).all(|pair| pair[0] < pair[1]));
    }
}

proptest! {
    #[test]
    fn any_text_can_be_split_at_its_tokens(text in "\\PC*|(?s).*") {
        holds_for(&text);
    }

    #[test]
    fn awkward_characters_can_be_split_at_their_tokens(text in "[a-cA-C0\\.\u{0}\u{c}\u{a0}\u{301}éİß≠中한か🙂“\u{200b} ]*") {
        holds_for(&text);
    }

    #[test]
    fn both_ways_to_read_a_word_agree(text in "[ -~\\n]{0,60}") {
        // A zero-width space changes only the code path.
        let wide: String = text.chars().flat_map(|letter| [letter, '\u{200b}']).collect();
        prop_assert_eq!(tokens(&text).ids, tokens(&wide).ids);
    }
}

#[test]
fn unknown_words_and_long_whitespace_are_divided() {
    let divided = |text: &str| {
        let mut tokens = tokens(text);
        let whole = tokens.clone();
        tokens.divide_unknown(text);
        assert!(
            tokens.starts.is_sorted() && tokens.starts.iter().all(|at| text.is_char_boundary(*at as usize))
        );
        assert!(whole.starts.iter().all(|start| tokens.starts.contains(start)), "tokens are only added");
        (whole.ids.len(), tokens.ids.len())
    };
    assert_eq!(divided("plain words stay"), (3, 3));
    assert_eq!(divided(&"x".repeat(1_000)), (1, 250));
    assert_eq!(divided(&format!("a {} b", "x".repeat(400))), (3, 102));
    assert_eq!(divided("🙂 🙂🙂🙂🙂🙂 🙂"), (3, 4));
    assert_eq!(divided(&format!("a{}b", " ".repeat(3_200))), (2, 102));
    assert_eq!(divided(&" ".repeat(3_200)), (0, 99));
    assert_eq!(divided(&format!("z{}", "\u{301}".repeat(3_200))).1, 101);
    assert_eq!(divided(&"ภาษาไทยไม่มีช่องว่าง".repeat(20)).0, 1);
    assert!(divided(&"ภาษาไทยไม่มีช่องว่าง".repeat(20)).1 > 90);
}
