//! Cutting a text into the passages that are searched and shown.
//!
//! Greedy from the beginning: a passage ends at the best place among its last two hundred of four hundred tokens, and
//! the next one begins a little before that place, so that a thought on the border is whole in one of the two.
//! Nothing repeats across a heading or the edge of a fence, which are borders that the author drew.
//!
//! Each window is read a bounded number of times and windows advance by at least 130 tokens (or a whole fence), so the
//! work is linear in the text.

mod breaks;
mod outline;
mod ruler;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::{Markup, Text};
use outline::Outline;
use ruler::Ruler;

/// No passage has more tokens.
const MOST: usize = 400;
/// A passage is not cut before so many tokens, unless that keeps a fence whole.
const LEAST: usize = 200;
/// Only a heading is worth a short passage; at other places it is not cut before so many.
const LEAST_ELSEWHERE: usize = 300;
/// How far the next passage reaches back when nothing suggests a better place.
const OVERLAP: usize = 50;
/// A line or a sentence may begin the next passage from here…
const OVERLAP_LEAST: usize = 30;
/// …to here.
const OVERLAP_MOST: usize = 70;

/// A piece of a document's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Byte range in the text, without the white space around it.
    pub bytes: Range<u32>,
    /// Range of token indexes.
    pub tokens: Range<u32>,
    /// First and last line, from 1, inclusive.
    pub lines: (u32, u32),
    /// First and last page, from 1, inclusive; only for texts with pages.
    pub pages: Option<(u32, u32)>,
}

/// A place between two tokens: the byte is not after the token's first.
#[derive(Clone, Copy, Debug)]
struct Border {
    byte: usize,
    token: usize,
}

/// Cuts a text into passages. `tokens`: ascending byte offset of the start of every token in `text.text`.
///
/// Passages are in order and every token is in one of them, except that a stretch of white space as long as a
/// whole passage is in none.
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
        // Tokens out of order could lead back; the cut itself never does.
        start = if next.token > start.token { next } else { cut };
    }
    if start.token < end.token {
        passages.extend(ruler.measure(start, end));
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
    /// Where the passage that begins at `start` ends; more than [`MOST`] tokens follow `start`.
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

    /// The beginning of a fence that fills the whole window and would fit into a passage of its own.
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

    /// The border at a byte that lies after token `from - 1` and not after token `to`.
    fn border(&self, byte: usize, from: usize, to: usize) -> Border {
        let tokens = self.tokens.get(from..to).unwrap_or_default();
        Border { byte, token: from + tokens.partition_point(|token| (*token as usize) < byte) }
    }

    /// The border before a token, or a little earlier where a tokenizer has divided a character.
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
