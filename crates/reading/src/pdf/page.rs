//! Reads one page: executes its drawing operators and derives words and lines from the positions of strings.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use lopdf::content::{Content, Operation};
use lopdf::{Dictionary, Document, Object, ObjectId, Stream};

use super::MOST_STREAM;
use super::font::Font;
use super::matrix::Matrix;

/// Maximum unpacked size of all pages together.
const MOST_CONTENT: usize = 128 * 1_024 * 1_024;
/// Minimum cost of reading a piece of content, since forms may draw each other thousands of times. Real documents draw a
/// few forms per page.
const LEAST_COST: usize = 2 * 1_024;
/// Cost of each operator beside its bytes.
const OPERATOR_COST: usize = 8;
/// Maximum depth of nested forms.
const MOST_FORMS: usize = 12;
/// Maximum number of nodes to search for the resources of a page, since its ancestors may form a cycle.
const MOST_ANCESTORS: usize = 64;
/// Maximum number of saved states.
const MOST_STATES: usize = 512;

/// The gap between two strings, relative to the height of the text, from which they are two words.
const WORD_GAP: f32 = 0.17;
/// The same for two lines.
const LINE_GAP: f32 = 0.5;
/// The same for two paragraphs.
const PARAGRAPH_GAP: f32 = 2.1;

#[derive(Clone)]
struct State {
    place: Matrix,
    font: Option<Rc<Font>>,
    size: f32,
    /// Added to the width of every character.
    character_space: f32,
    /// Added to the width of every space.
    word_space: f32,
    stretch: f32,
    leading: f32,
}

/// A string that was shown: where in the text, where on the page, and how large.
pub(super) struct Run {
    /// Its bytes in the text of the page.
    pub bytes: Range<usize>,
    /// Two opposite corners of its box.
    pub corners: [(f32, f32); 2],
    /// The size of its font on the page, in points.
    pub size: f32,
}

/// Strings whose places are kept for one page.
const MOST_RUNS: usize = 50_000;
/// How far letters reach below and above the line they stand on, relative to their size.
const DESCENT: f32 = 0.2;
const ASCENT: f32 = 0.8;

pub(super) struct PageReader<'a> {
    document: &'a Document,
    /// Keyed by address, since the document does not change while it is read.
    fonts: HashMap<*const Dictionary, Rc<Font>>,
    left: usize,
    out: String,
    runs: Vec<Run>,
    state: State,
    saved: Vec<State>,
    text: Matrix,
    line: Matrix,
    /// Where the last string ended.
    end: Option<(f32, f32)>,
}

impl<'a> PageReader<'a> {
    pub(super) fn new(document: &'a Document) -> Self {
        Self {
            document,
            fonts: HashMap::new(),
            left: MOST_CONTENT,
            out: String::new(),
            runs: Vec::new(),
            state: State::new(),
            saved: Vec::new(),
            text: Matrix::IDENTITY,
            line: Matrix::IDENTITY,
            end: None,
        }
    }

    /// Whether the limit on unpacked content is used up.
    pub(super) fn is_exhausted(&self) -> bool {
        self.left == 0
    }

    /// The text of a page, without the parts that cannot be read, and where its strings stand.
    pub(super) fn read(&mut self, page: ObjectId) -> (String, Vec<Run>) {
        (self.state, self.end) = (State::new(), None);
        self.saved.clear();
        self.runs.clear();
        let resources = self.resources_of(page);
        let limit = MOST_STREAM.min(self.left);
        match self.document.get_page_content_with_limit(page, limit) {
            Ok(content) => self.follow(&content, &resources, 0),
            Err(_) => self.left = self.left.saturating_sub(limit),
        }
        (std::mem::take(&mut self.out), std::mem::take(&mut self.runs))
    }

    /// The resources of a page and of its ancestors, nearest first.
    fn resources_of(&self, page: ObjectId) -> Vec<&'a Dictionary> {
        let mut resources = Vec::new();
        let mut node = self.document.get_dictionary(page).ok();
        for _ in 0..MOST_ANCESTORS {
            let Some(dictionary) = node else { break };
            resources.extend(dictionary.get_deref(b"Resources", self.document).and_then(Object::as_dict));
            node = dictionary.get_deref(b"Parent", self.document).and_then(Object::as_dict).ok();
        }
        resources
    }

    fn follow(&mut self, content: &[u8], resources: &[&'a Dictionary], depth: usize) {
        self.left = self.left.saturating_sub(content.len().max(LEAST_COST));
        for operation in Content::decode_iter(content).map_while(Result::ok) {
            if self.left == 0 {
                break;
            }
            self.left = self.left.saturating_sub(OPERATOR_COST);
            if operation.operator == "Do" {
                self.draw(&operation, resources, depth);
            } else {
                self.obey(&operation, resources);
            }
        }
    }

    fn obey(&mut self, operation: &Operation, resources: &[&'a Dictionary]) {
        let operands = operation.operands.as_slice();
        let number = |index: usize| operands.get(index).and_then(|each| each.as_float().ok()).unwrap_or(0.0);
        match operation.operator.as_str() {
            "q" if self.saved.len() < MOST_STATES => self.saved.push(self.state.clone()),
            "Q" => self.state = self.saved.pop().unwrap_or_else(|| self.state.clone()),
            "cm" => {
                let change = Matrix::of(operands).unwrap_or(Matrix::IDENTITY);
                self.state.place = change.then(self.state.place);
            }
            "BT" => (self.text, self.line) = (Matrix::IDENTITY, Matrix::IDENTITY),
            "Tf" => {
                self.state.size = number(1);
                self.state.font = operands.first().and_then(|name| self.font(name, resources));
            }
            "Tc" => self.state.character_space = number(0),
            "Tw" => self.state.word_space = number(0),
            "Tz" => self.state.stretch = number(0) / 100.0,
            "TL" => self.state.leading = number(0),
            "Td" => self.move_line(number(0), number(1)),
            "TD" => {
                self.state.leading = -number(1);
                self.move_line(number(0), number(1));
            }
            "Tm" => {
                self.line = Matrix::of(operands).unwrap_or(self.line);
                self.text = self.line;
            }
            "T*" => self.next_line(),
            "Tj" => self.show_all(operands),
            "TJ" => self
                .show_all(operands.first().and_then(|list| list.as_array().ok()).map_or(&[], Vec::as_slice)),
            "'" => {
                self.next_line();
                self.show_all(operands);
            }
            "\"" => {
                (self.state.word_space, self.state.character_space) = (number(0), number(1));
                self.next_line();
                self.show_all(operands.get(2..).unwrap_or_default());
            }
            _ => {}
        }
    }

    fn move_line(&mut self, x: f32, y: f32) {
        self.line = Matrix::shift(x, y).then(self.line);
        self.text = self.line;
    }

    fn next_line(&mut self) {
        self.move_line(0.0, -self.state.leading);
    }

    fn show_all(&mut self, parts: &[Object]) {
        for part in parts {
            match (part, part.as_float()) {
                (Object::String(bytes, _), _) => self.show(bytes),
                (_, Ok(back)) => self.advance(-back / 1_000.0 * self.state.size),
                _ => {}
            }
        }
    }

    fn advance(&mut self, width: f32) {
        self.text = Matrix::shift(width * self.state.stretch, 0.0).then(self.text);
    }

    fn show(&mut self, bytes: &[u8]) {
        let Some(font) = self.state.font.clone() else { return };
        let mut shown = String::new();
        let advances = font.write(bytes, &mut shown);
        if !shown.trim().is_empty() {
            self.separate();
        }
        let (first, start) = (self.out.len(), self.text.then(self.state.place));
        if !(shown.starts_with(' ') && self.out.ends_with([' ', '\n'])) {
            self.out.push_str(&shown);
        } else {
            self.out.push_str(shown.trim_start());
        }
        let mut width = 0.0;
        for (advance, is_space) in advances {
            width += advance * self.state.size + self.state.character_space;
            width += if is_space { self.state.word_space } else { 0.0 };
        }
        self.advance(width);
        if !shown.trim().is_empty() {
            let end = self.text.then(self.state.place);
            self.end = Some(end.origin());
            self.note(first, start, end);
        }
    }

    /// Notes where the string stands that was shown last.
    fn note(&mut self, first: usize, start: Matrix, end: Matrix) {
        if self.runs.len() >= MOST_RUNS {
            return;
        }
        let size = (self.state.size * start.height()).abs();
        let (right, up) = start.baseline();
        let ((x1, y1), (x2, y2)) = (start.origin(), end.origin());
        // Upwards is a quarter turn from the direction of the line.
        let corners = [
            (x1 + up * size * DESCENT, y1 - right * size * DESCENT),
            (x2 - up * size * ASCENT, y2 + right * size * ASCENT),
        ];
        self.runs.push(Run { bytes: first..self.out.len(), corners, size });
    }

    /// Writes the separator that the distance from the end of the last string implies.
    fn separate(&mut self) {
        let Some(end) = self.end else { return };
        let place = self.text.then(self.state.place);
        let height = (self.state.size * place.height()).abs();
        let ((x, y), (right, up)) = (place.origin(), place.baseline());
        let (over, rise) = (x - end.0, y - end.1);
        let along = over * right + rise * up;
        let across = (rise * right - over * up).abs();
        let gap = if across > PARAGRAPH_GAP * height {
            "\n\n"
        } else if across > LINE_GAP * height {
            "\n"
        } else if along > WORD_GAP * height || along < -height {
            " "
        } else {
            return;
        };
        self.out.truncate(self.out.trim_end_matches(' ').len());
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push_str(gap);
        }
    }

    fn font(&mut self, name: &Object, resources: &[&'a Dictionary]) -> Option<Rc<Font>> {
        let font = self.resource(b"Font", name, resources)?.as_dict().ok()?;
        let read = || Rc::new(Font::read(self.document, font));
        Some(self.fonts.entry(std::ptr::from_ref(font)).or_insert_with(read).clone())
    }

    fn resource(&self, kind: &[u8], name: &Object, resources: &[&'a Dictionary]) -> Option<&'a Object> {
        let name = name.as_name().ok()?;
        resources.iter().find_map(|resources| {
            let all = resources.get_deref(kind, self.document).and_then(Object::as_dict).ok()?;
            all.get_deref(name, self.document).ok()
        })
    }

    /// Draws a form: a piece of content with its own position and resources.
    fn draw(&mut self, operation: &Operation, resources: &[&'a Dictionary], depth: usize) {
        let object = operation.operands.first().and_then(|name| self.resource(b"XObject", name, resources));
        let Some(form) = object.and_then(|object| object.as_stream().ok()) else { return };
        let kind = form.dict.get_deref(b"Subtype", self.document).and_then(Object::as_name);
        if kind.is_ok_and(|kind| kind == b"Form") && depth < MOST_FORMS && self.left > 0 {
            self.draw_form(form, resources, depth);
        }
    }

    fn draw_form(&mut self, form: &'a Stream, resources: &[&'a Dictionary], depth: usize) {
        let limit = MOST_STREAM.min(self.left);
        let Ok(content) = form.get_plain_content_with_limit(limit) else {
            self.left = self.left.saturating_sub(limit);
            return;
        };
        let outer = (self.state.clone(), std::mem::take(&mut self.saved), self.text, self.line);
        let matrix = form.dict.get_deref(b"Matrix", self.document).and_then(Object::as_array);
        if let Some(matrix) = matrix.ok().and_then(|numbers| Matrix::of(numbers)) {
            self.state.place = matrix.then(self.state.place);
        }
        let own = form.dict.get_deref(b"Resources", self.document).and_then(Object::as_dict).ok();
        let resources: Vec<_> = own.into_iter().chain(resources.iter().copied()).collect();
        self.follow(&content, &resources, depth + 1);
        (self.state, self.saved, self.text, self.line) = outer;
    }
}

impl State {
    fn new() -> Self {
        Self {
            place: Matrix::IDENTITY,
            font: None,
            size: 1.0,
            character_space: 0.0,
            word_space: 0.0,
            stretch: 1.0,
            leading: 0.0,
        }
    }
}
