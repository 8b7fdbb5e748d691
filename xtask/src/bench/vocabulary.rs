//! The words of a corpus and the number of files in which each occurs; queries are generated from these.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The words of a corpus, the most frequent first.
pub struct Vocabulary {
    /// The number of files that were read.
    pub files: usize,
    words: Vec<(String, usize)>,
}

impl Vocabulary {
    /// Reads all files.
    pub fn of(files: &[(PathBuf, u64)]) -> Result<Self> {
        let mut counts: HashMap<String, usize> = HashMap::new();
        for (path, _) in files {
            count(&text(path)?, &mut counts);
        }
        let mut words: Vec<(String, usize)> = counts.into_iter().collect();
        words.sort_by(|first, second| second.1.cmp(&first.1).then_with(|| first.0.cmp(&second.0)));
        Ok(Self { files: files.len(), words })
    }

    /// The words that occur in `least` to `most` files, the most frequent first.
    pub fn between(&self, least: usize, most: usize) -> Vec<&str> {
        let start = self.words.partition_point(|(_, files)| *files > most);
        let end = self.words.partition_point(|(_, files)| *files >= least);
        self.words[start..end.max(start)].iter().map(|(word, _)| word.as_str()).collect()
    }

    /// The set of all words.
    pub fn all(&self) -> HashSet<&str> {
        self.words.iter().map(|(word, _)| word.as_str()).collect()
    }
}

/// The text of a file in the corpus.
pub fn text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Counts each word of a text once, ignoring case; a run with a digit is not a word.
fn count(text: &str, counts: &mut HashMap<String, usize>) {
    let lower = text.to_ascii_lowercase();
    let runs = lower.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words: HashSet<&str> =
        runs.filter(|run| run.len() > 1 && run.bytes().all(|byte| byte.is_ascii_lowercase())).collect();
    for word in words {
        match counts.get_mut(word) {
            Some(files) => *files += 1,
            None => {
                counts.insert(word.to_owned(), 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Vocabulary;

    #[test]
    fn words_are_found_by_the_number_of_their_files() {
        let mut counts = std::collections::HashMap::new();
        super::count("The tea_pot, the TEA and 12 r2", &mut counts);
        super::count("the pot", &mut counts);
        assert_eq!((counts["the"], counts["tea"], counts["pot"]), (2, 1, 2));
        assert_eq!(counts.len(), 4);
        let words = [("the", 9), ("pot", 4), ("tea", 4), ("cup", 1)];
        let words = words.map(|(word, files)| (word.to_owned(), files)).to_vec();
        let vocabulary = Vocabulary { files: 10, words };
        assert_eq!(vocabulary.between(2, 8), ["pot", "tea"]);
        assert_eq!(vocabulary.between(1, 1), ["cup"]);
        assert!(vocabulary.between(5, 8).is_empty());
    }
}
