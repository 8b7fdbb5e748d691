//! The headings and fences of a Markdown text.
//!
//! They are found in one pass over the lines before any splitting, because whether a `#` is a heading depends on every
//! fence before it.

use std::ops::Range;

use super::blocks::{Container, HtmlEnd, html_block, list_mark, unpacked};
use crate::Markup;

/// The structure of a text; empty unless it is Markdown.
#[derive(Default)]
pub(crate) struct Outline {
    /// Where each heading begins, ascending.
    headings: Vec<u32>,
    /// Each fence from its opening line to the end of its closing line, ascending and disjoint.
    fences: Vec<Range<u32>>,
}

impl Outline {
    pub(crate) fn of(text: &str, markup: Markup) -> Self {
        match markup {
            Markup::Markdown => Scan::default().read(text),
            Markup::Plain | Markup::Code => Self::default(),
        }
    }

    /// Where each heading begins, ascending.
    pub(crate) fn headings(&self) -> &[u32] {
        &self.headings
    }

    /// The last heading that begins after `after` and not after `up_to`.
    pub(super) fn last_heading(&self, after: usize, up_to: usize) -> Option<usize> {
        let heading = last_up_to(&self.headings, up_to, |start| *start)?;
        Some(*heading as usize).filter(|start| *start > after)
    }

    /// The fence that contains `at`, unless `at` is its first byte, where the text may be cut.
    pub(super) fn fence_around(&self, at: usize) -> Option<Range<usize>> {
        let fence = last_up_to(&self.fences, at.checked_sub(1)?, |fence| fence.start)?;
        Some(fence.start as usize..fence.end as usize).filter(|fence| at < fence.end)
    }

    /// The last start or end of a fence after `after` and not after `up_to`.
    pub(super) fn last_fence_edge(&self, after: usize, up_to: usize) -> Option<usize> {
        let fence = last_up_to(&self.fences, up_to, |fence| fence.start)?;
        let edge = if fence.end as usize <= up_to { fence.end } else { fence.start };
        Some(edge as usize).filter(|edge| *edge > after)
    }

    /// The last heading or fence edge not after `up_to`. Passages should not overlap across it.
    pub(super) fn last_edge(&self, up_to: usize) -> usize {
        let heading = last_up_to(&self.headings, up_to, |start| *start).map_or(0, |start| *start as usize);
        heading.max(self.last_fence_edge(0, up_to).unwrap_or(0))
    }

    /// The parts of `(after, up_to]` that are not inside a fence, last first, each with an exclusive lower bound.
    pub(super) fn stretches(&self, after: usize, up_to: usize) -> Vec<(usize, usize)> {
        let first = self.fences.partition_point(|fence| fence.end as usize <= after);
        let last = self.fences.partition_point(|fence| (fence.start as usize) < up_to);
        let mut stretches = Vec::new();
        let mut high = up_to;
        for fence in self.fences.get(first..last).unwrap_or_default().iter().rev() {
            if fence.end as usize <= high {
                stretches.push((fence.end as usize - 1, high));
            }
            high = fence.start as usize;
        }
        if high > after {
            stretches.push((after, high));
        }
        stretches
    }
}

fn last_up_to<T>(sorted: &[T], up_to: usize, start: impl Fn(&T) -> u32) -> Option<&T> {
    let count = sorted.partition_point(|item| start(item) as usize <= up_to);
    sorted.get(count.checked_sub(1)?)
}

/// What hides headings.
enum Block {
    Fence { start: u32, mark: u8, length: usize },
    Html(HtmlEnd),
}

/// The paragraph that an underline may turn into a heading.
#[derive(Default)]
enum Paragraph {
    #[default]
    None,
    At(u32),
    /// A list, quotation or table, below which a row of dashes is a rule.
    Other,
}

#[derive(Default)]
struct Scan {
    outline: Outline,
    block: Option<(Container, Block)>,
    paragraph: Paragraph,
}

impl Scan {
    fn read(mut self, text: &str) -> Outline {
        let mark = text.len() - text.trim_start_matches('\u{feff}').len();
        let mut at = mark + front_matter(&text[mark..]);
        for line in text[at..].split_inclusive('\n') {
            if !self.is_in_block(at as u32, line) {
                self.line(at as u32, line);
            }
            at += line.len();
        }
        self.end_block(at as u32);
        self.outline
    }

    /// Whether a line is part of the block that is open; if it is the last one, the block ends.
    fn is_in_block(&mut self, start: u32, line: &str) -> bool {
        let Some((container, block)) = &self.block else { return false };
        let Some(content) = container.content(line) else {
            self.end_block(start);
            return false;
        };
        let is_last = match block {
            Block::Fence { mark, length, .. } => closes(*mark, *length, content),
            Block::Html(end) => end.is_in(content),
        };
        if is_last {
            self.end_block(start + line.len() as u32);
        }
        true
    }

    fn end_block(&mut self, at: u32) {
        if let Some((_, Block::Fence { start, .. })) = self.block.take() {
            self.outline.fences.push(start..at);
        }
    }

    fn line(&mut self, start: u32, line: &str) {
        let content = line.trim_ascii();
        if content.is_empty() || self.opens_block(start, line) {
            self.paragraph = Paragraph::None;
        } else if is_indented(line) {
            self.begin(Paragraph::Other);
        } else if is_heading(content) {
            self.outline.headings.push(start);
            self.paragraph = Paragraph::None;
        } else if is_underline(content) {
            if let Paragraph::At(heading) = self.paragraph {
                self.outline.headings.push(heading);
            }
            self.paragraph = Paragraph::None;
        } else {
            self.begin(if is_container(content) { Paragraph::Other } else { Paragraph::At(start) });
        }
    }

    fn opens_block(&mut self, start: u32, line: &str) -> bool {
        let (container, content) = unpacked(line);
        // Fences in nested lists may be indented by any amount, so their indentation is ignored.
        if let Some((mark, length)) = opening(content) {
            self.block = Some((container, Block::Fence { start, mark, length }));
            return true;
        }
        let in_paragraph = container == Container::default() && !matches!(self.paragraph, Paragraph::None);
        let Some((end, is_ended)) = html_block(content, in_paragraph).filter(|_| !is_indented(line)) else {
            return false;
        };
        if !is_ended {
            self.block = Some((container, Block::Html(end)));
        }
        true
    }

    fn begin(&mut self, paragraph: Paragraph) {
        match self.paragraph {
            Paragraph::None => self.paragraph = paragraph,
            // A list may follow a paragraph without a blank line; then the dashes below belong to the list.
            Paragraph::At(_) if matches!(paragraph, Paragraph::Other) => self.paragraph = paragraph,
            Paragraph::At(_) | Paragraph::Other => {}
        }
    }
}

/// Length of the front matter between two `---`, or two `+++`, that a document may begin with. Its `#` are comments, and
/// its end would underline its last line.
fn front_matter(text: &str) -> usize {
    let mut at = 0;
    let mut is_toml = false;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        at += line.len();
        match (number, line.trim_ascii_end()) {
            (0, "---") => {}
            (0, "+++") => is_toml = true,
            (0, _) => return 0,
            (_, "+++") if is_toml => return at,
            (_, "---" | "...") if !is_toml => return at,
            // Front matter does not begin with a blank line; a rule at the top of a text is followed by one.
            (1, "") if !is_toml => return 0,
            _ => {}
        }
    }
    0
}

fn is_indented(line: &str) -> bool {
    let bytes = line.as_bytes();
    let spaces = bytes.iter().take_while(|byte| **byte == b' ').count();
    spaces > 3 || bytes.get(spaces) == Some(&b'\t')
}

fn run(content: &str, mark: u8) -> usize {
    content.bytes().take_while(|byte| *byte == mark).count()
}

fn opening(content: &str) -> Option<(u8, usize)> {
    let mark = *content.as_bytes().first()?;
    let length = run(content, mark);
    let opens = match mark {
        // Text between triple backticks on one line is inline code.
        b'`' => length >= 3 && !content[length..].contains('`'),
        b'~' => length >= 3,
        _ => false,
    };
    opens.then_some((mark, length))
}

fn closes(mark: u8, opened: usize, content: &str) -> bool {
    let length = run(content, mark);
    length >= opened && length == content.len()
}

fn is_heading(content: &str) -> bool {
    let level = run(content, b'#');
    (1..=6).contains(&level) && matches!(content.as_bytes().get(level), None | Some(b' ' | b'\t'))
}

pub(crate) fn is_underline(content: &str) -> bool {
    !content.is_empty() && [b'=', b'-'].into_iter().any(|mark| run(content, mark) == content.len())
}

fn is_container(content: &str) -> bool {
    content.starts_with(['|', '>']) || list_mark(content).is_some()
}

/// A paragraph as words: lines of it that would be taken for headings, fences or HTML get a mark in front.
pub(crate) fn escaped(paragraph: &str) -> String {
    let mut escaped = String::with_capacity(paragraph.len());
    for (number, line) in paragraph.split_inclusive('\n').enumerate() {
        let words = line.trim_ascii_start();
        escaped.push_str(&line[..line.len() - words.len()]);
        if is_structure(line, number == 0) {
            escaped.push('\\');
        }
        escaped.push_str(words);
    }
    escaped
}

/// Whether a line that begins or continues a paragraph may be more than words.
pub(crate) fn is_structure(line: &str, begins_paragraph: bool) -> bool {
    let (words, (_, content)) = (line.trim_ascii(), unpacked(line));
    let is_row = match begins_paragraph {
        // Front matter, if it is the first line of all.
        true => matches!(words, "---" | "+++"),
        false => is_underline(words),
    };
    is_row || is_heading(words) || opening(content).is_some() || html_block(content, false).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headings(text: &str) -> Vec<&str> {
        let outline = Outline::of(text, Markup::Markdown);
        outline.headings.iter().map(|at| text[*at as usize..].lines().next().unwrap()).collect()
    }

    #[test]
    fn headings_of_both_kinds() {
        let text = "# One\r\ntext\n## Two ##\n#hash\n\n####### seven\n\n    # code\n\nThree\r\n=====\r\n\nFour\nlines\n---\n";
        assert_eq!(headings(text), ["# One", "## Two ##", "Three", "Four"]);
        assert_eq!(headings("#\n"), ["#"]);
    }

    #[test]
    fn rules_are_not_underlines() {
        assert!(headings("text\n\n---\n- item\n---\n| a |\n---\n> quote\n---\n1. one\n--\n").is_empty());
        assert_eq!(headings("---\ntitle: x\n# remark\n---\n# Real\n"), ["# Real"]);
        assert_eq!(headings("---\n\n# Real\n\n---\n"), ["# Real"]);
    }

    #[test]
    fn fences_hide_headings() {
        let text = "# A\n```sh\n# no\n~~~\n# no\n````\n# B\n~~~~\n```\n# no\n~~~\n# no\n~~~~\n# C\n``` x ``` y\n# D\n";
        assert_eq!(headings(text), ["# A", "# B", "# C", "# D"]);
        assert!(headings("```\n# never closed\n").is_empty());
    }

    #[test]
    fn comments_and_front_matter_hide_headings() {
        let text =
            "# A\n<!-- x\n# no\n```\n-->\n# B\n<!-- one line -->\n---\ntext <!--\n# C\n```\n<!--\n```\n# D\n";
        assert_eq!(headings(text), ["# A", "# B", "# C", "# D"]);
        assert_eq!(headings("+++\n\n# no\ntitle = 1\n+++\n# Real\n"), ["# Real"]);
        assert_eq!(headings("+++\n# Open\n"), ["# Open"]);
        assert_eq!(headings("\u{feff}# One\n"), ["# One"]);
        assert_eq!(headings("\u{feff}---\n# no\n---\n# Real\n"), ["# Real"]);
    }

    #[test]
    fn numbers_and_short_rows_of_titles() {
        let text = "2.32.3 (2024-05-29)\n-----\n\n1.0.2 / 2015-10-07\n=====\n\nGo\n=\n\n1234567890. x\n-\n\n1) one\n-\n";
        assert_eq!(headings(text), ["2.32.3 (2024-05-29)", "1.0.2 / 2015-10-07", "Go", "1234567890. x"]);
        assert!(headings("*\n---\n\n- \n---\n\n9.\n---\n").is_empty());
    }

    #[test]
    fn fences_begin_in_lists_and_quotations() {
        let text = "- ```sh\n  # no\n  ```\n# A\n1. > ~~~\n   > # no\n   > ~~~\n# B\n> ```\n> # no\n# C\n* - ```\n    x\n\n    # no\n# D\n";
        assert_eq!(headings(text), ["# A", "# B", "# C", "# D"]);
        let outline = Outline::of(text, Markup::Markdown);
        let fences: Vec<&str> =
            outline.fences.iter().map(|fence| &text[fence.start as usize..fence.end as usize]).collect();
        assert_eq!(
            fences,
            [
                "- ```sh\n  # no\n  ```\n",
                "1. > ~~~\n   > # no\n   > ~~~\n",
                "> ```\n> # no\n",
                "* - ```\n    x\n\n    # no\n"
            ]
        );
    }

    #[test]
    fn html_hides_headings() {
        for (hidden, shown) in [
            ("<pre>\n# no\n\n# no\n</pre>", ""),
            ("<PRE class=\"x\">\nno\n==\n\n# no </Pre> x", ""),
            ("<script>\n# no\n</script>", ""),
            ("<?php\n# no\n\n# no ?>", ""),
            ("<!DOCTYPE\n# no\n>", ""),
            ("<![CDATA[\n# no\n\n]]>", ""),
            ("<div align=\"center\">\n# no\n</div>", "\n"),
            ("</section>\n# no\n", "\n"),
            ("<my-part a='>' b>\n# no\n", "\n"),
            ("- <div>\n  # no", ""),
        ] {
            let text = format!("{hidden}\n{shown}# Yes\n");
            assert_eq!(headings(&text), ["# Yes"], "{text}");
        }
        let text = "<https://x.y>\n# A\n<b>bold</b> words\n# B\ntext\n<my-part>\n# C\n<predicate\n# D\n<!-->\n# E\n    <div>\n# F\n";
        assert_eq!(headings(text), ["# A", "# B", "# C", "# D", "# E", "# F"]);
    }

    #[test]
    fn escaped_words_are_no_structure() {
        let text = "# a\n==\n-\n```sh\n- ~~~\n<!-- x\n  <div>\n1. one\n#hash\n3 < 4";
        let expected = "\\# a\n\\==\n\\-\n\\```sh\n\\- ~~~\n\\<!-- x\n  \\<div>\n1. one\n#hash\n3 < 4";
        assert_eq!(escaped(text), expected);
        assert!(headings(&escaped(text)).is_empty());
        assert_eq!([escaped("-"), escaped("---"), escaped("+++\nx")], ["-", "\\---", "\\+++\nx"]);
    }

    #[test]
    fn positions_around_a_fence() {
        let text = "ab\n```\ncode\n```\ncd\n";
        let outline = Outline::of(text, Markup::Markdown);
        assert_eq!(outline.fences, vec![Range { start: 3, end: 16 }]);
        assert_eq!(outline.fence_around(3), None);
        assert_eq!(outline.fence_around(4), Some(3..16));
        assert_eq!(outline.fence_around(15), Some(3..16));
        assert_eq!(outline.fence_around(16), None);
        assert_eq!(outline.last_fence_edge(0, 15), Some(3));
        assert_eq!(outline.last_fence_edge(3, 15), None);
        assert_eq!(outline.last_edge(19), 16);
        assert_eq!(outline.stretches(0, 19), [(15, 19), (0, 3)]);
        assert_eq!(outline.stretches(0, 10), [(0, 3)]);
        assert_eq!(outline.stretches(5, 10), []);
        assert_eq!(outline.stretches(5, 16), [(15, 16)]);
    }
}
