//! Query parsing. Every text is a valid query: there is no syntax to get wrong.
//!
//! Words match in any of their forms; `"several words"` in quotes should be adjacent; `word*` matches every word with
//! that prefix; an identifier matches by its parts and, with extra weight, as a whole, and so do words that are joined by
//! marks, such as versions, dates and file names. A word that is said twice counts more than one that is said once.

use crate::text::words::{Sort, Words};

/// The maximum number of words of a phrase; further words are ignored.
const MOST_WORDS: usize = 64;
/// The maximum number of elements that are kept of a query, which is more than the longest allowed query has words.
const MOST_ELEMENTS: usize = 4_096;
/// The marks that join words to a version, a date, a path or a name.
const JOINTS: [char; 5] = ['.', '-', ':', '/', '@'];
/// The maximum number of marks between two words that are joined: `://`.
const JOINT: usize = 3;

/// What stands after the apostrophe of a contraction.
const ENDINGS: [&str; 7] = ["s", "t", "d", "m", "re", "ve", "ll"];
/// What stands before the apostrophe of `n't`.
const NEGATED: [&str; 21] = [
    "ain", "aren", "can", "couldn", "didn", "doesn", "don", "hadn", "hasn", "haven", "isn", "mightn",
    "mustn", "needn", "shan", "shouldn", "wasn", "weren", "won", "wouldn", "mayn",
];

/// Words that carry no meaning of their own, and words that only make a question. They are ignored unless the query
/// consists of nothing else.
const STOP_WORDS: [&str; 93] = [
    "a", "about", "am", "an", "and", "any", "anybody", "anyone", "are", "as", "at", "be", "been", "being",
    "but", "by", "can", "could", "did", "do", "does", "doing", "for", "from", "had", "has", "have", "having",
    "he", "her", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "may", "me",
    "might", "my", "no", "not", "of", "on", "or", "our", "ours", "please", "shall", "she", "should", "so",
    "some", "somebody", "someone", "such", "than", "that", "the", "their", "theirs", "them", "then", "there",
    "these", "they", "this", "those", "to", "us", "very", "was", "we", "were", "what", "when", "where",
    "which", "who", "whom", "whose", "why", "will", "with", "would", "you", "your", "yours",
];

/// One element of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A word in any of its forms.
    Word(String),
    /// A whole identifier, in addition to its parts.
    Whole(String),
    /// A phrase in quotes.
    Quoted(Vec<String>),
    /// Two adjacent characters of a script that is written without spaces.
    Run(Vec<String>),
    /// Words that stand together in the query and count on their own: those that have them together are better.
    Together(Vec<String>),
    /// Every word with this prefix.
    Prefix(String),
}

/// An element of a query, and how it stands there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    pub asked: Asked,
    /// How often it is said.
    pub times: u32,
    /// It is a name, a number or a part of an identifier: it is meant as it is written.
    pub is_exact: bool,
    /// It is a piece of a contraction such as `don't`, which says nothing.
    is_piece: bool,
}

/// A parsed query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    pub(crate) elements: Vec<Element>,
    /// Documents without the phrases are hits too.
    pub(crate) phrases_are_wishes: bool,
}

impl Question {
    /// Parses a text.
    pub fn new(text: &str) -> Self {
        let mut question = Self::default();
        let mut rest = 0;
        for quoted in quotes(text) {
            question.add_words(text, rest..quoted.start);
            rest = quoted.end;
            question.add_quoted(inside(&text[quoted]));
        }
        question.add_words(text, rest..text.len());
        question.finish()
    }

    /// The same query with the words of its quotes as words: a document need not have the phrases, but those that do
    /// count more.
    pub fn relaxed(text: &str) -> Self {
        let mut question = Self { phrases_are_wishes: true, ..Self::default() };
        question.add_words(text, 0..text.len());
        for quoted in quotes(text) {
            question.add_quoted(inside(&text[quoted]));
        }
        question.finish()
    }

    /// Whether the query is empty.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// Its words, those in quotes included.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.elements
            .iter()
            .flat_map(|element| match &element.asked {
                Asked::Word(word) | Asked::Whole(word) | Asked::Prefix(word) => std::slice::from_ref(word),
                Asked::Quoted(words) | Asked::Run(words) | Asked::Together(words) => words.as_slice(),
            })
            .map(String::as_str)
    }

    /// Whether it has a phrase in quotes.
    pub fn has_quotes(&self) -> bool {
        self.elements.iter().any(|element| matches!(element.asked, Asked::Quoted(_)))
    }

    fn finish(mut self) -> Self {
        self.drop_stop_words();
        self.elements.truncate(MOST_ELEMENTS);
        self
    }

    fn add(&mut self, asked: Asked, is_exact: bool) {
        match self.elements.iter_mut().find(|element| element.asked == asked) {
            Some(known) => known.times += 1,
            None => self.elements.push(Element { asked, times: 1, is_exact, is_piece: false }),
        }
    }

    fn add_piece(&mut self, word: String) {
        let asked = Asked::Word(word);
        if !self.elements.iter().any(|element| element.asked == asked) {
            self.elements.push(Element { asked, times: 1, is_exact: false, is_piece: true });
        }
    }

    fn add_words(&mut self, text: &str, range: std::ops::Range<usize>) {
        let shouting = !text.chars().any(char::is_lowercase);
        let text = &text[range];
        let (mut words, mut word) = (Words::new(text), String::new());
        let mut run: Vec<String> = Vec::new();
        let mut run_end = 0;
        let mut joined = Joined::default();
        while let Some(place) = words.next(&mut word) {
            if place.sort == Sort::Character && (run.is_empty() || run_end == place.bytes.start) {
                run.push(word.clone());
                run_end = place.bytes.end;
                continue;
            }
            self.add_run(&mut run);
            let written = &text[place.bytes.clone()];
            let is_exact = place.sort == Sort::Part || is_name(written, shouting);
            match place.sort {
                Sort::Character => (run, run_end) = (vec![word.clone()], place.bytes.end),
                Sort::Whole => self.add(Asked::Whole(word.clone()), true),
                Sort::Plain | Sort::Part if is_prefix(&text[place.bytes.end..]) => {
                    self.add(Asked::Prefix(word.clone()), is_exact);
                }
                Sort::Plain if is_contracted(text, &place.bytes, &word) => self.add_piece(word.clone()),
                Sort::Plain | Sort::Part => {
                    self.add(Asked::Word(word.clone()), is_exact);
                    if let Some(together) = joined.next(text, &place.bytes, &word) {
                        self.add(Asked::Together(together), true);
                    }
                }
            }
        }
        self.add_run(&mut run);
        if let Some(together) = joined.take() {
            self.add(Asked::Together(together), true);
        }
    }

    /// Adds a run of characters: its neighbours in pairs, since nothing tells where its words begin, and the run itself as
    /// a wish.
    fn add_run(&mut self, run: &mut Vec<String>) {
        match std::mem::take(run) {
            run if run.is_empty() => {}
            mut run if run.len() == 1 => self.add(Asked::Word(run.remove(0)), false),
            mut run => {
                run.windows(2).for_each(|pair| self.add(Asked::Run(pair.to_vec()), false));
                if run.len() > 2 {
                    run.truncate(MOST_WORDS);
                    self.add(Asked::Together(run), false);
                }
            }
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
            self.add(Asked::Quoted(side_by_side), true);
        }
    }

    fn drop_stop_words(&mut self) {
        let stops = |element: &Element| match &element.asked {
            Asked::Word(word) => {
                element.is_piece || (!element.is_exact && STOP_WORDS.contains(&word.as_str()))
            }
            _ => false,
        };
        if self.elements.iter().any(|element| !stops(element)) {
            self.elements.retain(|element| !stops(element));
        }
    }
}

/// Words that are joined by marks, as far as they have been read.
#[derive(Default)]
struct Joined {
    words: Vec<String>,
    end: usize,
    /// Whether a mark joins any of them: parts of an identifier are joined without.
    has_marks: bool,
}

impl Joined {
    /// Goes on with a word; the words before it, when they were joined with each other and not with it.
    fn next(&mut self, text: &str, bytes: &std::ops::Range<usize>, word: &str) -> Option<Vec<String>> {
        let between = text.get(self.end..bytes.start).unwrap_or_default();
        let is_part = between.is_empty() || between == "_";
        let is_joined = between.len() <= JOINT && between.chars().all(|mark| JOINTS.contains(&mark));
        let before = if self.words.is_empty() || is_part || is_joined { None } else { self.take() };
        self.has_marks |= !self.words.is_empty() && is_joined && !is_part;
        self.words.push(word.to_owned());
        self.end = bytes.end;
        before
    }

    /// The joined words, if there are several.
    fn take(&mut self) -> Option<Vec<String>> {
        let Self { mut words, has_marks, .. } = std::mem::take(self);
        words.truncate(MOST_WORDS);
        has_marks.then_some(words)
    }
}

/// Whether a word is followed by a star that makes it a prefix: `optim*`, but not `a*b`.
fn is_prefix(after: &str) -> bool {
    after.strip_prefix('*').is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric()))
}

/// Whether a word is a piece of a contraction: `don` and `t` of `don't`, `what`'s `s`.
fn is_contracted(text: &str, bytes: &std::ops::Range<usize>, word: &str) -> bool {
    let is_apostrophe = |mark: char| matches!(mark, '\'' | '\u{2019}');
    let before = text[..bytes.start].strip_suffix(is_apostrophe);
    let is_ending =
        before.is_some_and(|before| before.ends_with(char::is_alphanumeric)) && ENDINGS.contains(&word);
    let after = text[bytes.end..].strip_prefix(is_apostrophe);
    let is_negated = after.is_some_and(|after| after.starts_with(['t', 'T'])) && NEGATED.contains(&word);
    is_ending || is_negated
}

/// Whether a word is written as names and numbers are: with digits or `_`, or in capitals among small letters.
fn is_name(word: &str, shouting: bool) -> bool {
    let in_capitals = || word.chars().count() > 1 && word.chars().all(char::is_uppercase);
    word.contains(|letter: char| letter.is_numeric() || letter == '_') || (!shouting && in_capitals())
}

/// The phrases in quotes, each with its quotation marks. A mark opens a phrase only before a letter and after none, and
/// closes it only the other way round: an inch mark or a mark without a partner is no quotation.
fn quotes(text: &str) -> Vec<std::ops::Range<usize>> {
    let (mut found, mut open) = (Vec::new(), None);
    let mut before = None;
    let mut marks = text.char_indices().peekable();
    while let Some((at, mark)) = marks.next() {
        let after = marks.peek().map(|(_, after)| *after);
        if is_quote(mark) {
            let is_free = |near: Option<char>| near.is_none_or(|near| !near.is_alphanumeric());
            match open {
                Some(start) if is_free(after) => {
                    found.push(start..at + mark.len_utf8());
                    open = None;
                }
                None if is_free(before) && after.is_some_and(|after| !after.is_whitespace()) => {
                    open = Some(at)
                }
                _ => {}
            }
        }
        before = Some(mark);
    }
    found
}

fn inside(quoted: &str) -> &str {
    quoted.trim_matches(is_quote)
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

    fn quoted(words: &[&str]) -> Asked {
        Asked::Quoted(words.iter().map(|word| (*word).to_owned()).collect())
    }

    fn run(one: &str, other: &str) -> Asked {
        Asked::Run(vec![one.into(), other.into()])
    }

    fn together(words: &[&str]) -> Asked {
        Asked::Together(words.iter().map(|word| (*word).to_owned()).collect())
    }

    fn asked(question: &Question) -> Vec<Asked> {
        question.elements.iter().map(|element| element.asked.clone()).collect()
    }

    #[test]
    fn questions_are_taken_apart() {
        let check =
            |text: &str, expected: &[Asked]| assert_eq!(asked(&Question::new(text)), expected, "{text}");
        check("the Database of databases", &[word("database"), word("databases")]);
        check("to be", &[word("to"), word("be")]);
        check("what does a mutex do?", &[word("mutex")]);
        check("optim* x", &[Asked::Prefix("optim".into()), word("x")]);
        check("say \"Hello World\" now", &[word("say"), quoted(&["hello", "world"]), word("now")]);
        check("\u{201C}a b\u{201D}", &[quoted(&["a", "b"])]);
        check("broken \"quote here", &[word("broken"), word("quote"), word("here")]);
        let whole = Asked::Whole("connectionpool".into());
        check("connectionPool", &[whole, word("connection"), word("pool")]);
        check("中文 字", &[run("中", "文"), word("字")]);
        check("文中字", &[run("文", "中"), run("中", "字"), together(&["文", "中", "字"])]);
        check("why doesn't it", &[word("why"), word("doesn"), word("t"), word("it")]);
        check("why doesn’t cron run", &[word("cron"), word("run")]);
        check("x*b", &[word("x"), word("b")]);
        check("\"\" ( ) AND && *", &[word("and")]);
        check("", &[]);
    }

    #[test]
    fn words_that_are_joined_are_wanted_together() {
        let check = |text: &str, expected: &[&[&str]]| {
            let found: Vec<Asked> = asked(&Question::new(text))
                .into_iter()
                .filter(|asked| matches!(asked, Asked::Together(_)))
                .collect();
            let expected: Vec<Asked> = expected.iter().map(|words| together(words)).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("since 1.2.3 or 2024-05-06", &[&["1", "2", "3"], &["2024", "05", "06"]]);
        check(
            "std::io::Error of src/base_events.py",
            &[&["std", "io", "error"], &["src", "base", "events", "py"]],
        );
        check("end of it. Next - one", &[]);
        check("a, b; c", &[]);
    }

    #[test]
    fn inch_marks_are_no_quotes() {
        let question = Question::new("a 5\" disk and a 3\" disk drive");
        assert!(!question.has_quotes());
        assert_eq!(asked(&question), [word("5"), word("disk"), word("3"), word("drive")]);
        assert!(Question::new("(\"version 5\")").has_quotes());
        assert!(!Question::new("rock'n'roll 12\" single").has_quotes());
    }

    #[test]
    fn relaxed_questions_ask_for_words_and_prefer_the_phrase() {
        let question = Question::relaxed("say \"hello world\"");
        assert_eq!(
            asked(&question),
            [word("say"), word("hello"), word("world"), quoted(&["hello", "world"])]
        );
    }

    #[test]
    fn repeated_words_are_counted_and_names_are_exact() {
        let question = Question::new("pipe flow in a pipe of DMT1 at 1979 and connectionPool");
        let find = |text: &str| question.elements.iter().find(|element| element.asked == word(text)).unwrap();
        assert_eq!((find("pipe").times, find("flow").times), (2, 1));
        assert!(find("dmt1").is_exact && find("1979").is_exact && find("pool").is_exact);
        assert!(!find("pipe").is_exact);
        assert!(Question::new("WHO guidelines").elements[0].is_exact);
        assert!(!Question::new("INSTALATION GUIDE").elements[0].is_exact);
    }
}
