//! Checks, before a file is loaded, whether the lengths of its streams refer to other streams.
//!
//! The length of a stream may be a reference to an object, which should be a number. In a malicious file it is another
//! stream, whose length refers to a third, and so on. The library follows these references recursively and starts over
//! at each stream, so a small file can take hours or exhaust the stack. Valid files have no such references. They are
//! counted in the raw bytes, where none can be hidden, since a stream is never inside another one.

use std::collections::HashSet;

/// Maximum number of lengths that refer to something other than a number. Valid files have none; a damaged one may have
/// a few.
const MOST_WRONG: usize = 1_000;
/// Maximum number of lengths that refer to an object that is not found, but may be inside an object stream.
const MOST_UNKNOWN: usize = 4_096;

/// Whether loading this file could follow references between lengths for too long.
pub(super) fn are_chained(bytes: &[u8]) -> bool {
    let objects = Objects::find(bytes);
    let (mut wrong, mut unknown) = (objects.nameless, 0_usize);
    for target in length_targets(bytes) {
        match target {
            Some(target) if objects.numbers.contains(&target) && !objects.others.contains(&target) => {}
            Some(target) if !objects.others.contains(&target) => unknown += 1,
            Some(_) | None => wrong += 1,
        }
    }
    wrong > MOST_WRONG || unknown > MOST_UNKNOWN
}

/// The objects of a file, by what they begin with.
#[derive(Default)]
struct Objects {
    numbers: HashSet<u32>,
    others: HashSet<u32>,
    /// How many objects have no readable number.
    nameless: usize,
}

impl Objects {
    fn find(bytes: &[u8]) -> Self {
        let mut objects = Self::default();
        for at in places(bytes, b'j').filter(|at| bytes[..=*at].ends_with(b"obj")) {
            let number = object_number(&bytes[..at - 2]);
            match (skip_space(&bytes[at + 1..]).first(), number) {
                (Some(b'0'..=b'9'), Some(number)) => {
                    objects.numbers.insert(number);
                }
                (Some(b'<' | b'%'), Some(number)) => {
                    objects.others.insert(number);
                }
                // A comment may separate the numbers; valid files do not have one there.
                (Some(b'<' | b'%'), None) => objects.nameless += 1,
                _ => {}
            }
        }
        objects
    }
}

/// The object number in the header, such as `12 0 `, that `before` ends with.
fn object_number(before: &[u8]) -> Option<u32> {
    let (before, _generation) = last_number(before)?;
    last_number(before).and_then(|(_, number)| number)
}

/// The number that `bytes` ends with, and the bytes before it.
fn last_number(bytes: &[u8]) -> Option<(&[u8], Option<u32>)> {
    let end = bytes.iter().rposition(|byte| !is_space(*byte))? + 1;
    // Longer runs are not object numbers, and a limit keeps a file of digits from being read again and again.
    let digits = bytes[..end].iter().rev().take(20).take_while(|byte| byte.is_ascii_digit()).count();
    let (before, digits) = bytes[..end].split_at(end - digits);
    (!digits.is_empty()).then(|| (before, number(digits)))
}

fn number(digits: &[u8]) -> Option<u32> {
    str::from_utf8(digits).ok()?.parse().ok()
}

/// The objects that the lengths of streams refer to; `None` where a comment hides the reference.
fn length_targets(bytes: &[u8]) -> impl Iterator<Item = Option<u32>> {
    places(bytes, b'/').filter_map(|at| {
        let (target, rest) = match first_number(after_length(&bytes[at + 1..])?) {
            Ok(found) => found,
            Err(rest) => return rest.starts_with(b"%").then_some(None),
        };
        match first_number(rest).map(|(_generation, rest)| skip_space(rest)) {
            Ok(rest) if rest.starts_with(b"R") => Some(Some(target)),
            Ok(rest) | Err(rest) => rest.starts_with(b"%").then_some(None),
        }
    })
}

/// The next number and the bytes after it, or the bytes that are there instead.
fn first_number(bytes: &[u8]) -> Result<(u32, &[u8]), &[u8]> {
    let bytes = skip_space(bytes);
    let digits = bytes.iter().take(20).take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = bytes.split_at(digits);
    number(digits).map(|number| (number, rest)).ok_or(bytes)
}

/// The bytes after the name `Length`, any letter of which may be written as `#` and its code.
fn after_length(mut name: &[u8]) -> Option<&[u8]> {
    for letter in b"Length" {
        name = match name {
            [first, rest @ ..] if first == letter => rest,
            [b'#', high, low, rest @ ..] if number_of_hex(*high, *low) == Some(*letter) => rest,
            _ => return None,
        };
    }
    Some(name)
}

fn number_of_hex(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    Some((digit(high)? * 16 + digit(low)?) as u8)
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0
}

fn skip_space(bytes: &[u8]) -> &[u8] {
    let space = bytes.iter().position(|byte| !is_space(*byte)).unwrap_or(bytes.len());
    &bytes[space..]
}

fn places(bytes: &[u8], wanted: u8) -> impl Iterator<Item = usize> {
    bytes.iter().enumerate().filter(move |(_, byte)| **byte == wanted).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_found_in_any_notation() {
        let found: Vec<Option<u32>> = length_targets(
            b"/Length 5 /Length 7 0 R/L#65ngth 8 0 R /Length%x\n9 0 R/Length 9 %y\r0\n R /Length1 3 0 R /Length 4 0 obj /Length",
        )
        .collect();
        assert_eq!(found, [Some(7), Some(8), None, None]);
    }

    #[test]
    fn objects_are_classified() {
        let objects =
            Objects::find(b"1 0 obj<</A 1>>endobj 22 0 obj\n5\nendobj obj 7 3 %\n0 obj << 4 0 obj%x\n<<");
        assert_eq!(objects.numbers, HashSet::from([22]));
        assert_eq!(objects.others, HashSet::from([1, 4]));
        assert_eq!(objects.nameless, 1);
    }

    #[test]
    fn only_references_to_streams_are_chains() {
        let file: String = (0..9_000)
            .map(|n| {
                format!(
                    "{} 0 obj<</Length {} 0 R>>stream endobj {} 0 obj 5 endobj ",
                    2 * n,
                    2 * n + 1,
                    2 * n + 1
                )
            })
            .collect();
        assert!(!are_chained(file.as_bytes()));
        let file: String =
            (0..2_000).map(|n| format!("{n} 0 obj<</Length {} 0 R>>stream endobj ", n + 1)).collect();
        assert!(are_chained(file.as_bytes()));
    }
}
