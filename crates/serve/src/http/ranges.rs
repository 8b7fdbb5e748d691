//! Parts of a file that a request asks for. A request for several parts at once gets the whole, as the standard allows:
//! no client of ours asks for them, and many overlapping ones are an attack.

use std::ops::Range;

/// What a `Range` header means for a file of a size.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The whole file.
    Whole,
    /// These bytes.
    Some(Range<u64>),
    /// Bytes that are not there.
    None,
}

/// Reads a `Range` header. What cannot be read is ignored.
pub(super) fn part(header: Option<&str>, size: u64) -> Part {
    let Some((first, last)) = header
        .and_then(|header| header.strip_prefix("bytes="))
        .filter(|spec| !spec.contains(','))
        .and_then(|spec| spec.trim().split_once('-'))
    else {
        return Part::Whole;
    };
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
        // What is too large for a number lies behind the end of any file.
        is_number.then(|| text.parse::<u64>().unwrap_or(u64::MAX))
    };
    let range = match (number(first), number(last), first.is_empty(), last.is_empty()) {
        (Some(first), Some(last), ..) if first <= last => first..last.saturating_add(1).min(size),
        (Some(first), None, _, true) => first..size,
        (None, Some(length), true, _) => size.saturating_sub(length)..size,
        _ => return Part::Whole,
    };
    if range.start >= size || range.is_empty() { Part::None } else { Part::Some(range) }
}

/// Whether a list of tags names this one.
pub(super) fn names(tags: &str, tag: &str) -> bool {
    let is_same = |known: &str| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag;
    tags.split(',').map(str::trim).any(is_same)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_mean_what_the_standard_says() {
        assert_eq!(part(None, 10), Part::Whole);
        assert_eq!(part(Some("bytes=0-3"), 10), Part::Some(0..4));
        assert_eq!(part(Some("bytes=4-"), 10), Part::Some(4..10));
        assert_eq!(part(Some("bytes=-3"), 10), Part::Some(7..10));
        assert_eq!(part(Some("bytes=-30"), 10), Part::Some(0..10));
        assert_eq!(part(Some("bytes=8-99"), 10), Part::Some(8..10));
        assert_eq!(part(Some("bytes=8-99999999999999999999999"), 10), Part::Some(8..10));
        for nothing in ["bytes=10-", "bytes=10-11", "bytes=-0", "bytes=99999999999999999999999-"] {
            assert_eq!(part(Some(nothing), 10), Part::None, "{nothing}");
        }
        for ignored in ["bytes=3-1", "bytes=a-b", "items=0-1", "bytes=0-1,3-4", "bytes=", "bytes=-"] {
            assert_eq!(part(Some(ignored), 10), Part::Whole, "{ignored}");
        }
        assert_eq!(part(Some("bytes=0-0"), 0), Part::None);
    }

    #[test]
    fn tags_are_compared_whole() {
        assert!(names("\"a\", \"b\"", "\"b\""));
        assert!(names("W/\"a\"", "\"a\""));
        assert!(names("*", "\"a\""));
        assert!(!names("\"ab\"", "\"a\""));
    }

    proptest! {
        #[test]
        fn a_part_lies_within_the_file(header in "bytes=[0-9]{0,21}-[0-9]{0,21}", size in 0..u64::MAX) {
            if let Part::Some(range) = part(Some(&header), size) {
                prop_assert!(range.start < range.end && range.end <= size);
            }
        }
    }
}
