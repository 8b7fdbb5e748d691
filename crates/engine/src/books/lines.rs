//! Which lines of a Markdown file match a pattern. A line ends with `\n` or `\r\n`, and the pattern sees it without its
//! end; `\r` anywhere else is a character like others.

use std::fmt::Display;

use encoding_rs::{Encoding, UTF_8};
use grep_matcher::{LineTerminator, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, sinks::Lossy};

/// Bytes that a compiled pattern may take.
const PATTERN_BYTES: usize = 4 << 20;
/// What some editors put before the first line.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// A compiled pattern.
pub(super) struct Pattern {
    /// For one line without its end.
    exact: RegexMatcher,
    /// For whole files in which `\r` only stands at the end of lines.
    whole: Option<RegexMatcher>,
}

impl Pattern {
    /// Compiles a pattern; the error says what is wrong with it.
    pub(super) fn new(pattern: &str) -> Result<Self, String> {
        // The matcher wraps a pattern before it reads it, which nobody wants to see in an error.
        regex_syntax::ParserBuilder::new().utf8(false).build().parse(pattern).map_err(told)?;
        let mut builder = RegexMatcherBuilder::new();
        builder.size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
        let exact = builder.line_terminator(Some(b'\n')).build(pattern).map_err(told)?;
        let whole = builder.multi_line(true).crlf(true).build(pattern).ok();
        // One that looks for the beginning or the end of a text finds none in a file.
        let whole = whole.filter(|matcher| matcher.line_terminator().is_some());
        Ok(Self { exact, whole })
    }
}

fn told(error: impl Display) -> String {
    format!("invalid regular expression: {error}")
}

/// Finds lines, with their numbers, until it is told to stop.
pub(super) struct Lines<'a> {
    pattern: &'a Pattern,
    searcher: Searcher,
}

impl<'a> Lines<'a> {
    pub(super) fn of(pattern: &'a Pattern) -> Self {
        let searcher = SearcherBuilder::new()
            .line_number(true)
            .line_terminator(LineTerminator::crlf())
            .binary_detection(BinaryDetection::none())
            .build();
        Self { pattern, searcher }
    }

    /// Gives the matching lines of a file as they stand there, without their ends. `take` says whether it wants more.
    pub(super) fn find(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(u64, String) -> bool,
    ) -> std::io::Result<()> {
        let decoded = decoded(bytes);
        let bytes = decoded.as_deref().map_or(bytes, str::as_bytes);
        let (mark, bytes) = match bytes.strip_prefix(MARK) {
            Some(rest) => ("\u{feff}", rest),
            None => ("", bytes),
        };
        let mut found = |number: u64, line: &str| {
            let mark = if number == 1 { mark } else { "" };
            Ok(take(number, format!("{mark}{}", without_end(line))))
        };
        match &self.pattern.whole {
            Some(matcher) if !has_lone_return(bytes) => {
                self.searcher.search_slice(matcher, bytes, Lossy(found))
            }
            _ => one_by_one(&self.pattern.exact, bytes, &mut found),
        }
    }
}

/// A text in a two-byte encoding, which a pattern sees decoded.
fn decoded(bytes: &[u8]) -> Option<String> {
    let (encoding, length) = Encoding::for_bom(bytes)?;
    let rest = &bytes[length..];
    (encoding != UTF_8).then(|| encoding.decode_without_bom_handling(rest).0.into_owned())
}

/// Looks at one line after the other.
fn one_by_one(
    matcher: &RegexMatcher,
    bytes: &[u8],
    found: &mut impl FnMut(u64, &str) -> std::io::Result<bool>,
) -> std::io::Result<()> {
    for (number, line) in (1..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
        let line = line.strip_suffix(b"\n").map_or(line, |line| line.strip_suffix(b"\r").unwrap_or(line));
        let is_match = matcher.is_match(line).map_err(std::io::Error::other)?;
        if is_match && !found(number, &String::from_utf8_lossy(line))? {
            break;
        }
    }
    Ok(())
}

fn without_end(line: &str) -> &str {
    line.strip_suffix('\n').map_or(line, |line| line.strip_suffix('\r').unwrap_or(line))
}

/// Whether `\r` stands anywhere but before `\n`.
fn has_lone_return(bytes: &[u8]) -> bool {
    memchr::memchr_iter(b'\r', bytes).any(|at| bytes.get(at + 1) != Some(&b'\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, text: &str) -> Vec<(u64, String)> {
        let pattern = Pattern::new(pattern).unwrap();
        let mut found = Vec::new();
        Lines::of(&pattern)
            .find(text.as_bytes(), |number, line| {
                found.push((number, line));
                true
            })
            .unwrap();
        found
    }

    #[test]
    fn a_line_is_matched_without_its_end() {
        for text in ["abc\ndef\n\nabc def", "abc\r\ndef\r\n\r\nabc def", "abc\r\ndef\n\nabc def\r\n"] {
            for (pattern, lines) in [
                ("abc$", &[1][..]),
                ("^def$", &[2]),
                ("^$", &[3]),
                ("def$", &[2, 4]),
                ("^abc", &[1, 4]),
                (r"\Aabc\z", &[1]),
                (r"def\z", &[2, 4]),
                ("(?-m)^def$", &[2]),
                ("c.", &[4]),
                (r"c\s", &[4]),
            ] {
                let numbers: Vec<u64> = found(pattern, text).into_iter().map(|(number, _)| number).collect();
                assert_eq!(numbers, lines, "{pattern} {text:?}");
            }
        }
    }

    #[test]
    fn a_lone_return_is_a_character() {
        let text = "one\rtwo\nthree\r\nfour\r";
        assert_eq!(found("one$", text), []);
        assert_eq!(found("two$", text), [(1, "one\rtwo".into())]);
        assert_eq!(found("one.two", text), [(1, "one\rtwo".into())]);
        assert_eq!(found("three$", text), [(2, "three".into())]);
        assert_eq!(found("four\\r$", text), [(3, "four\r".into())]);
    }

    #[test]
    fn a_byte_order_mark_is_shown_and_does_not_hide_the_line() {
        assert_eq!(found("^# A$", "\u{feff}# A\nb\n"), [(1, "\u{feff}# A".into())]);
    }

    #[test]
    fn text_in_two_bytes_is_decoded() {
        let bytes: Vec<u8> = "\u{feff}one\r\ntwo\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let mut lines = Vec::new();
        let pattern = Pattern::new("^two$").unwrap();
        Lines::of(&pattern)
            .find(&bytes, |number, line| {
                lines.push((number, line));
                true
            })
            .unwrap();
        assert_eq!(lines, [(2, "two".to_owned())]);
    }

    #[test]
    fn an_error_shows_the_pattern_as_it_was_given() {
        let error = Pattern::new("a(").map(drop).unwrap_err();
        assert!(error.contains("    a(\n") && !error.contains("(?:"), "{error}");
        assert!(Pattern::new(r"a\nb").is_err(), "a line has no end in it");
    }
}
