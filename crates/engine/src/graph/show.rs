//! Nodes and edges as replies show them: keys, numbers, names and properties.

use serde_json::{Map, Value, json};
use shelf_base::{Moment, ids::DocumentId};
use shelf_catalog::Document;

use super::{
    Graph, GraphEdge, GraphNode,
    docs::Doc,
    edges::Edge,
    nodes::{self, Node},
};
use crate::{Error, Result};

/// What a reply says of nodes and edges.
#[derive(Clone, Copy, Default)]
pub(super) struct Showing {
    pub(super) node_properties: bool,
    pub(super) edge_properties: bool,
    pub(super) hydrate: bool,
}

impl Graph<'_> {
    /// The type of a node.
    pub(super) fn type_of(&self, node: &Node) -> &'static str {
        match node {
            Node::Document(_) => "document",
            Node::Symbol(doc, name) => {
                let facts = self.docs.facts(*doc);
                let found = facts.definitions.iter().find(|one| *one.qualified == **name);
                found.map_or("function", |one| one.kind.name())
            }
            Node::Heading(..) => "heading",
            Node::Version(..) => "version",
            Node::Tag(_) => "tag",
            Node::Collection(_) => "collection",
            Node::Snapshot(_) => "snapshot",
            Node::Reference(_) => "reference",
        }
    }

    /// The key of a node; `None` when its document was deleted meanwhile.
    pub(super) fn key_of(&self, node: &Node) -> Option<String> {
        let own = |doc: Doc| self.docs.row(doc).map(|row| row.id);
        Some(match node {
            Node::Document(doc) => format!("doc:{}", own(*doc)?),
            Node::Symbol(doc, name) => format!("sym:{}#{name}", own(*doc)?),
            Node::Heading(doc, anchor) => format!("heading:{}#{anchor}", own(*doc)?),
            Node::Version(doc, number) => format!("version:{}@{number}", own(*doc)?),
            Node::Tag(name) => format!("tag:{name}"),
            Node::Collection(id) => format!("collection:{id}"),
            Node::Snapshot(at) => format!("snapshot:{}", at.with_micros()),
            Node::Reference(name) => format!("ref:{name}"),
        })
    }

    /// The number of a node.
    pub(super) fn id_of(&self, node: &Node) -> u64 {
        match node {
            Node::Document(doc) => self.numbers.document(self.docs.number(*doc)),
            Node::Symbol(doc, _) | Node::Heading(doc, _) | Node::Version(doc, _) => {
                let key = local_key(node);
                self.numbers.document(self.docs.number(*doc)) | self.local_of(*doc, &key)
            }
            _ => self.numbers.shared(&self.key_of(node).unwrap_or_default()),
        }
    }

    /// The local part of a number. Only where hashes of one document meet, all of them have to be looked at.
    fn local_of(&self, doc: Doc, key: &str) -> u64 {
        let mut tables = self.locals.borrow_mut();
        let table = tables.entry(doc).or_insert_with(|| {
            let keys = self.local_keys(doc);
            let all = nodes::local_numbers(&self.numbers, keys.iter().map(String::as_str));
            all.into_iter().map(|(local, key)| (key.to_owned(), local)).collect()
        });
        table.get(key).copied().unwrap_or_else(|| self.numbers.local(key))
    }

    fn local_keys(&self, doc: Doc) -> Vec<String> {
        let facts = self.docs.facts(doc);
        let symbols = facts.definitions.iter().map(|one| format!("sym#{}", one.qualified));
        symbols.chain(facts.headings.iter().map(|one| format!("heading#{}", one.anchor))).collect()
    }

    /// The node with a number.
    pub(super) fn node_of_id(&self, id: u64) -> Result<Option<Node>> {
        let Some((number, local)) = self.numbers.parts(id) else { return self.shared_of_id(id) };
        let Some(doc) = self.docs.of_number(number) else { return Ok(None) };
        if local == 0 {
            return Ok(Some(Node::Document(doc)));
        }
        let found = self.local_keys(doc).into_iter().find(|key| self.local_of(doc, key) == local);
        if let Some(key) = found {
            return Ok(Some(match key.split_once('#') {
                Some(("sym", name)) => Node::Symbol(doc, name.into()),
                Some((_, anchor)) => Node::Heading(doc, anchor.into()),
                None => Node::Document(doc),
            }));
        }
        let Some(row) = self.docs.row(doc) else { return Ok(None) };
        let versions = (1..=row.version.number).map(|number| Node::Version(doc, number));
        Ok(versions.into_iter().find(|version| self.numbers.local(&local_key(version)) == local))
    }

    fn shared_of_id(&self, id: u64) -> Result<Option<Node>> {
        let is_it = |node: &Node| self.id_of(node) == id;
        if let Some(found) = self.shared_nodes()?.into_iter().find(is_it) {
            return Ok(Some(found));
        }
        Ok(self.references()?.into_iter().map(|name| Node::Reference(name.into())).find(is_it))
    }

    /// The node with a key.
    pub(super) fn node_of_key(&self, key: &str) -> Result<Option<Node>> {
        let (sort, rest) = key.split_once(':').ok_or_else(|| {
            Error::invalid(
                "node_key",
                "must begin with doc:, sym:, heading:, version:, tag:, collection:, snapshot: or ref:",
            )
        })?;
        let doc_of = |id: &str| -> Result<Option<Doc>> {
            let Ok(id) = id.parse::<DocumentId>() else { return Ok(None) };
            let row = self.library.catalog.document(self.caller.pass.scope(), id)?;
            Ok(row.and_then(|row| self.docs.of_number(row.number)))
        };
        Ok(match sort {
            "doc" => doc_of(rest)?.map(Node::Document),
            "sym" | "heading" => {
                let Some((id, name)) = rest.split_once('#') else { return Ok(None) };
                let Some(doc) = doc_of(id)? else { return Ok(None) };
                let facts = self.docs.facts(doc);
                if sort == "sym" {
                    facts
                        .definitions
                        .iter()
                        .any(|one| one.qualified == name)
                        .then(|| Node::Symbol(doc, name.into()))
                } else {
                    facts
                        .headings
                        .iter()
                        .any(|one| one.anchor == name)
                        .then(|| Node::Heading(doc, name.into()))
                }
            }
            "version" => {
                let Some((id, number)) = rest.split_once('@') else { return Ok(None) };
                let Some(doc) = doc_of(id)? else { return Ok(None) };
                let newest = self.docs.row(doc).map_or(0, |row| row.version.number);
                let number = number.parse::<u32>().ok().filter(|number| (1..=newest).contains(number));
                number.map(|number| Node::Version(doc, number))
            }
            "tag" => (!self.tagged(rest)?.is_empty()).then(|| Node::Tag(rest.into())),
            "collection" | "snapshot" => {
                self.shared_nodes()?.into_iter().find(|node| self.key_of(node).as_deref() == Some(key))
            }
            "ref" => {
                let node = Node::Reference(rest.into());
                let mut edges = Vec::new();
                self.docs.edges_to(&node, &|_| true, &mut edges);
                (!edges.is_empty()).then_some(node)
            }
            _ => None,
        })
    }

    /// A node as a reply shows it; `None` when its document was deleted meanwhile.
    pub(super) fn show_node(&self, node: &Node, distance: u32, showing: Showing) -> Option<GraphNode> {
        let row = node.doc().map(|doc| self.docs.row(doc));
        if matches!(row, Some(None)) {
            return None;
        }
        let row = row.flatten();
        let name = match node {
            Node::Document(_) => {
                row.as_ref().map(|row| super::paths::last(&row.path).to_owned()).unwrap_or_default()
            }
            Node::Symbol(_, name) | Node::Tag(name) | Node::Reference(name) => name.to_string(),
            Node::Heading(doc, anchor) => {
                let facts = self.docs.facts(*doc);
                facts
                    .headings
                    .iter()
                    .find(|one| *one.anchor == **anchor)
                    .map_or(anchor.to_string(), |one| one.text.clone())
            }
            Node::Version(_, number) => format!("version {number}"),
            Node::Collection(id) => self.collection_name(*id),
            Node::Snapshot(at) => at.with_micros(),
        };
        let hash = match node {
            Node::Document(doc) => Some(self.docs.hash(*doc).to_string()),
            Node::Version(_, number) => row.as_ref().and_then(|row| self.version_hash(row, *number)),
            _ => None,
        };
        Some(GraphNode {
            node_id: self.id_of(node),
            node_key: self.key_of(node)?,
            node_type: self.type_of(node).to_owned(),
            name,
            path: row.as_ref().map(|row| row.path.clone()),
            hash,
            distance,
            properties: showing.node_properties.then(|| self.properties(node, row.as_deref())),
            document: row
                .filter(|_| showing.hydrate && matches!(node, Node::Document(_)))
                .map(|row| self.at_its_version(node, (*row).clone())),
        })
    }

    /// A document with the version that the walk reads, which a snapshot may have chosen.
    fn at_its_version(&self, node: &Node, mut document: Document) -> Document {
        let read = node.doc().map(|doc| self.docs.hash(doc)).filter(|hash| *hash != document.version.hash);
        if let Some(read) = read
            && let Ok(versions) = self.library.catalog.versions(self.caller.pass.scope(), document.id)
            && let Some(found) = versions.into_iter().rev().find(|version| version.hash == read)
        {
            document.version = found;
        }
        document
    }

    fn version_hash(&self, row: &Document, number: u32) -> Option<String> {
        let versions = self.library.catalog.versions(self.caller.pass.scope(), row.id).ok()?;
        versions.iter().find(|version| version.number == number).map(|version| version.hash.to_string())
    }

    fn properties(&self, node: &Node, row: Option<&Document>) -> Map<String, Value> {
        let mut properties = Map::new();
        let mut put = |key: &str, value: Value| {
            properties.insert(key.to_owned(), value);
        };
        match node {
            Node::Document(doc) => {
                let facts = self.docs.facts(*doc);
                if let Some(row) = row {
                    put("collection", json!(row.collection_name));
                    put("mime_type", json!(row.mime));
                }
                if let Some(language) = facts.language {
                    put("language", json!(language.name()));
                }
                if !facts.package.is_empty() {
                    put("package", json!(facts.package));
                }
                put("symbols", json!(facts.definitions.len()));
                put("headings", json!(facts.headings.len()));
                put("links", json!(facts.links.len()));
                if facts.is_cut {
                    put("incomplete", json!(true));
                }
            }
            Node::Symbol(doc, name) => {
                let facts = self.docs.facts(*doc);
                let all: Vec<_> = facts.definitions.iter().filter(|one| *one.qualified == **name).collect();
                if let Some(one) = all.first() {
                    put("kind", json!(one.kind.name()));
                    put("start_line", json!(one.lines.0));
                    put("end_line", json!(one.lines.1));
                    put("start_byte", json!(one.bytes.start));
                    put("end_byte", json!(one.bytes.end));
                }
                if all.len() > 1 {
                    put("lines", json!(all.iter().map(|one| one.lines.0).collect::<Vec<_>>()));
                }
                if let Some(language) = facts.language {
                    put("language", json!(language.name()));
                }
            }
            Node::Heading(doc, anchor) => {
                let facts = self.docs.facts(*doc);
                if let Some(one) = facts.headings.iter().find(|one| *one.anchor == **anchor) {
                    put("level", json!(one.level));
                    put("line", json!(one.line));
                    put("anchor", json!(one.anchor));
                }
            }
            Node::Version(_, number) => put("version", json!(number)),
            Node::Reference(name) => {
                put("external", json!(name.contains("://") || !name.contains(['/', '#', '.'])))
            }
            Node::Snapshot(at) => put("created_at", json!(Moment::to_string(at))),
            Node::Tag(_) | Node::Collection(_) => {}
        }
        properties
    }

    /// An edge as a reply shows it.
    pub(super) fn show_edge(&self, edge: &Edge, showing: Showing) -> Option<GraphEdge> {
        Some(GraphEdge {
            source: self.key_of(&edge.from)?,
            target: self.key_of(&edge.to)?,
            relation: edge.relation.name(),
            properties: showing.edge_properties.then(|| edge_properties(edge)),
        })
    }
}

fn edge_properties(edge: &Edge) -> Map<String, Value> {
    let because = &edge.because;
    let mut properties = Map::new();
    let mut put = |key: &str, value: Value| {
        properties.insert(key.to_owned(), value);
    };
    if because.line > 0 {
        put("line", json!(because.line));
    }
    let texts = [
        ("text", &because.text),
        ("title", &because.title),
        ("target", &because.written),
        ("anchor", &because.anchor),
    ];
    for (key, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        put(key, json!(text));
    }
    if !because.kind.is_empty() {
        put(if because.score.is_some() { "basis" } else { "kind" }, json!(because.kind));
    }
    if let Some(score) = because.score {
        put("score", json!(score));
    }
    put("confidence", json!((because.confidence * 100.0).round() / 100.0));
    if because.candidates > 1 {
        put("candidates", json!(because.candidates));
    }
    if because.count > 1 {
        put("count", json!(because.count));
    }
    if because.is_broken {
        put("broken", json!(true));
    }
    properties
}

/// What tells a node from others of its document.
fn local_key(node: &Node) -> String {
    match node {
        Node::Symbol(_, name) => format!("sym#{name}"),
        Node::Heading(_, anchor) => format!("heading#{anchor}"),
        Node::Version(_, number) => format!("version#{number}"),
        _ => String::new(),
    }
}
