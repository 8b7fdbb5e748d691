//! Splits a text into the passages that are searched and shown.
//!
//! The algorithm is greedy: a passage of up to four hundred tokens ends at the best break among the last two hundred,
//! and the next passage begins slightly before that break, so that a statement at the border is complete in one of the
//! two. Passages do not overlap across a heading or the edge of a fence, which are borders set by the author.
//!
//! Each window is read a bounded number of times, and windows advance by at least 130 tokens (or a whole fence), so the
//! work is linear in the length of the text.

mod blocks;
mod breaks;
mod outline;
mod path;
mod ruler;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::{Markup, Text};
pub(crate) use outline::{Outline, escaped, is_structure, is_underline};
use path::HeadingPath;
use ruler::Ruler;

/// Maximum number of tokens in a passage.
const MOST: usize = 400;
/// Minimum number of tokens before a cut at a heading. A passage is shorter only to keep a fence whole.
const LEAST: usize = 200;
/// Minimum number of tokens before a cut elsewhere; only a heading justifies a shorter passage.
const LEAST_ELSEWHERE: usize = 300;
/// Number of tokens that two passages share when there is no better place for the second to begin.
const OVERLAP: usize = 50;
/// Minimum number of shared tokens when the second passage begins with a line or a sentence.
const OVERLAP_LEAST: usize = 30;
/// Maximum number of shared tokens when the second passage begins with a line or a sentence.
const OVERLAP_MOST: usize = 70;

/// A piece of a document's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Byte range in the text, without surrounding whitespace.
    pub bytes: Range<u32>,
    /// Range of token indexes.
    pub tokens: Range<u32>,
    /// First and last line, from 1, inclusive.
    pub lines: (u32, u32),
    /// First and last page, from 1, inclusive; only for texts with pages.
    pub pages: Option<(u32, u32)>,
    /// The headings that it stands under and does not contain, outermost first, one a line.
    pub headings: String,
}

/// A position between two tokens; `byte` is not after the first byte of `token`.
#[derive(Clone, Copy, Debug)]
struct Border {
    byte: usize,
    token: usize,
}

/// Splits a text into passages. `tokens` are the ascending byte offsets of all tokens in `text.text`.
///
/// Passages are in order and contain every token, except that a run of whitespace as long as a whole passage is in
/// none.
pub fn passages(text: &Text<'_>, tokens: &[u32]) -> Vec<Passage> {
    let cutter = Cutter {
        text: &text.text,
        tokens,
        markup: text.markup,
        outline: Outline::of(&text.text, text.markup),
    };
    let end = Border { byte: text.text.len(), token: tokens.len() };
    let mut ruler = Ruler::new(text);
    let mut passages = Vec::new();
    let mut start = Border { byte: 0, token: 0 };
    while start.token + MOST < tokens.len() {
        let cut = cutter.cut_after(start);
        passages.extend(ruler.measure(start, cut));
        let next = cutter.next_start(cut);
        // Unordered tokens could lead backwards; the cut itself never does.
        start = if next.token > start.token { next } else { cut };
    }
    if start.token < end.token {
        passages.extend(ruler.measure(start, end));
    }
    let mut path = HeadingPath::new(&text.text, &cutter.outline);
    for passage in &mut passages {
        passage.headings = path.above(passage.bytes.start as usize);
    }
    passages
}

struct Cutter<'a> {
    text: &'a str,
    tokens: &'a [u32],
    markup: Markup,
    outline: Outline,
}

impl Cutter<'_> {
    /// Where the passage that begins at `start` ends. More than [`MOST`] tokens must follow `start`.
    fn cut_after(&self, start: Border) -> Border {
        let most = start.token + MOST;
        let (heading_after, up_to) = (self.byte_of(start.token + LEAST - 1), self.byte_of(most));
        let after = self.byte_of(start.token + LEAST_ELSEWHERE - 1);
        if after >= up_to {
            return self.token_border(most);
        }
        self.outline
            .last_heading(heading_after, up_to)
            .or_else(|| self.fence_to_spare(start, after, up_to))
            .or_else(|| self.last_paragraph(after, up_to))
            .or_else(|| self.last_line_or_sentence(after, up_to))
            .or_else(|| breaks::last_space(self.text.as_bytes(), after, up_to))
            .map_or_else(|| self.token_border(most), |byte| self.border(byte, start.token + 1, most))
    }

    /// The start of a fence that fills the whole window but would fit into a passage of its own.
    fn fence_to_spare(&self, start: Border, after: usize, up_to: usize) -> Option<usize> {
        let fence = self.outline.fence_around(up_to)?;
        let begins = self.border(fence.start, start.token, start.token + MOST).token;
        let fits = self.tokens.get(begins + MOST).is_none_or(|token| *token as usize >= fence.end);
        (fence.start <= after && begins > start.token && fits).then_some(fence.start)
    }

    fn last_paragraph(&self, after: usize, up_to: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let paragraph = match self.markup {
            Markup::Code => breaks::last_item(bytes, after, up_to),
            Markup::Markdown | Markup::Plain => self
                .outline
                .stretches(after, up_to)
                .into_iter()
                .find_map(|(low, high)| breaks::paragraphs(bytes, low, high).next()),
        };
        paragraph.max(self.outline.last_fence_edge(after, up_to))
    }

    fn last_line_or_sentence(&self, after: usize, up_to: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let prose = self.markup != Markup::Code;
        let outside = self.outline.stretches(after, up_to);
        let outside = outside.into_iter().find_map(|(low, high)| breaks::last_break(bytes, low, high, prose));
        outside.or_else(|| breaks::last_break(bytes, after, up_to, false))
    }

    /// Where the passage after a cut begins.
    fn next_start(&self, cut: Border) -> Border {
        let edge = self.outline.last_edge(cut.byte);
        let (far, near) = (cut.token.saturating_sub(OVERLAP_MOST), cut.token.saturating_sub(OVERLAP_LEAST));
        if edge > self.byte_of(near) {
            return self.border(edge, near, cut.token);
        }
        let after = self.byte_of(far.saturating_sub(1)).max(edge.saturating_sub(1));
        let middle = cut.token.saturating_sub(OVERLAP);
        let prose = self.markup != Markup::Code && self.outline.fence_around(cut.byte).is_none();
        (after + 1..=self.byte_of(near))
            .filter(|at| breaks::is_break(self.text.as_bytes(), *at, prose))
            .map(|at| self.border(at, far, near))
            .min_by_key(|border| border.token.abs_diff(middle))
            .or_else(|| {
                let space = breaks::last_space(self.text.as_bytes(), after, self.byte_of(middle))?;
                Some(self.border(space, far, near))
            })
            .unwrap_or_else(|| match self.token_border(middle) {
                border if border.byte < edge => self.border(edge, far, near),
                border => border,
            })
    }

    /// The border at a byte, which must be after token `from - 1` and not after token `to`.
    fn border(&self, byte: usize, from: usize, to: usize) -> Border {
        let tokens = self.tokens.get(from..to).unwrap_or_default();
        Border { byte, token: from + tokens.partition_point(|token| (*token as usize) < byte) }
    }

    /// The border before a token, or slightly earlier if the tokenizer has divided a character.
    fn token_border(&self, token: usize) -> Border {
        let divides = |token: &usize| {
            self.tokens.get(*token).is_some_and(|byte| self.text.is_char_boundary(*byte as usize))
        };
        let token = (token.saturating_sub(3)..=token).rev().find(divides).unwrap_or(token);
        Border { byte: self.byte_of(token), token }
    }

    fn byte_of(&self, token: usize) -> usize {
        self.tokens.get(token).map_or(self.text.len(), |byte| self.text.floor_char_boundary(*byte as usize))
    }
}
