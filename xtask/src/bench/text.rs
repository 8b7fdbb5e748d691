//! Synthetic texts of any size that resemble documentation and source code.

use super::random::Random;
use super::words::Words;

/// The style of a synthetic file.
#[derive(Clone, Copy)]
pub enum Kind {
    /// Headings, paragraphs, lists and fenced code.
    Markdown,
    /// Source code with braces.
    Braces,
    /// Source code with indentation.
    Indented,
}

const HEADER: &str = "\
// Licensed under the terms in the file LICENSE at the top of this tree.
// Distributed without warranty of any kind, express or implied.

";

/// The maximum number of words and identifiers that a file can reuse.
const MEMORY: usize = 300;

/// The percentage of words that are reused from earlier in the same file.
const WORDS_AGAIN: usize = 40;

/// The percentage of identifiers that are reused from earlier in the same file.
const NAMES_AGAIN: usize = 60;

/// Generates texts from the shared vocabulary.
pub struct Writer<'words> {
    words: &'words Words,
    /// The source of all random choices.
    pub random: Random,
    /// The topic of this file: words it has used before recur, as in real texts.
    topic: Vec<&'words str>,
    /// The identifiers used in this file.
    names: Vec<String>,
}

impl<'words> Writer<'words> {
    /// A writer whose texts depend only on `seed`.
    pub fn new(words: &'words Words, seed: u64) -> Self {
        Self { words, random: Random::new(seed), topic: Vec::new(), names: Vec::new() }
    }

    /// A text of exactly `size` bytes, all of them ASCII.
    pub fn text(&mut self, kind: Kind, size: usize) -> String {
        let mut text = String::with_capacity(size + 2_000);
        self.topic.clear();
        self.names.clear();
        match kind {
            Kind::Markdown => self.heading(&mut text, 1),
            Kind::Braces => text.push_str(HEADER),
            Kind::Indented => text.push_str("import os\nimport sys\n\n"),
        }
        while text.len() < size {
            match kind {
                Kind::Markdown => self.section(&mut text),
                Kind::Braces => self.braced_function(&mut text),
                Kind::Indented => self.indented_function(&mut text),
            }
        }
        text.truncate(size.saturating_sub(1));
        text.push('\n');
        text
    }

    /// A few sentences, about `size` bytes long.
    pub fn prose(&mut self, size: usize) -> String {
        let mut text = String::with_capacity(size + 200);
        while text.len() < size {
            self.sentence(&mut text);
        }
        text
    }

    fn section(&mut self, text: &mut String) {
        match self.random.below(10) {
            0 => {
                let level = self.random.between(2, 4);
                self.heading(text, level);
            }
            1 => self.list(text),
            2 => {
                text.push_str("```\n");
                self.statement(text, 0, ";");
                self.statement(text, 0, ";");
                text.push_str("```\n\n");
            }
            _ => self.paragraph(text),
        }
    }

    fn heading(&mut self, text: &mut String, level: usize) {
        text.push_str(&"#".repeat(level));
        for _ in 0..self.random.between(2, 5) {
            text.push(' ');
            text.push_str(self.word());
        }
        text.push_str("\n\n");
    }

    fn paragraph(&mut self, text: &mut String) {
        for _ in 0..self.random.between(2, 6) {
            self.sentence(text);
        }
        text.push_str("\n\n");
    }

    fn list(&mut self, text: &mut String) {
        for _ in 0..self.random.between(3, 7) {
            text.push_str("- ");
            self.sentence(text);
            text.push('\n');
        }
        text.push('\n');
    }

    fn sentence(&mut self, text: &mut String) {
        let start = text.len();
        for position in 0..self.random.between(6, 22) {
            if position > 0 {
                text.push_str(if self.random.percent(6) { ", " } else { " " });
            }
            text.push_str(self.word());
        }
        text[start..=start].make_ascii_uppercase();
        text.push_str(". ");
    }

    fn braced_function(&mut self, text: &mut String) {
        text.push_str("/// ");
        self.sentence(text);
        text.push_str("\nfn ");
        self.identifier(text);
        text.push('(');
        self.identifier(text);
        text.push_str(": &str) -> Result<u64, Error> {\n");
        self.braced_body(text, 1);
        text.push_str("}\n\n");
    }

    fn braced_body(&mut self, text: &mut String, depth: usize) {
        for _ in 0..self.random.between(2, 6) {
            if depth < 4 && self.random.percent(25) {
                indent(text, depth);
                text.push_str("if ");
                self.identifier(text);
                text.push_str(".is_empty() {\n");
                self.braced_body(text, depth + 1);
                indent(text, depth);
                text.push_str("}\n");
            } else {
                self.statement(text, depth, ";");
            }
        }
    }

    fn indented_function(&mut self, text: &mut String) {
        text.push_str("def ");
        self.identifier(text);
        text.push_str("(self, ");
        self.identifier(text);
        text.push_str("=None):\n    \"\"\"");
        self.sentence(text);
        text.push_str("\"\"\"\n");
        for _ in 0..self.random.between(3, 12) {
            let depth = self.random.between(1, 3);
            self.statement(text, depth, "");
        }
        text.push_str("    return self\n\n\n");
    }

    fn statement(&mut self, text: &mut String, depth: usize, end: &str) {
        indent(text, depth);
        self.identifier(text);
        text.push_str(" = ");
        self.identifier(text);
        match self.random.below(3) {
            0 => text.push_str(&format!(" + {}", self.random.below(1_000))),
            1 => {
                text.push('(');
                self.identifier(text);
                text.push(')');
            }
            _ => {
                text.push_str(".get(\"");
                text.push_str(self.word());
                text.push_str("\")");
            }
        }
        text.push_str(end);
        text.push('\n');
    }

    fn identifier(&mut self, text: &mut String) {
        if !self.names.is_empty() && self.random.percent(NAMES_AGAIN) {
            text.push_str(self.random.pick::<String>(&self.names));
            return;
        }
        let mut name = self.word().to_owned();
        for _ in 0..self.random.below(3) {
            name.push('_');
            name.push_str(self.word());
        }
        text.push_str(&name);
        if self.names.len() < MEMORY {
            self.names.push(name);
        }
    }

    fn word(&mut self) -> &'words str {
        if !self.topic.is_empty() && self.random.percent(WORDS_AGAIN) {
            return self.random.pick::<&str>(&self.topic);
        }
        let word = self.words.draw(&mut self.random);
        if self.topic.len() < MEMORY {
            self.topic.push(word);
        }
        word
    }
}

fn indent(text: &mut String, depth: usize) {
    text.push_str(&"    ".repeat(depth));
}

#[cfg(test)]
mod tests {
    use super::{Kind, Words, Writer};

    #[test]
    fn texts_have_the_wanted_size_and_follow_from_the_seed() {
        let words = Words::new();
        for kind in [Kind::Markdown, Kind::Braces, Kind::Indented] {
            let first = Writer::new(&words, 9).text(kind, 5_000);
            assert_eq!(first.len(), 5_000);
            assert_eq!(first, Writer::new(&words, 9).text(kind, 5_000));
            assert_ne!(first, Writer::new(&words, 10).text(kind, 5_000));
        }
    }
}
