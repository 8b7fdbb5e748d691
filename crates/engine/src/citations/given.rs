//! Maps that people and models give: checked against the real document, kept with the content they fit.

use std::{collections::HashSet, path::PathBuf, sync::Arc};

use serde_json::Value;
use shelf_base::{CallContext, Digest, address::Modality};
use shelf_catalog::NewMap;
use shelf_reading::map::{Location, MOST_NODES, Map, contains};

use super::{
    Answer, CitationError, Opened, Source,
    mapped::{self, About, Extent, MapKey, Mapped},
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
pub(super) const MOST_PROBLEMS: usize = 200;
/// Characters of the title of a map.
const TITLE_CHARS: usize = 1_000;
/// What `getStructure` says in the metadata itself.
const OWN_METADATA: [&str; 5] = ["source_hash", "source_size", "map_origin", "map_version", "source_changed"];

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
        let given = GivenMap::read(parsed(json)?)?;
        if let Some(other) = given.resource_id.as_deref().filter(|other| !is_named(&source, other)) {
            return Err(bad(&format!("it is the map of '{other}', not of '{}'", source.id())));
        }
        let present = self.opened_given(caller, &source, call)?;
        let is_virtual = present.is_some_and(|present| present.mapped.extent == Extent::Elsewhere);
        let extent = if given.is_virtual && is_virtual {
            Extent::Elsewhere
        } else {
            self.made_map(caller, &source, call)?.extent.clone()
        };
        let names = [source.id(), source.document.id.to_string()];
        let mapped = self.fitting_map(caller, given, extent, &names, call)?;
        self.keep_map(caller, &source, &mapped, origin)
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

    /// Imports one file of `.resource_maps/`: finds or adds the document that it maps, names it, and keeps the map. The
    /// file of a relative `source_path` is looked for in `folders` first. Nothing is added for a map that does not fit.
    pub fn import_map(
        &self,
        caller: &Caller,
        json: &str,
        folders: &[PathBuf],
        call: &CallContext,
    ) -> Answer<ImportedMap> {
        caller.must_write()?;
        let given = GivenMap::read(parsed(json)?)?;
        let id = given.resource_id.clone().ok_or_else(|| bad("it has no resource_id"))?;
        crate::validate::resource_id(&id)?;
        // The content of a resource that is only its map is the map itself.
        let hash = given.source_hash.filter(|_| !given.is_virtual);
        let (source, mapped, added) = if given.is_virtual {
            self.import_virtual(caller, &id, json, given, call)?
        } else {
            self.import_source(caller, &id, given, folders, call)?
        };
        let hash_differs = hash.is_some_and(|hash| hash != source.version.hash);
        let kept = self.keep_map(caller, &source, &mapped, "import")?;
        Ok(ImportedMap { kept, added, hash_differs })
    }

    /// The document of a map, which is added if there is none.
    fn import_source(
        &self,
        caller: &Caller,
        id: &str,
        given: GivenMap,
        folders: &[PathBuf],
        call: &CallContext,
    ) -> Answer<(Source, Mapped, bool)> {
        let path = given.source_path.clone().ok_or_else(|| bad("it has no source_path"))?;
        let file = located(&path, folders);
        let known = match self.cited(caller, id)? {
            Some(known) => Some(known),
            None => self.at_path(caller, &file.to_string_lossy())?.or(self.at_path(caller, &path)?),
        };
        let Some(mut known) = known else {
            let extent = self.extent_of_file(caller, &file, call)?;
            let mapped = self.fitting_map(caller, given, extent, &[id.to_owned()], call)?;
            let mut request = AddRequest::new(What::Path(file));
            request.resource_id = Some(id.to_owned());
            self.add(caller, &request, call)?;
            let found = self.cited(caller, id)?;
            let source = found.ok_or_else(|| CitationError::NoResource(id.to_owned()))?;
            return Ok((source, mapped, true));
        };
        let names = [id.to_owned(), known.id(), known.document.id.to_string()];
        if let Some(present) = known.document.resource_id.as_deref().filter(|present| *present != id) {
            return Err(bad(&format!(
                "its document '{path}' is the resource '{present}'; a document has one resource_id and one map"
            )));
        }
        let extent = self.made_map(caller, &known, call)?.extent.clone();
        let mapped = self.fitting_map(caller, given, extent, &names, call)?;
        if known.document.resource_id.is_none() {
            self.name_resource(caller, known.document.id, id)?;
            known.document.resource_id = Some(id.to_owned());
        }
        Ok((known, mapped, false))
    }

    /// A resource of virtual nodes only, which has no document but its own map.
    fn import_virtual(
        &self,
        caller: &Caller,
        id: &str,
        json: &str,
        given: GivenMap,
        call: &CallContext,
    ) -> Answer<(Source, Mapped, bool)> {
        let known = self.cited(caller, id)?;
        if let Some(known) = &known {
            let present = self.opened_given(caller, known, call)?;
            if present.is_none_or(|present| present.mapped.extent != Extent::Elsewhere) {
                return Err(bad(&format!(
                    "'{id}' is a document already; a virtual map needs an ID of its own"
                )));
            }
        }
        let mapped = self.fitting_map(caller, given, Extent::Elsewhere, &[id.to_owned()], call)?;
        let (name, collection) = match &known {
            Some(known) => (known.document.path.clone(), Some(known.document.collection_name.clone())),
            None => (format!(".resource_maps/{id}.json"), None),
        };
        let mut request = AddRequest::new(What::Content { name, bytes: json.as_bytes().to_vec() });
        request.resource_id = Some(id.to_owned());
        request.collection = collection;
        self.add(caller, &request, call)?;
        let source = self.cited(caller, id)?.ok_or_else(|| CitationError::NoResource(id.to_owned()))?;
        Ok((source, mapped, known.is_none()))
    }

    /// The document at exactly this path.
    fn at_path(&self, caller: &Caller, path: &str) -> Answer<Option<Source>> {
        let found = self.catalog.named(caller.pass.scope(), None, path, 2)?;
        Ok(found.into_iter().find(|found| found.path == path).map(super::present))
    }

    /// The map that was given, if it fits a resource of this extent with these names.
    fn fitting_map(
        &self,
        caller: &Caller,
        given: GivenMap,
        extent: Extent,
        names: &[String],
        call: &CallContext,
    ) -> Answer<Mapped> {
        let (map, mut problems) = checked(given.nodes, &extent);
        if problems.is_empty() {
            problems = self.check_targets(caller, &map, &extent, names, call)?;
        }
        if !problems.is_empty() {
            problems.truncate(MOST_PROBLEMS);
            return Err(CitationError::BadMap { problems });
        }
        let mut mapped = Mapped::new(map, extent);
        mapped.about = given.about;
        Ok(mapped)
    }

    fn keep_map(
        &self,
        caller: &Caller,
        source: &Source,
        mapped: &Mapped,
        origin: &str,
    ) -> Answer<GivenMapReply> {
        let map = mapped::encode(mapped).ok_or_else(|| bad("it cannot be kept"))?;
        let new = NewMap { source: source.version.hash, origin: origin.to_owned(), map };
        let (actor, scope) = (caller.pass.actor(), caller.pass.scope());
        let number = self.catalog.set_map(actor, scope, source.document.id, new, self.now())?;
        let number = number.ok_or_else(|| CitationError::NoResource(source.id()))?;
        Ok(GivenMapReply { resource_id: source.id(), number, nodes: mapped.map.nodes.len() })
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
                        what: format!("the map that was given to '{}' is damaged", source.id()),
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

/// Whether an address with this name means the document.
fn is_named(source: &Source, name: &str) -> bool {
    source.id() == name || source.document.id.to_string() == name || source.version.hash.to_string() == name
}

/// The file that a map was made of: beside the map if it is there, otherwise where the path says.
fn located(path: &str, folders: &[PathBuf]) -> PathBuf {
    let beside = folders.iter().map(|folder| folder.join(path)).find(|file| file.is_file());
    beside.and_then(|file| std::path::absolute(file).ok()).unwrap_or_else(|| PathBuf::from(path))
}

/// A map as it was given.
struct GivenMap {
    resource_id: Option<String>,
    source_path: Option<String>,
    source_hash: Option<Digest>,
    is_virtual: bool,
    about: About,
    nodes: Vec<NodeJson>,
}

impl GivenMap {
    fn read(mut value: Value) -> Answer<Self> {
        let nodes = match &mut value {
            Value::Array(nodes) => Value::Array(std::mem::take(nodes)),
            map => map.get_mut("nodes").map(Value::take).ok_or_else(|| bad("it has no nodes"))?,
        };
        let nodes = serde_json::from_value(nodes)
            .map_err(|error| bad(&format!("its nodes cannot be read: {error}")))?;
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let hash = value.pointer("/metadata/source_hash").and_then(Value::as_str);
        Ok(Self {
            resource_id: text("resource_id"),
            source_path: text("source_path"),
            source_hash: hash.and_then(|hash| hash.parse().ok()),
            is_virtual: text("type").as_deref() == Some(Modality::Virtual.name()),
            about: about(&value),
            nodes,
        })
    }
}

/// The title and what else a map says, without what the library itself knows of its document.
fn about(value: &Value) -> About {
    let title = value.get("title").and_then(Value::as_str).map(str::trim).filter(|title| !title.is_empty());
    let mut metadata = value.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    metadata.retain(|name, _| !OWN_METADATA.contains(&name.as_str()));
    About { title: title.map(|title| title.chars().take(TITLE_CHARS).collect()), metadata }
}

/// The map that nodes mean in a document, and all that is wrong with it.
fn checked(nodes: Vec<NodeJson>, extent: &Extent) -> (Map, Vec<String>) {
    let (mut map, mut problems) = wire::map_of(nodes, extent.modality());
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
        // Ids of our own maps begin with their parent's; those of people and models need only be different.
        let parent = node.parent.map(|parent| &map.nodes[parent as usize]);
        let Location::Here(place) = &node.location else { continue };
        let within = match extent.within(place) {
            Ok(within) => within,
            Err(error) => {
                wrong(error.to_string());
                continue;
            }
        };
        if let Some(Location::Here(outer)) = parent.map(|parent| &parent.location)
            && !contains(outer, &within)
        {
            wrong(format!("it does not lie within its parent '{}'", parent.map_or("", |parent| &parent.id)));
        }
        map.nodes[at].location = Location::Here(within);
    }
    (map, problems)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_child_lies_in_the_pages_of_its_parent_and_not_between_them() {
        let problems = |child: Value| {
            let node = |id: &str, pages: Value, children: Value| {
                let location = json!({ "modality": "document", "pages": pages });
                json!({ "id": id, "title": id, "type": "section", "location": location, "children": children })
            };
            let nodes = json!([node("outer", json!([1, 1, 5]), json!([node("inner", child, json!([]))]))]);
            checked(serde_json::from_value(nodes).unwrap(), &Extent::Pages(5)).1
        };
        assert_eq!(problems(json!([5])), Vec::<String>::new());
        assert_eq!(problems(json!([3])), ["node 'inner': it does not lie within its parent 'outer'"]);
        assert_eq!(problems(json!([1, 5])).len(), 1);
    }
}
