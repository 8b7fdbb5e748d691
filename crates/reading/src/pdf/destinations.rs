//! Bookmarks, and the places that bookmarks and links lead to.

use std::collections::{HashMap, HashSet};

use lopdf::{Dictionary, Document, Object, ObjectId};

use super::frame::{Frame, scaled};
use crate::Bookmark;

/// Bookmarks that are read at most.
const MOST_BOOKMARKS: usize = 50_000;
/// How deep they may be.
const MOST_LEVELS: u8 = 32;
/// Names of places that are read at most.
const MOST_NAMES: usize = 200_000;
/// Characters of a title.
const TITLE_CHARS: usize = 400;

/// The places in a document that have names.
pub(super) struct Destinations<'a> {
    document: &'a Document,
    names: HashMap<&'a [u8], &'a Object>,
}

impl<'a> Destinations<'a> {
    pub(super) fn of(document: &'a Document) -> Self {
        let mut found = Self { document, names: HashMap::new() };
        let Ok(catalog) = document.catalog() else { return found };
        if let Ok(old) = catalog.get_deref(b"Dests", document).and_then(Object::as_dict) {
            found.names.extend(old.iter().take(MOST_NAMES).map(|(name, place)| (name.as_slice(), place)));
        }
        let names = catalog.get_deref(b"Names", document).and_then(Object::as_dict);
        if let Ok(tree) =
            names.and_then(|names| names.get_deref(b"Dests", document)).and_then(Object::as_dict)
        {
            found.read_tree(tree);
        }
        found
    }

    fn read_tree(&mut self, root: &'a Dictionary) {
        let mut waiting = vec![root];
        let mut seen: HashSet<*const Dictionary> = HashSet::new();
        while let Some(node) = waiting.pop() {
            if !seen.insert(std::ptr::from_ref(node)) || self.names.len() >= MOST_NAMES {
                continue;
            }
            let kids = node.get_deref(b"Kids", self.document).and_then(Object::as_array);
            waiting.extend(kids.into_iter().flatten().filter_map(|kid| self.resolved(kid)?.as_dict().ok()));
            let names = node.get_deref(b"Names", self.document).and_then(Object::as_array);
            for pair in names.map_or([].as_slice(), Vec::as_slice).chunks_exact(2) {
                if let [Object::String(name, _), place] = pair {
                    self.names.insert(name, place);
                }
            }
        }
    }

    fn resolved(&self, object: &'a Object) -> Option<&'a Object> {
        self.document.dereference(object).ok().map(|(_, object)| object)
    }

    /// The explicit place that a destination means: an array that begins with a page.
    pub(super) fn explicit(&self, place: &'a Object) -> Option<&'a [Object]> {
        let mut place = self.resolved(place)?;
        for _ in 0..8 {
            place = match place {
                Object::Array(parts) => return Some(parts),
                Object::Dictionary(dictionary) => self.resolved(dictionary.get(b"D").ok()?)?,
                Object::Name(name) | Object::String(name, _) => {
                    self.resolved(self.names.get(name.as_slice()).copied()?)?
                }
                _ => return None,
            };
        }
        None
    }

    /// The destination of a bookmark or link, if it leads to a place in the same document.
    pub(super) fn target(&self, item: &'a Dictionary) -> Option<&'a [Object]> {
        if let Ok(place) = item.get(b"Dest") {
            return self.explicit(place);
        }
        let action = self.resolved(item.get(b"A").ok()?)?.as_dict().ok()?;
        let kind = action.get_deref(b"S", self.document).and_then(Object::as_name).ok()?;
        if kind == b"GoTo" { self.explicit(action.get(b"D").ok()?) } else { None }
    }
}

/// The bookmarks of a document.
pub(super) fn bookmarks(document: &Document, numbers: &HashMap<ObjectId, u32>) -> Vec<Bookmark> {
    let mut found = Vec::new();
    let root = document.catalog().and_then(|catalog| catalog.get_deref(b"Outlines", document));
    let Ok(root) = root.and_then(Object::as_dict) else { return found };
    let destinations = Destinations::of(document);
    let mut seen: HashSet<*const Dictionary> = HashSet::new();
    // Items that are still to be read, with their levels: the next sibling below the first child.
    let mut waiting: Vec<(&Dictionary, u8)> = Vec::new();
    waiting.extend(root.get_deref(b"First", document).and_then(Object::as_dict).ok().map(|first| (first, 1)));
    while let Some((item, level)) = waiting.pop() {
        if !seen.insert(std::ptr::from_ref(item)) || found.len() >= MOST_BOOKMARKS {
            continue;
        }
        found.extend(bookmark(document, &destinations, numbers, item, level));
        let follow = |name: &[u8]| item.get_deref(name, document).and_then(Object::as_dict).ok();
        waiting.extend(follow(b"Next").map(|next| (next, level)));
        if level < MOST_LEVELS {
            waiting.extend(follow(b"First").map(|first| (first, level + 1)));
        }
    }
    found
}

fn bookmark<'a>(
    document: &'a Document,
    destinations: &Destinations<'a>,
    numbers: &HashMap<ObjectId, u32>,
    item: &'a Dictionary,
    level: u8,
) -> Option<Bookmark> {
    let title = item.get_deref(b"Title", document).ok().and_then(|title| title.as_str().ok())?;
    let title = text_string(title);
    let place = destinations.target(item)?;
    let (page, top) = match place.first()? {
        Object::Reference(id) => (*numbers.get(id)?, top(document, *id, place)),
        // Some programs write the index of the page.
        Object::Integer(index) => (u32::try_from(*index).ok()?.checked_add(1)?, 0),
        _ => return None,
    };
    Some(Bookmark { level, title, page, top })
}

/// Where on its page a place is.
fn top(document: &Document, page: ObjectId, place: &[Object]) -> u16 {
    let kind = place.get(1).and_then(|kind| kind.as_name().ok()).unwrap_or_default();
    let at = match kind {
        b"XYZ" => 3,
        b"FitH" | b"FitBH" => 2,
        b"FitR" => 5,
        _ => return 0,
    };
    let Some(y) = place.get(at).and_then(|y| y.as_float().ok()) else { return 0 };
    scaled(Frame::of(document, page).part((0.0, y)).1)
}

/// A text string: UTF-16 or UTF-8 with a mark in front, otherwise one byte a character.
pub(super) fn text_string(bytes: &[u8]) -> String {
    let text = if bytes.starts_with(&[0xFE, 0xFF]) || bytes.starts_with(&[0xFF, 0xFE]) {
        let encoding = if bytes[0] == 0xFE { encoding_rs::UTF_16BE } else { encoding_rs::UTF_16LE };
        encoding.decode_with_bom_removal(bytes).0.into_owned()
    } else if let Some(rest) = bytes.strip_prefix(&[0xEF, 0xBB, 0xBF]) {
        String::from_utf8_lossy(rest).into_owned()
    } else {
        encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned()
    };
    let words: Vec<&str> = text.split(|each: char| each.is_whitespace() || each.is_control()).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().take(TITLE_CHARS).collect()
}
