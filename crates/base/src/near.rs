//! Similar names for "did you mean …" messages, and how messages repeat what a caller sent.

use std::borrow::Cow;

/// The longest name that is compared with others, in bytes. A caller may send megabytes, and comparing takes time for each
/// letter of both names.
const COMPARED_BYTES: usize = 128;

/// Edit distance (insertion, deletion, substitution, adjacent transposition) between lowercased names.
pub fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.to_lowercase().chars().collect();
    let right: Vec<char> = right.to_lowercase().chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (row, a) in left.iter().enumerate() {
        let mut line = vec![row + 1];
        for (column, b) in right.iter().enumerate() {
            let mut best = (above[column + 1] + 1).min(line[column] + 1);
            best = best.min(above[column] + usize::from(a != b));
            if row > 0 && column > 0 && *a == right[column - 1] && left[row - 1] == *b {
                best = best.min(before[column - 1] + 1);
            }
            line.push(best);
        }
        before = std::mem::replace(&mut above, line);
    }
    above[right.len()]
}

/// At most `most` names similar to `wanted`, best first; none for a text that is too long to be a name.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>, most: usize) -> Vec<String> {
    if wanted.len() > COMPARED_BYTES {
        return Vec::new();
    }
    let letters = wanted.chars().count();
    let allowed = (letters / 3).clamp(1, 4);
    let how_near = |name: &str| {
        let is_part = contains_part(wanted, name);
        if !is_part && name.chars().count().abs_diff(letters) > allowed {
            return None;
        }
        Some(distance(wanted, name)).filter(|distance| is_part || *distance <= allowed)
    };
    let mut found: Vec<(usize, &str)> =
        names.into_iter().filter_map(|name| Some((how_near(name)?, name))).collect();
    found.sort();
    found.dedup();
    found.into_iter().take(most).map(|(_, name)| name.to_owned()).collect()
}

fn contains_part(wanted: &str, name: &str) -> bool {
    let wanted = wanted.to_lowercase();
    wanted.len() >= 3 && name.to_lowercase().split(['_', '-', '/', '.']).any(|part| part == wanted)
}

/// A text as messages repeat it: of one that is longer than `most` bytes, the beginning and the end.
pub fn clipped(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let first = &text[..text.floor_char_boundary(most / 2)];
    let last = &text[text.ceil_char_boundary(text.len() - most / 2)..];
    Cow::Owned(format!("{first}…{last}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let names = ["output_directory", "overwrite", "dry_run", "create_dirs"];
        assert_eq!(nearest("overwite", names, 3), ["overwrite"]);
        assert_eq!(nearest("dryrun", names, 3), ["dry_run"]);
        assert!(nearest("zzz", names, 3).is_empty());
        assert_eq!(distance("ab", "ba"), 1);
        assert_eq!(nearest("run", names, 3), ["dry_run"]);
        assert_eq!(nearest("directory", names, 3), ["output_directory"]);
    }

    /// Comparing a megabyte with every name takes most of a minute.
    #[test]
    fn a_text_that_is_too_long_to_be_a_name_is_not_compared() {
        let begun = std::time::Instant::now();
        let long = "k".repeat(32 << 20);
        assert!(nearest(&long, ["output_directory", "overwrite", &long], 3).is_empty());
        assert!(nearest("overwrite", [long.as_str()], 3).is_empty());
        assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
    }

    #[test]
    fn a_long_text_is_repeated_in_part() {
        assert_eq!(clipped("short", 8), "short");
        assert_eq!(clipped("a long text", 6), "a l…ext");
        assert_eq!(clipped("ääää", 5), "ä…ä");
        assert_eq!(clipped(&"k".repeat(1 << 20), 100).len(), 100 + "…".len());
    }
}
