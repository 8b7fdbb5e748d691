//! Where the lines of a document with pages stand, and its bookmarks.

use std::ops::Range;

/// What is known of a document beside its text. Empty for documents without pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The lines of the text that stand somewhere, in the order of the text.
    pub lines: Vec<LineBox>,
    /// The bookmarks, in order.
    pub outline: Vec<Bookmark>,
}

/// Where a line stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineBox {
    /// Where it begins in the text.
    pub start: u32,
    /// Left, top, right, bottom as parts of 65,535 of the page, from its top left as it is shown.
    pub bbox: [u16; 4],
    /// The size of its font in tenths of a point.
    pub size: u16,
}

/// A bookmark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bookmark {
    /// How deep it is, from 1.
    pub level: u8,
    /// Its title.
    pub title: String,
    /// The page that it leads to, from 1.
    pub page: u32,
    /// Where on the page, as a part of 65,535 from the top.
    pub top: u16,
}

impl Layout {
    /// The lines of a page, as a range of [`Layout::lines`].
    pub(crate) fn lines_of_page(&self, pages: &[u32], page: u32) -> (usize, usize) {
        let at = page.saturating_sub(1) as usize;
        let start = pages.get(at).copied().unwrap_or(u32::MAX);
        let end = pages.get(at + 1).copied().unwrap_or(u32::MAX);
        let find = |byte: u32| self.lines.partition_point(|line| line.start < byte);
        (find(start), find(end))
    }

    /// The page on which a part of the text begins, and the box of what stands on it: left, top, right, bottom from 0
    /// to 1. `pages` are the starts of the pages in the text.
    pub fn bbox(&self, pages: &[u32], bytes: Range<u32>) -> Option<(u32, [f64; 4])> {
        let first = self.lines.partition_point(|line| line.start <= bytes.start).saturating_sub(1);
        let page = pages.partition_point(|start| *start <= bytes.start).max(1);
        let page_end = pages.get(page).copied().unwrap_or(u32::MAX);
        let within = |line: &&LineBox| line.start < bytes.end.min(page_end);
        let boxes = self.lines.get(first..)?.iter().take_while(within).map(|line| line.bbox);
        let all = boxes.reduce(|a, b| [a[0].min(b[0]), a[1].min(b[1]), a[2].max(b[2]), a[3].max(b[3])])?;
        let part = |value: u16| (f64::from(value) / f64::from(u16::MAX) * 10_000.0).round() / 10_000.0;
        Some((page as u32, all.map(part)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_covers_the_lines_of_the_first_page() {
        let line = |start, top: u16| LineBox { start, bbox: [6_554, top, 32_768, top + 655], size: 100 };
        let layout = Layout {
            lines: vec![line(0, 6_554), line(10, 13_107), line(20, 6_554), line(30, 19_661)],
            outline: Vec::new(),
        };
        let pages = [0, 20];
        assert_eq!(layout.bbox(&pages, 0..5), Some((1, [0.1, 0.1, 0.5, 0.11])));
        assert_eq!(layout.bbox(&pages, 12..35), Some((1, [0.1, 0.2, 0.5, 0.21])));
        assert_eq!(layout.bbox(&pages, 22..35), Some((2, [0.1, 0.1, 0.5, 0.31])));
        assert_eq!(layout.lines_of_page(&pages, 2), (2, 4));
        assert_eq!(Layout::default().bbox(&[], 0..3), None);
    }
}
