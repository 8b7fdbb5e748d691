//! Similar names for "did you mean …" messages.

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

/// At most `most` names similar to `wanted`, best first.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>, most: usize) -> Vec<String> {
    let allowed = (wanted.chars().count() / 3).clamp(1, 4);
    let mut found: Vec<(usize, &str)> = names
        .into_iter()
        .map(|name| (distance(wanted, name), name))
        .filter(|(distance, name)| *distance <= allowed || contains_part(wanted, name))
        .collect();
    found.sort();
    found.dedup();
    found.into_iter().take(most).map(|(_, name)| name.to_owned()).collect()
}

fn contains_part(wanted: &str, name: &str) -> bool {
    let wanted = wanted.to_lowercase();
    wanted.len() >= 3 && name.to_lowercase().split(['_', '-', '/', '.']).any(|part| part == wanted)
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
    }
}
