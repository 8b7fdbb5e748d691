//! Writes words with collapsed whitespace. Gaps are written only once another word follows.

use crate::passages::is_structure;

/// What separates the next word from the last, in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    #[default]
    None,
    Space,
    Cell,
    Line,
    Block,
}

impl Gap {
    fn text(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Space => " ",
            Self::Cell => " | ",
            Self::Line => "\n",
            Self::Block => "\n\n",
        }
    }
}

#[derive(Default)]
pub(super) struct Writer {
    text: String,
    gap: Gap,
    /// The heading or list marker to write before the next word.
    mark: Option<String>,
    /// Where the words of this line begin, and whether a paragraph or item does; `None` for headings and code.
    words: Option<(usize, bool)>,
    /// Where words need a mark in front, because they would be taken for a heading, a fence or HTML.
    misread: Vec<usize>,
}

impl Writer {
    /// Requires at least this gap before the next word.
    pub(super) fn gap(&mut self, gap: Gap) {
        // There is no gap between a marker and its first word: `<li><p>` is one line.
        if self.mark.is_none() {
            self.gap = self.gap.max(gap);
        }
    }

    /// Writes a marker before the next word.
    pub(super) fn mark(&mut self, mark: String) {
        self.mark = Some(mark);
    }

    /// Discards a marker that no word followed.
    pub(super) fn no_mark(&mut self) {
        self.mark = None;
    }

    /// Writes words, collapsing the whitespace between them.
    pub(super) fn words(&mut self, text: &str) {
        let mut spaced = text.starts_with(char::is_whitespace);
        for word in text.split_whitespace() {
            if spaced {
                self.gap(Gap::Space);
            }
            self.settle();
            self.text.push_str(word);
            spaced = true;
        }
        if text.ends_with(char::is_whitespace) {
            self.gap(Gap::Space);
        }
    }

    /// Writes code verbatim, in a fence longer than any it contains.
    pub(super) fn fenced(&mut self, code: &str) {
        let code = code.trim_end().trim_start_matches(['\r', '\n']);
        if code.is_empty() {
            return;
        }
        let fence = "`".repeat(longest_run(code).max(2) + 1);
        self.mark = None;
        self.gap(Gap::Block);
        self.settle();
        self.words = None;
        for part in [&fence, "\n", code, "\n", &fence] {
            self.text.push_str(part);
        }
        self.gap(Gap::Block);
    }

    /// What has been written so far.
    pub(super) fn written(&self) -> &str {
        &self.text
    }

    fn settle(&mut self) {
        let gap = std::mem::take(&mut self.gap);
        let begins_line = self.text.is_empty() || gap >= Gap::Line;
        if begins_line {
            self.end_line();
        }
        let begins_paragraph = self.text.is_empty() || gap == Gap::Block || self.mark.is_some();
        if !self.text.is_empty() {
            self.text.push_str(gap.text());
        }
        let mark = self.mark.take();
        let is_heading = mark.as_ref().is_some_and(|mark| mark.starts_with('#'));
        self.text.push_str(&mark.unwrap_or_default());
        if begins_line {
            self.words = (!is_heading).then_some((self.text.len(), begins_paragraph));
        }
    }

    fn end_line(&mut self) {
        let words = self.words.take();
        let misread = words.filter(|(from, begins)| is_structure(&self.text[*from..], *begins));
        self.misread.extend(misread.map(|(from, _)| from));
    }

    /// The text as Markdown.
    pub(super) fn finish(mut self) -> String {
        self.end_line();
        let mut marked = String::with_capacity(self.text.len() + self.misread.len() + 1);
        let mut from = 0;
        for at in std::mem::take(&mut self.misread) {
            marked.push_str(&self.text[from..at]);
            marked.push('\\');
            from = at;
        }
        marked.push_str(&self.text[from..]);
        with_line_end(marked)
    }

    /// The text with every word where it was written.
    pub(super) fn finish_words(self) -> String {
        with_line_end(self.text)
    }
}

fn with_line_end(mut text: String) -> String {
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

fn longest_run(code: &str) -> usize {
    code.split(|next| next != '`').map(str::len).max().unwrap_or(0)
}
