//! The page of a reply: what is shown, and what is only counted.

use super::{GrepFile, GrepReply, GrepRequest, GrepShow, Position, Sought, file};
use crate::FailedFile;

/// Fills a page until it is full, and goes on counting.
pub(super) struct Page<'a> {
    request: &'a GrepRequest,
    after: Position,
    pub reply: GrepReply,
    characters: usize,
    /// Where the page ended, once it is full.
    pub end: Option<Position>,
    last: Position,
}

impl<'a> Page<'a> {
    pub(super) fn new(request: &'a GrepRequest, after: Position) -> Self {
        Self { request, last: after.clone(), after, reply: GrepReply::default(), characters: 0, end: None }
    }

    pub(super) fn take(&mut self, document: &Sought<'_>, found: file::Found) {
        if let Some(reason) = found.fault {
            self.reply.failed.push(FailedFile { path: document.path.to_string(), reason });
            return;
        }
        let hit = (found.count > 0) != (self.request.show == GrepShow::FilesWithoutMatch);
        if !hit || found.is_gone {
            return;
        }
        self.reply.total_files += 1;
        self.reply.total_matches += found.count;
        let place = |line| Position(document.path.to_string(), document.number, line);
        if self.request.show != GrepShow::Lines {
            if place(u64::MAX) > self.after && self.has_room(document.path.len() + 100, place(u64::MAX)) {
                self.reply.files.push(file_of(document, found.count));
            }
            return;
        }
        let mut shown = false;
        for line in found.lines {
            let here = place(line.number);
            if here <= self.after {
                continue;
            }
            // The text stands in the page twice: as a field and as a terminal would show it.
            let context: usize = line.before.iter().chain(&line.after).map(|text| written(text) + 4).sum();
            let colors = 40 + 22 * line.spans.len();
            if !self
                .has_room(2 * (written(&line.text) + context) + 2 * document.path.len() + 220 + colors, here)
            {
                break;
            }
            self.reply.lines.push(line.of(document));
            shown = true;
        }
        if shown {
            self.reply.files.push(file_of(document, found.count));
        }
    }

    /// Takes the room for one more; the first that finds none ends the page.
    fn has_room(&mut self, characters: usize, place: Position) -> bool {
        if self.end.is_some() {
            return false;
        }
        let empty = self.characters == 0;
        self.characters += characters;
        if self.characters > self.request.page_chars.saturating_sub(1_000) && !empty {
            self.end = Some(self.last.clone());
            return false;
        }
        self.last = place;
        true
    }
}

fn file_of(document: &Sought<'_>, count: u64) -> GrepFile {
    GrepFile { path: document.path.to_string(), hash: document.hash, count }
}

/// Characters of a text as JSON writes it.
fn written(text: &str) -> usize {
    let extra = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 1,
        0..32 => 5,
        _ => 0,
    };
    text.len() + text.bytes().map(extra).sum::<usize>()
}
