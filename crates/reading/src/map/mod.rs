//! Maps: the tree of nodes that a document consists of, each with its exact place.
//!
//! A map is made from the document itself, without a model: from its headings, symbols, keys, paragraphs, pages,
//! chapters or cues. There is one node for each of them and none for the whole. Three properties hold for every map
//! that is made here: ids are unique, a child's id is its parent's with a part of its own after a dot, and a child lies
//! within its parent.

mod asciidoc;
mod assemble;
mod data;
mod hull;
mod markup;
mod media;
mod paged;
mod summary;
#[cfg(test)]
mod tests;
mod text;

use std::borrow::Cow;

use shelf_base::address::{Address, Modality, Place};

use crate::Text;
pub use hull::{contains, hull};
pub use media::media_map;

/// The most nodes of a map; what comes after them in a document is part of the last ones.
pub const MOST_NODES: usize = 100_000;

/// A part of a document that has a title of its own.
pub const SECTION: &str = "section";
/// Something that the document defines: a symbol, a key.
pub const DEFINITION: &str = "definition";

/// Where a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// At a place in the resource itself.
    Here(Place),
    /// Elsewhere: at an address, which is followed once.
    Elsewhere(Address),
}

impl Location {
    /// The modality, as locations and replies name it.
    pub const fn modality(&self) -> Modality {
        match self {
            Self::Here(place) => place.modality(),
            Self::Elsewhere(_) => Modality::Virtual,
        }
    }

    /// The place in the resource itself.
    pub const fn place(&self) -> Option<&Place> {
        match self {
            Self::Here(place) => Some(place),
            Self::Elsewhere(_) => None,
        }
    }
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapNode {
    /// Its id, unique in the map.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its type.
    pub kind: Cow<'static, str>,
    /// Where it is.
    pub location: Location,
    /// The first sentences.
    pub summary: Option<String>,
    /// The node that it is part of.
    pub parent: Option<u32>,
    /// Its parts, in order.
    pub children: Vec<u32>,
}

/// A map: nodes in reading order, each before its children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Map {
    /// All nodes.
    pub nodes: Vec<MapNode>,
    /// The nodes that are part of no other.
    pub roots: Vec<u32>,
}

/// The map of a document that has text. `path` and `mime` tell which language it is written in.
pub fn text_map(path: &str, mime: &str, text: &Text<'_>) -> Map {
    let entries = if text.pages.is_empty() { text::entries(path, mime, text) } else { paged::entries(text) };
    assemble::assemble(entries)
}

/// The map of an image: all of it.
pub fn image_map() -> Map {
    let whole = shelf_base::address::Region::from_millionths([0, 0, 1_000_000, 1_000_000]).ok();
    assemble::assemble(vec![Entry {
        level: 0,
        title: "Image".into(),
        kind: SECTION,
        place: Place::Image(whole),
        summary: None,
    }])
}

/// The number of lines of a text: a line break ends a line and begins no further one.
pub fn line_count(text: &str) -> u32 {
    let breaks = memchr::memchr_iter(b'\n', text.as_bytes()).count();
    (breaks + usize::from(!text.is_empty() && !text.ends_with('\n'))) as u32
}

/// A node that is not in the tree yet.
#[derive(Clone, Debug)]
struct Entry {
    /// How deep it is; levels may have gaps.
    level: usize,
    title: String,
    kind: &'static str,
    place: Place,
    summary: Option<String>,
}
