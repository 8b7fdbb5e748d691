//! Minimal command-line parsing, so that xtask compiles without an argument parser.

use anyhow::{Result, bail};

/// The command-line arguments that have not been consumed yet.
pub struct Arguments {
    words: Vec<String>,
}

impl Arguments {
    /// All arguments after the program's name.
    pub fn from_command_line() -> Self {
        Self { words: std::env::args().skip(1).collect() }
    }

    /// Takes the first argument.
    pub fn take_word(&mut self) -> Option<String> {
        if self.words.is_empty() { None } else { Some(self.words.remove(0)) }
    }

    /// Takes `flag` from any position and returns whether it was present.
    pub fn take_flag(&mut self, flag: &str) -> bool {
        let before = self.words.len();
        self.words.retain(|word| word != flag);
        self.words.len() < before
    }

    /// Takes `option` and the word after it from any position.
    pub fn take_value(&mut self, option: &str) -> Result<Option<String>> {
        let Some(at) = self.words.iter().position(|word| word == option) else { return Ok(None) };
        if at + 1 == self.words.len() {
            bail!("`{option}` needs a value");
        }
        self.words.remove(at);
        Ok(Some(self.words.remove(at)))
    }

    /// Takes all remaining arguments; fails if one of them looks like an option.
    pub fn take_rest(self) -> Result<Vec<String>> {
        if let Some(option) = self.words.iter().find(|word| word.starts_with('-')) {
            bail!("this task has no option `{option}`; run `cargo xtask` for a list of tasks");
        }
        Ok(self.words)
    }

    /// Takes all remaining arguments, whatever they look like: another program's command line.
    pub fn take_command(self) -> Vec<String> {
        self.words
    }

    /// Fails if any argument was not consumed.
    pub fn finish(self) -> Result<()> {
        match self.words.first() {
            None => Ok(()),
            Some(word) => bail!("unexpected argument `{word}`; run `cargo xtask` for a list of tasks"),
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
    fn values_follow_their_options() {
        let mut arguments = of(&["--minutes", "5", "more"]);
        assert_eq!(arguments.take_value("--minutes").unwrap().as_deref(), Some("5"));
        assert_eq!(arguments.take_value("--minutes").unwrap(), None);
        assert!(of(&["--minutes"]).take_value("--minutes").is_err());
    }

    #[test]
    fn words_nobody_wants_are_refused() {
        assert!(of(&["extra"]).finish().is_err());
        assert!(of(&["--wrong"]).take_rest().is_err());
    }
}
