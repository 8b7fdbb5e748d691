//! The page of a reply: what is shown, and what is only counted.

use super::{
    GrepFile, GrepReply, GrepRequest, GrepShow, Position, Sought,
    file::{self, Line},
};
use crate::FailedFile;

/// What the names of fields, the hash and the numbers of a line and of its document take.
const ENTRY: usize = 220;
/// What stands around a line that is printed: its number, signs, its end, and a line between groups.
const LINE_SIGNS: usize = 20;
/// Colours of the path and of the number of a line that is printed, and of one match in it, as JSON writes them.
const LINE_COLORS: usize = 40;
const MARK: usize = 22;

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
        let path = written(&document.path);
        let output = self.request.output;
        let printed = |text: usize| match output {
            None => 0,
            Some(output) => {
                let colors = if output.color { LINE_COLORS } else { 0 };
                text + LINE_SIGNS + colors + if output.with_path { path } else { 0 }
            }
        };
        if self.request.show != GrepShow::Lines {
            // Of documents without a match the output is the path itself.
            let text = if output.is_some_and(|output| !output.with_path) { path } else { 0 };
            let last = place((u64::MAX, 0));
            let taken = ENTRY + path + printed(text);
            if last > self.after && self.has_room(taken, path, last) {
                self.reply.files.push(file_of(document, found.count));
            }
            return;
        }
        let is_colored = output.is_some_and(|output| output.color);
        let mut shown = false;
        for mut line in found.lines {
            let here = place((line.number, line.part));
            if here <= self.after {
                continue;
            }
            let own = written(&line.text);
            let marks = if is_colored { MARK * line.spans.len() } else { 0 };
            // The path stands beside the line and beside the number of lines.
            let own = ENTRY + 2 * path + own + printed(own) + marks;
            let of_context = |text: &str| {
                let text = written(text);
                text + 3 + printed(text)
            };
            let around = line.before.iter().chain(&line.after);
            let context: usize = around.map(|text| of_context(text.as_str())).sum();
            let mut taken = own + context;
            // What does not fit on a page of its own is given with less around it.
            if self.characters == 0 && self.end.is_none() {
                taken -= line.shorten(taken.saturating_sub(self.most(path)), of_context);
            }
            if !self.has_room(taken, path, here) {
                break;
            }
            self.reply.lines.push(line.of(document));
            shown = true;
        }
        if shown {
            self.reply.files.push(file_of(document, found.count));
        }
    }

    /// Characters of what a page lists, when a cursor with this path follows.
    fn most(&self, path: usize) -> usize {
        self.request.page_chars.saturating_sub(1_000 + 2 * path)
    }

    /// Takes the room for one more; the first that finds none ends the page. The cursor that may follow holds the path.
    fn has_room(&mut self, characters: usize, path: usize, place: Position) -> bool {
        if self.end.is_some() {
            return false;
        }
        let empty = self.characters == 0;
        self.characters += characters;
        if self.characters > self.most(path) && !empty {
            self.end = Some(self.last.clone());
            return false;
        }
        self.last = place;
        true
    }
}

impl Line {
    /// Drops the lines of context that are farthest away until at least so much is saved; gives what was.
    fn shorten(&mut self, excess: usize, cost: impl Fn(&str) -> usize) -> usize {
        let (mut above, mut below) = (0, self.after.len());
        let mut saved = 0;
        while saved < excess {
            let left = self.before.len() - above;
            if left > 0 && left >= below {
                saved += cost(&self.before[above]);
                above += 1;
            } else if below > 0 {
                below -= 1;
                saved += cost(&self.after[below]);
            } else {
                break;
            }
            self.shortened = true;
        }
        self.before.drain(..above);
        self.after.truncate(below);
        saved
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
