//! The little command-line reading the tasks need, kept here so that xtask compiles without an argument parser.

use anyhow::{Result, bail};

/// The words of the command line that no one has taken yet.
pub struct Arguments {
    words: Vec<String>,
}

impl Arguments {
    /// Everything after the program's own name.
    pub fn from_command_line() -> Self {
        Self { words: std::env::args().skip(1).collect() }
    }

    /// Takes the first word.
    pub fn take_word(&mut self) -> Option<String> {
        if self.words.is_empty() { None } else { Some(self.words.remove(0)) }
    }

    /// Takes `flag` wherever it stands and says whether it was there.
    pub fn take_flag(&mut self, flag: &str) -> bool {
        let before = self.words.len();
        self.words.retain(|word| word != flag);
        self.words.len() < before
    }

    /// Takes all that is left; a word that looks like an option is refused.
    pub fn take_rest(self) -> Result<Vec<String>> {
        if let Some(option) = self.words.iter().find(|word| word.starts_with('-')) {
            bail!("this task has no option `{option}`; `cargo xtask` lists what there is");
        }
        Ok(self.words)
    }

    /// Refuses any word that was not taken.
    pub fn finish(self) -> Result<()> {
        match self.words.first() {
            None => Ok(()),
            Some(word) => bail!("this task does not take `{word}`; `cargo xtask` lists what there is"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Arguments;

    fn of(words: &[&str]) -> Arguments {
        Arguments { words: words.iter().map(|word| (*word).to_owned()).collect() }
    }

    #[test]
    fn flags_are_found_anywhere_and_the_rest_is_kept() {
        let mut arguments = of(&["one", "--full", "two"]);
        assert!(arguments.take_flag("--full"));
        assert!(!arguments.take_flag("--full"));
        assert_eq!(arguments.take_rest().unwrap(), ["one", "two"]);
    }

    #[test]
    fn words_nobody_wants_are_refused() {
        assert!(of(&["extra"]).finish().is_err());
        assert!(of(&["--wrong"]).take_rest().is_err());
    }
}
