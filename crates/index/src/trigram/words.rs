//! Derives, from the literals of an expression, words that every matching text must contain.

use regex_syntax::hir::{Class, Hir, HirKind};

/// How deeply the expression is examined.
const DEPTH: usize = 64;
/// The maximum length of a needed word. Adjacent passages that do not meet at a natural boundary overlap by at least 27
/// bytes, so a string of this length is complete in at least one of them.
const WORD_BYTES: usize = 20;
/// The minimum length of a prefix that is worth looking up.
const PREFIX_BYTES: usize = 3;
/// The minimum length of a suffix or infix that is worth looking up: shorter ones occur in too many words.
const INSIDE_BYTES: usize = 4;

/// A word that every matching text contains.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Word {
    /// Exactly this word.
    Whole(String),
    /// A word with this prefix.
    Beginning(String),
    /// A word with this suffix.
    End(String),
    /// A word that contains these letters anywhere.
    Inside(String),
}

/// Words that every text matching a case-sensitive expression contains. A word that a literal delimits on both sides is
/// needed whole, one delimited on one side is needed as a prefix or suffix, and one that is not delimited may be part
/// of a longer word. Only lowercase words count, since an identifier with capitals is indexed in parts; parts begin at
/// capitals, so consecutive lowercase letters are never split. Words that are cheapest to look up come first.
pub fn needed_words(expression: &Hir) -> Vec<Word> {
    let mut words = Vec::new();
    gather(expression, false, DEPTH, &mut words);
    words.sort();
    words.dedup();
    words
}

/// `follows` is set if a letter or digit directly precedes the expression.
fn gather(expression: &Hir, follows: bool, depth: usize, words: &mut Vec<Word>) {
    match expression.kind() {
        _ if depth == 0 => {}
        HirKind::Literal(literal) => {
            parts(&literal.0, words);
            identifiers(&literal.0, follows, words);
        }
        HirKind::Capture(capture) => gather(&capture.sub, follows, depth - 1, words),
        HirKind::Repetition(repetition) if repetition.min > 0 => {
            gather(&repetition.sub, false, depth - 1, words)
        }
        HirKind::Concat(all) => {
            let mut follows = follows;
            for part in all {
                gather(part, follows, depth - 1, words);
                follows = ends_in_letter(part, depth - 1);
            }
        }
        _ => {}
    }
}

/// Words without `_`; the parts of identifiers are indexed as words too.
fn parts(literal: &[u8], words: &mut Vec<Word>) {
    let is_inside = |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
    let parts: Vec<&[u8]> = literal.split(|byte| !is_inside(byte)).collect();
    for (at, part) in parts.iter().enumerate() {
        // The first may have started before the literal, and the last may continue after it.
        let (make, least): (fn(String) -> Word, _) = match (at > 0, at + 1 < parts.len()) {
            (true, true) => (Word::Whole, 2),
            (true, false) => (Word::Beginning, PREFIX_BYTES),
            (false, true) => (Word::End, INSIDE_BYTES),
            (false, false) => (Word::Inside, INSIDE_BYTES),
        };
        let plain = part.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if plain && (least..=WORD_BYTES).contains(&part.len()) {
            words.push(make(String::from_utf8_lossy(part).into_owned()));
        }
    }
}

/// Whole identifiers with `_`. The index does not contain `_` at either end of an identifier, so an underscore in the
/// needed string must have a letter or digit on both sides.
fn identifiers(literal: &[u8], follows: bool, words: &mut Vec<Word>) {
    let is_inside = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
    let runs: Vec<&[u8]> = literal.split(|byte| !is_inside(byte)).collect();
    for (at, run) in runs.iter().enumerate() {
        let is_small = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        if !run.iter().all(|byte| is_small(byte) || *byte == b'_') {
            continue;
        }
        let (Some(first), Some(last)) = (run.iter().position(is_small), run.iter().rposition(is_small))
        else {
            continue;
        };
        let from = if at == 0 && follows { 0 } else { first };
        let ends = last + 1 == run.len() && at + 1 < runs.len();
        let letters = &run[from..=last];
        if !letters.contains(&b'_') || letters.len() < INSIDE_BYTES {
            continue;
        }
        // For long identifiers, the end is as selective as any other part.
        let end = &letters[letters.len().saturating_sub(WORD_BYTES)..];
        if end.contains(&b'_') {
            let end = String::from_utf8_lossy(end).into_owned();
            words.push(if ends { Word::End(end) } else { Word::Inside(end) });
        }
    }
}

/// Whether every match of the expression ends in an ASCII letter or digit.
fn ends_in_letter(expression: &Hir, depth: usize) -> bool {
    match expression.kind() {
        _ if depth == 0 => false,
        HirKind::Literal(literal) => literal.0.last().is_some_and(u8::is_ascii_alphanumeric),
        HirKind::Class(Class::Unicode(class)) => class.iter().all(|range| {
            let (start, end) = (range.start(), range.end());
            within(start, end, '0', '9') || within(start, end, 'a', 'z') || within(start, end, 'A', 'Z')
        }),
        HirKind::Class(Class::Bytes(class)) => class.iter().all(|range| {
            let (start, end) = (range.start(), range.end());
            within(start, end, b'0', b'9') || within(start, end, b'a', b'z') || within(start, end, b'A', b'Z')
        }),
        HirKind::Repetition(repetition) => repetition.min > 0 && ends_in_letter(&repetition.sub, depth - 1),
        HirKind::Capture(capture) => ends_in_letter(&capture.sub, depth - 1),
        HirKind::Concat(parts) => parts.last().is_some_and(|last| ends_in_letter(last, depth - 1)),
        HirKind::Alternation(parts) => parts.iter().all(|part| ends_in_letter(part, depth - 1)),
        HirKind::Empty | HirKind::Look(_) => false,
    }
}

fn within<T: PartialOrd>(start: T, end: T, least: T, most: T) -> bool {
    start >= least && end <= most
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(pattern: &str) -> Vec<Word> {
        needed_words(&regex_syntax::parse(pattern).unwrap())
    }

    fn whole(word: &str) -> Word {
        Word::Whole(word.to_owned())
    }

    fn begins(word: &str) -> Word {
        Word::Beginning(word.to_owned())
    }

    fn ends(word: &str) -> Word {
        Word::End(word.to_owned())
    }

    fn inside(word: &str) -> Word {
        Word::Inside(word.to_owned())
    }

    #[test]
    fn words_between_other_characters_are_needed() {
        assert_eq!(words(r"fn read all\("), [whole("all"), whole("read")]);
        assert_eq!(words(r"a (?:x one two y|z).* is it so"), [whole("is"), whole("it")]);
        assert_eq!(words("two words"), [begins("words")]);
        assert_eq!(words("some words"), [begins("words"), ends("some")]);
        assert_eq!(words("word"), [inside("word")]);
        assert_eq!(words(r"[a-z]+word\("), [ends("word")]);
        assert!(words("sat").is_empty() && words("Word").is_empty() && words("(?i)word").is_empty());
        assert!(words("(?:a_beta_c)?").is_empty() && words("(?i)a_beta_c").is_empty());
    }

    #[test]
    fn identifiers_are_needed_as_wholes() {
        assert_eq!(
            words("alpha_beta_gamma"),
            [whole("beta"), begins("gamma"), ends("alpha"), inside("alpha_beta_gamma")]
        );
        assert_eq!(
            words(r"fn connection_pool\("),
            [whole("connection"), whole("pool"), ends("connection_pool")]
        );
        assert_eq!(words("a_Beta_C"), []);
        // After a letter, `_` is inside the identifier; elsewhere it may be its start, which is trimmed.
        assert_eq!(words(r"[a-z]+_this\("), [whole("this"), ends("_this")]);
        assert_eq!(words(r"\w+_this\("), [whole("this")]);
        assert_eq!(words(r"_this\("), [whole("this")]);
        assert_eq!(words(r"one_two_\("), [whole("two"), inside("one_two")]);
        let long = words("aaaaaaaaaa_bbbbbbbbbb_cccccccccc");
        assert_eq!(long.last(), Some(&inside("bbbbbbbbb_cccccccccc")));
    }
}
