//! Break positions that do not depend on what came before: lines, paragraphs and sentences.
//!
//! All functions examine the bytes around one position, or search backwards through one window, so that splitting is
//! linear in the length of the text, however long its lines are.

/// Sentence ends that need no space after them.
const WIDE_ENDS: [&str; 3] = ["。", "！", "？"];

/// Closing quotes and brackets that may follow a sentence end in [`WIDE_ENDS`].
const WIDE_CLOSERS: [&str; 5] = ["」", "』", "）", "”", "’"];

/// Maximum number of closing quotes and brackets between the end of a sentence and the space after it.
const MOST_CLOSERS: usize = 3;

/// Whether a line begins at `at` or, in prose, a sentence ends there.
pub(super) fn is_break(bytes: &[u8], at: usize, prose: bool) -> bool {
    match at.checked_sub(1).and_then(|before| bytes.get(before)) {
        None => false,
        Some(b'\n') => true,
        Some(last) => prose && ends_sentence(bytes, at, *last),
    }
}

fn ends_sentence(bytes: &[u8], at: usize, last: u8) -> bool {
    let (before, after) = bytes.split_at(at);
    if last >= 128 && ends_wide(before) {
        return !starts_with_any(after, &WIDE_CLOSERS);
    }
    if !after.first().is_none_or(u8::is_ascii_whitespace) {
        return false;
    }
    let closers = before.iter().rev().take(MOST_CLOSERS).take_while(|byte| b"\"')]*_".contains(byte)).count();
    matches!(before[..before.len() - closers].last(), Some(b'.' | b'!' | b'?'))
}

fn ends_wide(before: &[u8]) -> bool {
    let closer = WIDE_CLOSERS.iter().find_map(|closer| before.strip_suffix(closer.as_bytes()));
    let sentence = closer.unwrap_or(before);
    WIDE_ENDS.iter().any(|end| sentence.ends_with(end.as_bytes()))
}

fn starts_with_any(bytes: &[u8], any: &[&str]) -> bool {
    any.iter().any(|each| bytes.starts_with(each.as_bytes()))
}

/// The last line or sentence break in `(after, up_to]`.
pub(super) fn last_break(bytes: &[u8], after: usize, up_to: usize, prose: bool) -> Option<usize> {
    (after + 1..=up_to).rev().find(|at| is_break(bytes, *at, prose))
}

/// The last position in `(after, up_to]` that follows whitespace; used to keep words whole if there is no better break.
pub(super) fn last_space(bytes: &[u8], after: usize, up_to: usize) -> Option<usize> {
    let found = bytes.get(after..up_to)?.iter().rposition(u8::is_ascii_whitespace)?;
    Some(after + found + 1)
}

/// The starts of lines in `(after, up_to]` that follow a blank line, last first.
pub(super) fn paragraphs(bytes: &[u8], after: usize, up_to: usize) -> impl Iterator<Item = usize> {
    let mut high = up_to;
    let line_starts = std::iter::from_fn(move || {
        let newline = after + bytes.get(after..high)?.iter().rposition(|byte| *byte == b'\n')?;
        high = newline;
        Some(newline + 1)
    });
    line_starts.filter(move |start| *start > after && follows_blank(bytes, *start))
}

fn follows_blank(bytes: &[u8], start: usize) -> bool {
    let above = bytes[..start - 1].iter().rev().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
    matches!(above, None | Some(b'\n'))
}

/// The last of the least indented paragraphs in a window of code, which is most likely a new item.
pub(super) fn last_item(bytes: &[u8], after: usize, up_to: usize) -> Option<usize> {
    let indentation = |start: &usize| {
        bytes[*start..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).take(MOST_INDENTATION).count()
    };
    // The iterator starts with the last, and the first of several minima wins.
    paragraphs(bytes, after, up_to).min_by_key(indentation)
}

/// Maximum indentation to count, so that a line of a million spaces is not counted again for every position.
const MOST_INDENTATION: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the breaks of a text; `expect` has a bar at each of them.
    fn check(expect: &str, prose: bool) {
        let text = expect.replace('|', "");
        let mut found = String::new();
        for (at, character) in text.char_indices() {
            if is_break(text.as_bytes(), at, prose) {
                found.push('|');
            }
            found.push(character);
        }
        assert_eq!(found, expect);
    }

    #[test]
    fn sentences_end_before_a_space() {
        check("One.| Two!| Is 3.14 three?| \"Four.\"| (Five.)| six", true);
        check("a.|\r\n|b.|\n|c", true);
        check("一。|二！|「三。」|四？|五", true);
        check("One. Two.\n|三。四", false);
    }

    #[test]
    fn paragraphs_follow_blank_lines() {
        let text = "a\n\nb\r\n \t\r\nc\nd\n\ne";
        let all: Vec<usize> = paragraphs(text.as_bytes(), 0, text.len()).collect();
        assert_eq!(all.iter().map(|at| &text[*at..=*at]).collect::<Vec<_>>(), ["e", "c", "b"]);
        assert_eq!(paragraphs(text.as_bytes(), 0, 3).collect::<Vec<_>>(), [3]);
        assert_eq!(paragraphs(text.as_bytes(), 3, text.len()).count(), 2);
        assert_eq!(paragraphs(b"\na", 0, 2).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn items_are_indented_least() {
        let text = "fn a() {\n\n    one\n}\n\nfn b() {\n    two\n\n    three\n}\n";
        let at = last_item(text.as_bytes(), 0, text.len()).unwrap();
        assert!(text[at..].starts_with("fn b"));
    }
}
