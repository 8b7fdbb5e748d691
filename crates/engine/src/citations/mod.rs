//! Citing exactly: the tree of nodes of a document, and the evidence that stands at a place in it.
//!
//! Every document in the caller's scope can be cited, by its resource id, its id, or the hash of one of its contents. Its
//! map is made from the document itself and kept as derived data, unless somebody has given it another; such maps are
//! kept in the catalog with the content they were checked against. Evidence is cut out of the stored content and kept in
//! a folder of bounded size.

mod check;
mod error;
mod evidence;
mod given;
mod lines;
mod making;
mod mapped;
mod store;
mod targets;
mod wire;

use std::sync::Arc;

use shelf_base::{
    CallContext, Digest, Moment,
    address::{Address, Modality, Place},
    ids::DocumentId,
};
use shelf_catalog::{Document, Version};
use shelf_reading::map::{Location, MapNode};

pub use check::{Citation, CitationReport, addresses_in};
pub use error::CitationError;
pub use evidence::{EvidenceContent, ResolveRequest, Resolved};
pub use given::{GivenMapReply, ImportedMap};
pub(crate) use mapped::MapCache;
use mapped::Mapped;
pub(crate) use store::EvidenceStore;
pub use wire::{LocationJson, NodeJson, location_json};

use crate::{Caller, Error, FileAccess, Library};

/// Resource ids that one call lists.
pub const MOST_RESOURCES: usize = 100_000;

pub(crate) type Answer<T> = crate::Result<T, CitationError>;

/// A document and the version of it that is cited.
#[derive(Clone, Debug)]
struct Source {
    document: Document,
    version: Version,
}

impl Source {
    /// What addresses call it.
    fn id(&self) -> String {
        self.document.resource_id.clone().unwrap_or_else(|| self.document.id.to_string())
    }
}

/// A source with its map.
struct Opened {
    source: Source,
    mapped: Arc<Mapped>,
    /// Who gave the map, and its number.
    given: Option<(String, u32)>,
    /// Whether the document has other content now.
    source_changed: bool,
}

/// The map of a resource, as `getStructure` shows it.
#[derive(Clone, Debug)]
pub struct Structure {
    /// Its id in addresses.
    pub resource_id: String,
    /// Its modality.
    pub modality: Modality,
    /// Its title.
    pub title: String,
    /// Where it came from.
    pub source_path: String,
    /// The tree.
    pub nodes: Vec<NodeJson>,
    /// The content that is mapped.
    pub source_hash: Digest,
    /// Its size.
    pub source_size: u64,
    /// Who gave the map, and which of the document's maps it is; `None` for one that is made of the document.
    pub given: Option<(String, u32)>,
    /// Whether the document has other content by now.
    pub source_changed: bool,
    /// What else the map says of the resource.
    pub metadata: serde_json::Map<String, serde_json::Value>,
    /// When the mapped version was stored.
    pub created_at: Moment,
}

/// A node, as `getNode` shows it.
#[derive(Clone, Debug)]
pub struct NodeReply {
    /// The node, without its children.
    pub node: NodeJson,
    /// The ids of its children.
    pub children: Vec<String>,
}

/// The resource ids of a caller.
#[derive(Clone, Debug)]
pub struct ResourceList {
    /// Sorted.
    pub resources: Vec<String>,
    /// Whether there are more.
    pub truncated: bool,
}

impl Library {
    /// The caller's resources.
    pub fn list_resources(&self, caller: &Caller) -> Answer<ResourceList> {
        caller.must_read()?;
        let mut resources = self.catalog.resource_ids(caller.pass.scope(), MOST_RESOURCES + 1)?;
        let truncated = resources.len() > MOST_RESOURCES;
        resources.truncate(MOST_RESOURCES);
        Ok(ResourceList { resources, truncated })
    }

    /// The whole map of a resource.
    pub fn structure(&self, caller: &Caller, id: &str, call: &CallContext) -> Answer<Structure> {
        caller.must_read()?;
        let source = self.cited(caller, id)?.ok_or_else(|| CitationError::NoMap(id.to_owned()))?;
        let opened = self.opened(caller, source, call).map_err(|error| error.seen_by(caller))?;
        let Source { document, version } = &opened.source;
        let about = &opened.mapped.about;
        Ok(Structure {
            resource_id: opened.source.id(),
            modality: opened.mapped.extent.modality(),
            title: about.title.clone().unwrap_or_else(|| document.title.clone()),
            metadata: about.metadata.clone(),
            source_path: source_path(caller, document),
            nodes: wire::tree_json(&opened.mapped.map),
            source_hash: version.hash,
            source_size: version.size,
            given: opened.given,
            source_changed: opened.source_changed,
            created_at: version.indexed_at,
        })
    }

    /// One node of a resource.
    pub fn node(&self, caller: &Caller, id: &str, node_id: &str, call: &CallContext) -> Answer<NodeReply> {
        caller.must_read()?;
        let source = self.cited(caller, id)?.ok_or_else(|| CitationError::NoResource(id.to_owned()))?;
        let opened = self.opened(caller, source, call).map_err(|error| error.seen_by(caller))?;
        let map = &opened.mapped.map;
        let node = opened.mapped.node(node_id).ok_or_else(|| CitationError::NoNode(node_id.to_owned()))?;
        let children = node.children.iter().filter_map(|child| map.nodes.get(*child as usize));
        Ok(NodeReply {
            node: wire::node_json(node),
            children: children.map(|child| child.id.clone()).collect(),
        })
    }

    /// Gives a document a resource id. One that it has stays: addresses name it.
    pub fn name_resource(&self, caller: &Caller, document: DocumentId, resource_id: &str) -> Answer<bool> {
        caller.must_write()?;
        crate::validate::resource_id(resource_id)?;
        let (actor, scope) = (caller.pass.actor(), caller.pass.scope());
        if let Some(known) = self.catalog.document(scope, document)? {
            self.keeps_its_name(&known, resource_id)?;
        }
        Ok(self.catalog.name_resource(actor, scope, document, resource_id, self.now())?)
    }

    /// Fails for a document that has another resource id.
    pub(crate) fn keeps_its_name(&self, document: &Document, resource_id: &str) -> crate::Result<()> {
        match document.resource_id.as_deref() {
            Some(present) if present != resource_id => Err(Error::invalid(
                "resource_id",
                format!(
                    "must be '{present}': the document is cited by this ID, and addresses with it would break"
                ),
            )),
            _ => Ok(()),
        }
    }

    /// The resource id that a document has, or one that it can be given: the stem of its file's name, made safe and
    /// unique.
    pub fn resource_id_for(&self, caller: &Caller, document: &Document) -> Answer<String> {
        if let Some(id) = &document.resource_id {
            return Ok(id.clone());
        }
        let name = document.path.rsplit('/').next().unwrap_or(&document.path);
        let stem =
            name.strip_suffix(document.extension.as_str()).filter(|stem| !stem.is_empty()).unwrap_or(name);
        let safe: String = stem
            .chars()
            .map(|each| if each.is_ascii_alphanumeric() || ".-".contains(each) { each } else { '_' })
            .take(100)
            .collect();
        let safe = safe.trim_start_matches(['.', '_', '-']);
        let safe = if safe.is_empty() { "resource" } else { safe };
        let mut id = safe.to_owned();
        let mut number = 2_u32;
        while self.catalog.resource(caller.pass.scope(), &id)?.is_some() {
            id = format!("{safe}_{number}");
            number += 1;
        }
        Ok(id)
    }

    /// The resource that an id means: a resource id, a document's id, or the whole hash of a content.
    fn cited(&self, caller: &Caller, id: &str) -> Answer<Option<Source>> {
        let scope = caller.pass.scope();
        if let Some(document) = self.catalog.resource(scope, id)? {
            return Ok(Some(present(document)));
        }
        if let Ok(id) = id.parse::<DocumentId>() {
            return Ok(self.catalog.document(scope, id)?.map(present));
        }
        if id.len() == 64 && id.parse::<Digest>().is_ok() {
            let found = self.catalog.hashed(scope, &id.to_lowercase(), 1)?;
            return Ok(found.into_iter().next().map(|(document, version)| Source { document, version }));
        }
        Ok(None)
    }

    /// The document and version that an id in an address means.
    pub(crate) fn cited_document(
        &self,
        caller: &Caller,
        id: &str,
    ) -> crate::Result<Option<(Document, Version)>> {
        match self.cited(caller, id) {
            Ok(found) => Ok(found.map(|source| (source.document, source.version))),
            Err(CitationError::Engine(error)) => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// The map of a source: the newest that somebody gave the document, otherwise one that is made of it.
    fn opened(&self, caller: &Caller, source: Source, call: &CallContext) -> Answer<Opened> {
        let is_present = source.version.hash == source.document.version.hash;
        if is_present && let Some(opened) = self.opened_given(caller, &source, call)? {
            return Ok(opened);
        }
        let mapped = self.made_map(caller, &source, call)?;
        Ok(Opened { mapped, given: None, source_changed: !is_present, source })
    }
}

fn present(document: Document) -> Source {
    let version = document.version.clone();
    Source { document, version }
}

/// Where a document came from, as the caller may see it: paths of the server's own files are not shown over HTTP.
fn source_path(caller: &Caller, document: &Document) -> String {
    visible_path(caller, &document.path)
}

fn visible_path(caller: &Caller, path: &str) -> String {
    match caller.file_access {
        FileAccess::OperatingSystem => path.to_owned(),
        FileAccess::Configured if path.starts_with('/') => {
            path.rsplit('/').next().unwrap_or_default().to_owned()
        }
        FileAccess::Configured => path.to_owned(),
    }
}

/// The address of a node.
fn address_of(resource: &str, node: &MapNode) -> Answer<Address> {
    Ok(match &node.location {
        Location::Here(place) => Address::new(resource, place.clone())?,
        Location::Elsewhere(_) => {
            Address::new(resource, Place::Virtual(Some(shelf_base::address::Node::new(node.id.clone())?)))?
        }
    })
}
