//! The headings that a passage stands under.

use super::outline::Outline;

/// Bytes of one heading that are kept.
const HEADING_BYTES: usize = 120;
/// Headings of a path at most: the outermost and the innermost say most.
const DEPTH: usize = 4;

/// Walks along the headings of a text as its passages are measured.
pub(super) struct HeadingPath<'a> {
    text: &'a str,
    headings: &'a [u32],
    next: usize,
    /// The headings in force, outermost first, each with its level.
    open: Vec<(usize, &'a str)>,
}

impl<'a> HeadingPath<'a> {
    pub(super) fn new(text: &'a str, outline: &'a Outline) -> Self {
        Self { text, headings: outline.headings(), next: 0, open: Vec::new() }
    }

    /// The headings above the passage that begins at `byte`, without those inside it, joined by line ends. Passages must
    /// be asked for in order.
    pub(super) fn above(&mut self, byte: usize) -> String {
        while let Some(start) = self.headings.get(self.next).map(|start| *start as usize) {
            let (level, title) = heading(&self.text[start.min(self.text.len())..]);
            if start > byte {
                break;
            }
            self.open.retain(|(open, _)| *open < level);
            if start == byte {
                break;
            }
            self.open.push((level, title));
            self.next += 1;
        }
        let skipped = self.open.len().saturating_sub(DEPTH);
        let kept = self.open.iter().enumerate().filter(|(at, _)| *at == 0 || *at > skipped);
        kept.map(|(_, (_, title))| *title).filter(|title| !title.is_empty()).collect::<Vec<_>>().join("\n")
    }
}

/// The level and the words of the heading at the beginning of `text`.
fn heading(text: &str) -> (usize, &str) {
    let mut lines = text.lines();
    let line = lines.next().unwrap_or_default().trim();
    let marks = line.bytes().take_while(|byte| *byte == b'#').count();
    if marks > 0 {
        return (marks, cut(line.trim_matches('#').trim()));
    }
    let underline = lines.find(|line| !line.trim().is_empty()).map(str::trim).unwrap_or_default();
    (if underline.starts_with('=') { 1 } else { 2 }, cut(line))
}

fn cut(heading: &str) -> &str {
    let end = (0..=heading.len().min(HEADING_BYTES)).rev().find(|at| heading.is_char_boundary(*at));
    &heading[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Markup;

    #[test]
    fn headings_above_a_place_are_those_still_open() {
        let text =
            "# Guide\nintro\n\n## Install\nfirst\n\n### Linux\napt\n\n## Use\nrun it\n\nTail\n====\nend\n";
        let outline = Outline::of(text, Markup::Markdown);
        let at = |needle: &str| text.find(needle).unwrap();
        let mut path = HeadingPath::new(text, &outline);
        assert_eq!(path.above(0), "");
        assert_eq!(path.above(at("intro")), "Guide");
        assert_eq!(path.above(at("## Install")), "Guide");
        assert_eq!(path.above(at("apt")), "Guide\nInstall\nLinux");
        assert_eq!(path.above(at("## Use")), "Guide");
        assert_eq!(path.above(at("run it")), "Guide\nUse");
        assert_eq!(path.above(at("Tail")), "");
        assert_eq!(path.above(at("end")), "Tail");
    }

    #[test]
    fn a_long_heading_is_cut_between_characters() {
        let text = format!("# {}\nbody", "é".repeat(200));
        let outline = Outline::of(&text, Markup::Markdown);
        let mut path = HeadingPath::new(&text, &outline);
        assert_eq!(path.above(text.len() - 1), "é".repeat(60));
    }
}
