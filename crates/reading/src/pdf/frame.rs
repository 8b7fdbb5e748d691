//! The visible frame of a page: what is shown of it, and how it is turned.

use lopdf::{Dictionary, Document, Object, ObjectId};

/// Maximum number of nodes to search for what a page inherits, since its ancestors may form a cycle.
const MOST_ANCESTORS: usize = 64;
/// A sheet of A4, for pages that do not say.
const USUAL: [f32; 4] = [0.0, 0.0, 595.0, 842.0];

/// The frame of a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Left, bottom, right, top.
    edges: [f32; 4],
    /// Quarter turns clockwise.
    turns: u8,
}

impl Frame {
    pub(super) fn of(document: &Document, page: ObjectId) -> Self {
        let edges = [b"CropBox".as_slice(), b"MediaBox"].into_iter().find_map(|name| {
            let numbers = inherited(document, page, name)?.as_array().ok()?;
            let number = |at: usize| {
                let object = numbers.get(at)?;
                document.dereference(object).ok()?.1.as_float().ok()
            };
            let [a, b, c, d] = [number(0)?, number(1)?, number(2)?, number(3)?];
            let edges = [a.min(c), b.min(d), a.max(c), b.max(d)];
            (edges[2] - edges[0] > 1.0 && edges[3] - edges[1] > 1.0).then_some(edges)
        });
        let turns = inherited(document, page, b"Rotate").and_then(|turn| turn.as_i64().ok()).unwrap_or(0);
        Self { edges: edges.unwrap_or(USUAL), turns: (turns.rem_euclid(360) / 90) as u8 }
    }

    /// A point of the page as parts of its width and height from the top left, as it is shown.
    pub(super) fn part(&self, (x, y): (f32, f32)) -> (f32, f32) {
        let [left, bottom, right, top] = self.edges;
        let (x, y) = ((x - left) / (right - left), (top - y) / (top - bottom));
        let (x, y) = match self.turns {
            1 => (1.0 - y, x),
            2 => (1.0 - x, 1.0 - y),
            3 => (y, 1.0 - x),
            _ => (x, y),
        };
        let bounded = |part: f32| if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 };
        (bounded(x), bounded(y))
    }
}

/// A value that a page has itself or from an ancestor.
pub(super) fn inherited<'a>(document: &'a Document, page: ObjectId, name: &[u8]) -> Option<&'a Object> {
    let mut node = document.get_dictionary(page).ok();
    for _ in 0..MOST_ANCESTORS {
        let dictionary: &Dictionary = node?;
        if let Ok(found) = dictionary.get_deref(name, document) {
            return Some(found);
        }
        node = dictionary.get_deref(b"Parent", document).and_then(Object::as_dict).ok();
    }
    None
}

/// A part of 65,535.
pub(super) fn scaled(part: f32) -> u16 {
    (part * f32::from(u16::MAX)).round() as u16
}
