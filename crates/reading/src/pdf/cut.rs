//! Cuts pages out of a document without changing what is on them.
//!
//! A new document is made of the pages and of whatever they refer to: content, fonts, pictures, annotations. What a page
//! inherits becomes its own. References to pages that are left out are dropped, and links that lead to a page that is
//! kept still do, by whatever name they called it.

use std::collections::HashMap;

use lopdf::{Dictionary, Document, Object, ObjectId, SaveOptions, dictionary};
use shelf_base::address::Pages;

use super::destinations::Destinations;
use super::frame::inherited;
use crate::Unreadable;

/// What a page may inherit.
const INHERITED: [&[u8]; 4] = [b"Resources", b"MediaBox", b"CropBox", b"Rotate"];
/// Entries of a page that belong to the document it was part of.
const LEFT: [&[u8]; 4] = [b"Parent", b"StructParents", b"B", b"Tabs"];
/// How deep direct objects may be nested.
const MOST_DEPTH: usize = 64;

/// Why pages could not be cut.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CutError {
    /// The document cannot be read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// A page that it does not have.
    #[error("the document has {count} pages, so there is no page {page}")]
    NoPage {
        /// The page.
        page: u32,
        /// The number of pages.
        count: u32,
    },
}

struct Copy<'a> {
    source: &'a Document,
    target: Document,
    destinations: Destinations<'a>,
    /// Where each object of the source went.
    moved: HashMap<ObjectId, ObjectId>,
    /// All pages of the source: where each went, if it did.
    pages: HashMap<ObjectId, Option<ObjectId>>,
    waiting: Vec<(ObjectId, ObjectId)>,
}

pub(super) fn cut(source: &Document, pages: &Pages) -> Result<Vec<u8>, CutError> {
    let all: Vec<ObjectId> = source.page_iter().take(super::MOST_PAGES).collect();
    let count = all.len() as u32;
    if pages.last() > count {
        return Err(CutError::NoPage { page: pages.last(), count });
    }
    let mut copy = Copy {
        source,
        target: Document::with_version(source.version.clone()),
        destinations: Destinations::of(source),
        moved: HashMap::new(),
        pages: all.iter().map(|page| (*page, None)).collect(),
        waiting: Vec::new(),
    };
    let wanted: Vec<ObjectId> = pages.iter().filter_map(|page| all.get(page as usize - 1).copied()).collect();
    let root = copy.target.new_object_id();
    for page in &wanted {
        let id = copy.target.new_object_id();
        copy.pages.insert(*page, Some(id));
    }
    let mut kids: Vec<Object> = Vec::new();
    for page in &wanted {
        kids.extend(copy.page(*page, root).map(Object::Reference));
    }
    copy.rest();
    let tree = dictionary! { "Type" => "Pages", "Count" => kids.len() as i64, "Kids" => kids };
    copy.target.objects.insert(root, tree.into());
    let mut catalog = dictionary! { "Type" => "Catalog", "Pages" => root };
    copy.layers(&mut catalog);
    let catalog = copy.target.add_object(catalog);
    copy.target.trailer.set("Root", catalog);
    let mut bytes = Vec::new();
    let options = SaveOptions::builder().use_object_streams(false).use_xref_streams(false).build();
    copy.target
        .save_with_options(&mut bytes, options)
        .map_err(|error| Unreadable::damaged(error.to_string()))?;
    Ok(bytes)
}

impl<'a> Copy<'a> {
    fn page(&mut self, page: ObjectId, root: ObjectId) -> Option<ObjectId> {
        let id = self.pages.get(&page).copied().flatten()?;
        let mut own = self.source.get_dictionary(page).ok()?.clone();
        for name in INHERITED {
            if !own.has(name)
                && let Some(value) = inherited(self.source, page, name)
            {
                own.set(name, value.clone());
            }
        }
        LEFT.into_iter().for_each(|name| {
            own.remove(name);
        });
        let annotations = own.remove(b"Annots");
        let mut own = self.dictionary(&own, 0);
        own.set("Parent", root);
        if let Some(kept) = annotations.and_then(|list| self.annotations(&list, id)) {
            own.set("Annots", kept);
        }
        self.target.objects.insert(id, own.into());
        Some(id)
    }

    /// Links and notes, each pointing back at its page. Links to places in the document lead to the place itself.
    fn annotations(&mut self, list: &Object, page: ObjectId) -> Option<Object> {
        let source = self.source;
        let (_, list) = source.dereference(list).ok()?;
        let mut kept: Vec<Object> = Vec::new();
        for annotation in list.as_array().ok()? {
            let dictionary = source.dereference(annotation).and_then(|(_, found)| found.as_dict());
            let Ok(dictionary) = dictionary else { continue };
            let target = self.destinations.target(dictionary).map(<[Object]>::to_vec);
            let mut own = dictionary.clone();
            for name in [b"P".as_slice(), b"Parent", b"StructParent"] {
                own.remove(name);
            }
            let leads_inside = own.has(b"Dest") || is_go_to(source, &own);
            if leads_inside {
                own.remove(b"Dest");
                own.remove(b"A");
            }
            let mut own = self.dictionary(&own, 0);
            own.set("P", page);
            if let Some(place) = target.and_then(|place| self.place(&place)) {
                own.set("Dest", place);
            }
            let id = self.target.add_object(own);
            if let Object::Reference(from) = annotation {
                self.moved.insert(*from, id);
            }
            kept.push(id.into());
        }
        Some(kept.into())
    }

    /// A place on a page that is kept.
    fn place(&mut self, place: &[Object]) -> Option<Object> {
        let page = match place.first()? {
            Object::Reference(id) => self.pages.get(id).copied().flatten()?,
            _ => return None,
        };
        let mut parts: Vec<Object> = vec![page.into()];
        parts.extend(place.iter().skip(1).map(|part| self.object(part, 0)));
        Some(parts.into())
    }

    /// Which layers are shown.
    fn layers(&mut self, catalog: &mut Dictionary) {
        let source = self.source;
        let layers = source.catalog().and_then(|catalog| catalog.get_deref(b"OCProperties", source));
        if let Ok(layers) = layers.and_then(Object::as_dict) {
            let layers = self.dictionary(layers, 0);
            self.rest();
            catalog.set("OCProperties", layers);
        }
    }

    /// Copies what has been referred to, until nothing is left.
    fn rest(&mut self) {
        while let Some((from, to)) = self.waiting.pop() {
            let source = self.source;
            let Some(object) = source.objects.get(&from) else { continue };
            let copied = self.object(object, 0);
            self.target.objects.insert(to, copied);
        }
    }

    fn object(&mut self, object: &Object, depth: usize) -> Object {
        if depth > MOST_DEPTH {
            return Object::Null;
        }
        match object {
            Object::Reference(id) => self.reference(*id),
            Object::Array(parts) => {
                Object::Array(parts.iter().map(|part| self.object(part, depth + 1)).collect())
            }
            Object::Dictionary(dictionary) => Object::Dictionary(self.dictionary(dictionary, depth + 1)),
            Object::Stream(stream) => {
                let mut copied = stream.clone();
                copied.dict = self.dictionary(&stream.dict, depth + 1);
                copied.dict.set("Length", stream.content.len() as i64);
                Object::Stream(copied)
            }
            other => other.clone(),
        }
    }

    fn dictionary(&mut self, dictionary: &Dictionary, depth: usize) -> Dictionary {
        let mut copied = Dictionary::new();
        for (name, value) in dictionary.iter() {
            copied.set(name.clone(), self.object(value, depth));
        }
        copied
    }

    fn reference(&mut self, id: ObjectId) -> Object {
        if let Some(page) = self.pages.get(&id) {
            return page.map_or(Object::Null, Object::Reference);
        }
        if !self.source.objects.contains_key(&id) {
            return Object::Null;
        }
        // A node of the page tree leads to every page.
        let is_tree = self
            .source
            .get_dictionary(id)
            .is_ok_and(|node| node.has_type(b"Pages") || node.has_type(b"Catalog"));
        if is_tree {
            return Object::Null;
        }
        let to = match self.moved.get(&id) {
            Some(known) => *known,
            None => {
                let to = self.target.new_object_id();
                self.moved.insert(id, to);
                self.waiting.push((id, to));
                to
            }
        };
        to.into()
    }
}

fn is_go_to(source: &Document, annotation: &Dictionary) -> bool {
    let action = annotation.get_deref(b"A", source).and_then(Object::as_dict);
    let kind = action.and_then(|action| action.get_deref(b"S", source)).and_then(Object::as_name);
    kind.is_ok_and(|kind| kind == b"GoTo")
}
