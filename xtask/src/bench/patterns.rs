//! Search patterns chosen from the corpus itself: some that are rare, some that occur in many files.

use std::collections::HashSet;
use std::path::PathBuf;

use anyhow::{Result, bail};

use super::vocabulary::{self, Vocabulary};

/// The maximum numbers of patterns of each kind that are considered and used.
const LOOKED_AT: usize = 30;
const TAKEN: usize = 20;
/// The minimum number of patterns of each kind.
const FEWEST: usize = 5;
/// A pattern in no more files than this is rare.
const RARE: usize = 3;
/// A pattern with many hits occurs in about one of this many files: 2,000 of 55,000.
const MANY: usize = 27;
/// The minimum length of a literal in bytes: shorter ones also occur inside other words.
const LONG: usize = 7;

/// Three kinds of literals.
pub struct Patterns {
    /// In one to three files.
    pub rare: Vec<String>,
    /// In no file, although all of their parts occur.
    pub absent: Vec<String>,
    /// In about every 27th file.
    pub many: Vec<String>,
}

impl Patterns {
    /// Chooses patterns deterministically for a given corpus.
    pub fn choose(files: &[(PathBuf, u64)], vocabulary: &Vocabulary) -> Result<Self> {
        let rare = identifiers(files)?;
        let absent = joined(&rare);
        let wanted = files.len() / MANY;
        let many = near(vocabulary, wanted);
        let counts = count(files, &[&rare[..], &absent, &many].concat())?;
        let (of_rare, rest) = counts.split_at(rare.len());
        let (of_absent, of_many) = rest.split_at(absent.len());
        Ok(Self {
            rare: kept(rare, of_rare, 1, RARE)?,
            absent: kept(absent, of_absent, 0, 0)?,
            many: kept(many, of_many, wanted * 3 / 4, wanted * 3 / 2)?,
        })
    }
}

/// Identifiers of three words, each from a different file, spread evenly over the corpus.
fn identifiers(files: &[(PathBuf, u64)]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for (path, _) in files.iter().step_by((files.len() / (4 * LOOKED_AT)).max(1)) {
        let text = vocabulary::text(path)?;
        let mut runs = text.split(|letter: char| !letter.is_ascii_lowercase() && letter != '_');
        let fitting = runs.find(|run| {
            run.split('_').count() == 3 && run.split('_').all(|word| word.len() > 2) && run.len() > 2 * LONG
        });
        if let Some(run) = fitting
            && seen.insert(run.to_owned())
        {
            found.push(run.to_owned());
        }
        if found.len() == LOOKED_AT {
            break;
        }
    }
    Ok(found)
}

/// New identifiers that combine words of the others, so that no single word rules them out.
fn joined(identifiers: &[String]) -> Vec<String> {
    let parts: Vec<Vec<&str>> =
        identifiers.iter().map(|identifier| identifier.split('_').collect()).collect();
    parts
        .iter()
        .enumerate()
        .map(|(at, words)| {
            let (next, after) = (&parts[(at + 1) % parts.len()], &parts[(at + 2) % parts.len()]);
            format!("{}_{}_{}", words[0], next[1], after[2])
        })
        .collect()
}

/// Long words that occur in about `wanted` files.
fn near(vocabulary: &Vocabulary, wanted: usize) -> Vec<String> {
    let words = vocabulary.between(wanted * 9 / 10, wanted * 11 / 10);
    words.into_iter().filter(|word| word.len() >= LONG).take(LOOKED_AT).map(str::to_owned).collect()
}

/// The number of files in which each literal occurs, including inside words.
fn count(files: &[(PathBuf, u64)], literals: &[String]) -> Result<Vec<usize>> {
    let mut counts = vec![0; literals.len()];
    for (path, _) in files {
        let text = vocabulary::text(path)?;
        for (count, literal) in counts.iter_mut().zip(literals) {
            *count += usize::from(text.contains(literal.as_str()));
        }
    }
    Ok(counts)
}

/// The literals that occur in `least` to `most` files.
fn kept(literals: Vec<String>, counts: &[usize], least: usize, most: usize) -> Result<Vec<String>> {
    let fitting = literals.into_iter().zip(counts).filter(|(_, count)| (least..=most).contains(*count));
    let kept: Vec<String> = fitting.map(|(literal, _)| literal).take(TAKEN).collect();
    if kept.len() < FEWEST {
        bail!("the corpus has only {} patterns in {least} to {most} files", kept.len());
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::{joined, kept};

    #[test]
    fn joined_identifiers_take_one_word_of_each() {
        let made = joined(&["a_b_c", "d_e_f", "g_h_i"].map(str::to_owned));
        assert_eq!(made, ["a_e_i", "d_h_c", "g_b_f"]);
    }

    #[test]
    fn only_fitting_counts_are_kept() {
        let literals: Vec<String> = (0..10).map(|number| number.to_string()).collect();
        let counts: Vec<usize> = (0..10).collect();
        assert_eq!(kept(literals.clone(), &counts, 2, 6).unwrap().len(), 5);
        assert!(kept(literals, &counts, 9, 9).is_err());
    }
}
