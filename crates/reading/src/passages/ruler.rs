//! Measures passages: their bytes without surrounding whitespace, their lines and their pages.

use super::{Border, Passage};
use crate::Text;

/// Advances through the text with the passages, so that lines are not counted from the beginning each time.
pub(super) struct Ruler<'a> {
    text: &'a str,
    pages: &'a [u32],
    byte: usize,
    /// The line that `byte` is on, from 1.
    line: usize,
}

impl<'a> Ruler<'a> {
    pub(super) fn new(text: &'a Text<'_>) -> Self {
        Self { text: &text.text, pages: &text.pages, byte: 0, line: 1 }
    }

    /// The passage between two borders; `None` when it is all whitespace. Calls must be in ascending order of `start`.
    pub(super) fn measure(&mut self, start: Border, end: Border) -> Option<Passage> {
        let piece = self.text.get(start.byte..end.byte)?;
        let trimmed = piece.trim_start();
        let first = start.byte + (piece.len() - trimmed.len());
        let last = first + trimmed.trim_end().len();
        if first == last {
            return None;
        }
        self.line += self.lines_in(self.byte, first);
        self.byte = first;
        Some(Passage {
            bytes: first as u32..last as u32,
            tokens: start.token as u32..end.token as u32,
            lines: (self.line as u32, (self.line + self.lines_in(first, last)) as u32),
            pages: self.pages_of(first as u32, last as u32 - 1),
            headings: String::new(),
        })
    }

    fn lines_in(&self, from: usize, to: usize) -> usize {
        let bytes = self.text.as_bytes().get(from..to).unwrap_or_default();
        bytes.iter().filter(|byte| **byte == b'\n').count()
    }

    fn pages_of(&self, first: u32, last: u32) -> Option<(u32, u32)> {
        let page = |byte| self.pages.partition_point(|start| *start <= byte).max(1) as u32;
        (!self.pages.is_empty()).then(|| (page(first), page(last)))
    }
}
