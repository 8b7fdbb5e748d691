//! Maps that people and models give: checked against the real document, kept with the content they fit.

use std::{collections::HashSet, path::Path, sync::Arc};

use serde_json::Value;
use shelf_base::{CallContext, Digest, address::Place};
use shelf_catalog::NewMap;
use shelf_reading::map::{Location, MOST_NODES, Map, contains, hull};

use super::{
    Answer, CitationError, Opened, Source,
    mapped::{self, MapKey, Mapped},
    wire::{self, NodeJson},
};
use crate::{AddRequest, Caller, Error, Library, What};

/// Bytes of a map that is given.
const MAP_BYTES: usize = 32 << 20;
/// Characters of an id, and of a type.
const ID_CHARS: usize = 256;
/// How deep the nodes may be.
const MOST_DEPTH: usize = 64;
/// Problems that are looked for before the check ends.
const MOST_PROBLEMS: usize = 200;

/// A map that was kept.
#[derive(Clone, Debug)]
pub struct GivenMapReply {
    /// The resource's id in addresses.
    pub resource_id: String,
    /// Which of the document's maps it is.
    pub number: u32,
    /// How many nodes it has.
    pub nodes: usize,
}

/// A map that was imported.
#[derive(Clone, Debug)]
pub struct ImportedMap {
    /// What was kept.
    pub kept: GivenMapReply,
    /// Whether the document was added for it.
    pub added: bool,
    /// Whether the map was made of other content than the document has.
    pub hash_differs: bool,
}

impl Library {
    /// Puts a map in the place of the one that is made of a document. `json` is the contract's `ResourceMap`, or the list
    /// of its nodes. `origin` says who made it.
    pub fn set_map(
        &self,
        caller: &Caller,
        id: &str,
        json: &str,
        origin: &str,
        call: &CallContext,
    ) -> Answer<GivenMapReply> {
        caller.must_write()?;
        let source = self.cited(caller, id)?.ok_or_else(|| CitationError::NoResource(id.to_owned()))?;
        self.keep_map(caller, &source, nodes_of(&parsed(json)?)?, origin, call)
    }

    /// Goes back to the map that is made of the document.
    pub fn unset_map(&self, caller: &Caller, id: &str) -> Answer<()> {
        caller.must_write()?;
        let source = self.cited(caller, id)?.ok_or_else(|| CitationError::NoResource(id.to_owned()))?;
        let none = NewMap { source: source.version.hash, origin: "none".into(), map: Vec::new() };
        let (actor, scope) = (caller.pass.actor(), caller.pass.scope());
        self.catalog.set_map(actor, scope, source.document.id, none, self.now())?;
        Ok(())
    }

    /// Imports one file of `.resource_maps/`: finds or adds the document that it maps, names it, and keeps the map.
    pub fn import_map(&self, caller: &Caller, json: &str, call: &CallContext) -> Answer<ImportedMap> {
        caller.must_write()?;
        let value = parsed(json)?;
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let id = text("resource_id").ok_or_else(|| bad("it has no resource_id"))?;
        crate::validate::resource_id(id)?;
        let path = text("source_path").ok_or_else(|| bad("it has no source_path"))?;
        let nodes = nodes_of(&value)?;
        let known = match self.cited(caller, id)? {
            Some(known) => Some(known),
            None => {
                let found = self.catalog.named(caller.pass.scope(), None, path, 2)?;
                found.into_iter().find(|found| found.path == path).map(super::present)
            }
        };
        let (source, added) = match known {
            Some(known) => (known, false),
            None => {
                let mut request = AddRequest::new(What::Path(Path::new(path).to_owned()));
                request.resource_id = Some(id.to_owned());
                self.add(caller, &request, call)?;
                let found = self.cited(caller, id)?;
                (found.ok_or_else(|| CitationError::NoResource(id.to_owned()))?, true)
            }
        };
        if source.document.resource_id.is_none() {
            self.name_resource(caller, source.document.id, id)?;
        }
        let hash = value.pointer("/metadata/source_hash").and_then(Value::as_str);
        let hash_differs =
            hash.and_then(|hash| hash.parse::<Digest>().ok()).is_some_and(|hash| hash != source.version.hash);
        let kept = self.keep_map(caller, &source, nodes, "import", call)?;
        Ok(ImportedMap { kept, added, hash_differs })
    }

    fn keep_map(
        &self,
        caller: &Caller,
        source: &Source,
        nodes: Vec<NodeJson>,
        origin: &str,
        call: &CallContext,
    ) -> Answer<GivenMapReply> {
        let made = self.made_map(caller, source, call)?;
        let (map, problems) = checked(nodes, &made);
        if !problems.is_empty() {
            return Err(CitationError::BadMap { problems });
        }
        let count = map.nodes.len();
        let encoded = mapped::encode(&Mapped::new(map, made.extent.clone()));
        let map = encoded.ok_or_else(|| bad("it cannot be kept"))?;
        let new = NewMap { source: source.version.hash, origin: origin.to_owned(), map };
        let (actor, scope) = (caller.pass.actor(), caller.pass.scope());
        let number = self.catalog.set_map(actor, scope, source.document.id, new, self.now())?;
        let number = number.ok_or_else(|| CitationError::NoResource(source.id()))?;
        Ok(GivenMapReply { resource_id: source.id(), number, nodes: count })
    }

    /// The map that somebody gave a document, with the version that it fits.
    pub(super) fn opened_given(
        &self,
        caller: &Caller,
        source: &Source,
        _call: &CallContext,
    ) -> Answer<Option<Opened>> {
        let scope = caller.pass.scope();
        let document = source.document.id;
        let Some(number) = self.catalog.map_number(scope, document)? else { return Ok(None) };
        let key = MapKey::Given { document, number };
        let mapped = match self.maps.get(&key) {
            Some(known) => known,
            None => {
                let Some(given) = self.catalog.newest_map(scope, document)? else { return Ok(None) };
                if given.map.is_empty() {
                    return Ok(None);
                }
                let Some(mut mapped) = mapped::decode(&given.map) else {
                    return Err(Error::Unavailable {
                        what: format!("the map that was given to '{}' is damaged", source.document.path),
                        hint: "give it again, or run `shelf check`".into(),
                    }
                    .into());
                };
                mapped.given = Some((given.origin, given.source));
                let mapped = Arc::new(mapped);
                self.maps.keep(MapKey::Given { document, number: given.number }, &mapped);
                mapped
            }
        };
        let Some((origin, hash)) = mapped.given.clone() else { return Ok(None) };
        let mut source = source.clone();
        let source_changed = source.version.hash != hash;
        if source_changed {
            let versions = self.catalog.versions(scope, document)?;
            let fitting = versions.into_iter().rev().find(|version| version.hash == hash);
            // The content is gone; the map of what is there is better than none.
            let Some(fitting) = fitting else { return Ok(None) };
            source.version = fitting;
        }
        Ok(Some(Opened { source, mapped, given: Some((origin, number)), source_changed }))
    }
}

fn bad(what: &str) -> CitationError {
    CitationError::BadMap { problems: vec![what.to_owned()] }
}

fn parsed(json: &str) -> Answer<Value> {
    if json.len() > MAP_BYTES {
        return Err(
            Error::TooLarge { what: "the map".into(), limit: format!("{} MiB", MAP_BYTES >> 20) }.into()
        );
    }
    serde_json::from_str(json).map_err(|error| bad(&format!("it is not valid JSON: {error}")))
}

fn nodes_of(value: &Value) -> Answer<Vec<NodeJson>> {
    let nodes =
        if value.is_array() { value } else { value.get("nodes").ok_or_else(|| bad("it has no nodes"))? };
    serde_json::from_value(nodes.clone()).map_err(|error| bad(&format!("its nodes cannot be read: {error}")))
}

/// The map that nodes mean in a document, and all that is wrong with it.
fn checked(nodes: Vec<NodeJson>, made: &Mapped) -> (Map, Vec<String>) {
    let (mut map, mut problems) = wire::map_of(nodes, made.extent.modality());
    if map.nodes.is_empty() && problems.is_empty() {
        problems.push("it has no nodes".into());
    }
    if map.nodes.len() > MOST_NODES {
        problems.push(format!("it has {} nodes, but at most {MOST_NODES} are allowed", map.nodes.len()));
        return (map, problems);
    }
    let mut ids = HashSet::new();
    let mut depths: Vec<usize> = Vec::with_capacity(map.nodes.len());
    for at in 0..map.nodes.len() {
        if problems.len() >= MOST_PROBLEMS {
            break;
        }
        let node = &map.nodes[at];
        let depth = node.parent.map_or(0, |parent| depths[parent as usize] + 1);
        depths.push(depth);
        let mut wrong = |what: String| problems.push(format!("node '{}': {what}", node.id));
        let is_bad_id = node.id.is_empty()
            || node.id.chars().count() > ID_CHARS
            || node.id.chars().any(char::is_control)
            || node.kind.chars().count() > ID_CHARS;
        if is_bad_id {
            wrong(format!(
                "its id and type must be at most {ID_CHARS} characters without control characters"
            ));
        }
        if !ids.insert(node.id.clone()) {
            wrong("another node has the same id".into());
        }
        if depth >= MOST_DEPTH {
            wrong(format!("it is nested more than {MOST_DEPTH} levels deep"));
        }
        let Location::Here(place) = &node.location else { continue };
        let within = match made.extent.within(place) {
            Ok(within) => within,
            Err(error) => {
                wrong(error.to_string());
                continue;
            }
        };
        let parent = node.parent.map(|parent| &map.nodes[parent as usize]);
        if let Some(Location::Here(outer)) = parent.map(|parent| &parent.location)
            && !lies_within(outer, &within)
        {
            wrong(format!("it does not lie within its parent '{}'", parent.map_or("", |parent| &parent.id)));
        }
        map.nodes[at].location = Location::Here(within);
    }
    (map, problems)
}

/// A child may name a list of pages, which lies within the hull of its parent's.
fn lies_within(outer: &Place, inner: &Place) -> bool {
    contains(outer, inner) || contains(&hull(outer, outer), inner)
}
