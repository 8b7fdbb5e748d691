//! Query parsing. Every text is a valid query: there is no syntax to get wrong.
//!
//! Words match in any of their forms; `"several words"` in quotes must be adjacent; `word*` matches every word with
//! that prefix; an identifier matches by its parts and, with extra weight, as a whole.

use crate::text::words::{Sort, Words};

/// The maximum number of words in a query; further words are ignored.
const MOST_WORDS: usize = 64;

/// Stop words: ignored unless the query consists of nothing else.
const STOP_WORDS: [&str; 33] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no",
    "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to",
    "was", "will", "with",
];

/// One element of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A word in any of its forms.
    Word(String),
    /// A whole identifier, in addition to its parts.
    Whole(String),
    /// A required phrase.
    Quoted(Vec<String>),
    /// Adjacent characters of a script that is written without spaces.
    Run(Vec<String>),
    /// Every word with this prefix.
    Prefix(String),
}

/// A parsed query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    pub(crate) asked: Vec<Asked>,
}

impl Question {
    /// Parses a text.
    pub fn new(text: &str) -> Self {
        let mut question = Self::default();
        let mut rest = text;
        while let Some(open) = rest.find(is_quote) {
            let inside = &rest[open..];
            let width = inside.chars().next().map_or(1, char::len_utf8);
            let Some(close) = inside[width..].find(is_quote) else { break };
            question.add_words(&rest[..open]);
            question.add_quoted(&inside[width..width + close]);
            let end = width + close;
            rest = &inside[end + inside[end..].chars().next().map_or(1, char::len_utf8)..];
        }
        question.add_words(rest);
        question.drop_stop_words();
        question.asked.truncate(MOST_WORDS);
        question
    }

    /// Whether the query is empty.
    pub fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    fn add(&mut self, asked: Asked) {
        if !self.asked.contains(&asked) {
            self.asked.push(asked);
        }
    }

    fn add_words(&mut self, text: &str) {
        let (mut words, mut word) = (Words::new(text), String::new());
        let mut run: Vec<String> = Vec::new();
        let mut run_end = 0;
        while let Some(place) = words.next(&mut word) {
            if place.sort == Sort::Character && (run.is_empty() || run_end == place.bytes.start) {
                run.push(word.clone());
                run_end = place.bytes.end;
                continue;
            }
            self.add_run(&mut run);
            match place.sort {
                Sort::Character => (run, run_end) = (vec![word.clone()], place.bytes.end),
                Sort::Whole => self.add(Asked::Whole(word.clone())),
                Sort::Plain | Sort::Part if text[place.bytes.end..].starts_with('*') => {
                    self.add(Asked::Prefix(word.clone()));
                }
                Sort::Plain | Sort::Part => self.add(Asked::Word(word.clone())),
            }
        }
        self.add_run(&mut run);
    }

    fn add_run(&mut self, run: &mut Vec<String>) {
        match std::mem::take(run) {
            run if run.is_empty() => {}
            mut run if run.len() == 1 => self.add(Asked::Word(run.remove(0))),
            run => self.add(Asked::Run(run)),
        }
    }

    fn add_quoted(&mut self, text: &str) {
        let (mut words, mut word, mut side_by_side) = (Words::new(text), String::new(), Vec::new());
        while let Some(place) = words.next(&mut word) {
            if place.sort != Sort::Whole {
                side_by_side.push(word.clone());
            }
        }
        side_by_side.truncate(MOST_WORDS);
        if !side_by_side.is_empty() {
            self.add(Asked::Quoted(side_by_side));
        }
    }

    fn drop_stop_words(&mut self) {
        let stops = |asked: &Asked| matches!(asked, Asked::Word(word) if STOP_WORDS.contains(&word.as_str()));
        if self.asked.iter().any(|asked| !stops(asked)) {
            self.asked.retain(|asked| !stops(asked));
        }
    }
}

const fn is_quote(character: char) -> bool {
    matches!(character, '"' | '\u{201C}' | '\u{201D}' | '\u{201E}' | '\u{00AB}' | '\u{00BB}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(word: &str) -> Asked {
        Asked::Word(word.into())
    }

    #[test]
    fn questions_are_taken_apart() {
        let check =
            |text: &str, expected: &[Asked]| assert_eq!(Question::new(text).asked, expected, "{text}");
        check("the Database of databases", &[word("database"), word("databases")]);
        check("to be", &[word("to"), word("be")]);
        check("optim* x", &[Asked::Prefix("optim".into()), word("x")]);
        check(
            "say \"Hello World\" now",
            &[word("say"), Asked::Quoted(vec!["hello".into(), "world".into()]), word("now")],
        );
        check("\u{201C}a b\u{201D}", &[Asked::Quoted(vec!["a".into(), "b".into()])]);
        check("broken \"quote here", &[word("broken"), word("quote"), word("here")]);
        check("connectionPool", &[Asked::Whole("connectionpool".into()), word("connection"), word("pool")]);
        check("中文 字", &[Asked::Run(vec!["中".into(), "文".into()]), word("字")]);
        check("\"\" ( ) AND && *", &[word("and")]);
        check("", &[]);
    }
}
