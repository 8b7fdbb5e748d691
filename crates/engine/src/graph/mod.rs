//! The knowledge graph: what is connected to what, and why.
//!
//! Facts are read when a document is indexed and kept with it in the index ([`keys`] says by what they are found again).
//! Nothing is resolved before somebody asks: [`modules`], [`names`] and [`edges`] decide what a name or a link means in
//! the library as it is at that moment, within what the caller may see. [`walk`] follows edges level by level, [`lists`]
//! lists nodes, [`show`] gives them keys and numbers that survive a rebuild.

mod catalog;
mod docs;
mod edges;
mod incoming;
pub(crate) mod keys;
mod lists;
mod memo;
mod modules;
mod names;
mod nodes;
mod paths;
mod show;
mod snapshot;
mod walk;

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
};

use docs::{Doc, Docs};
pub use nodes::{NODE_TYPES, Relation};
use nodes::{Node, Numbers};
use serde_json::{Map, Value};
use shelf_base::CallContext;
use shelf_catalog::{Document, Scope};
use show::Showing;
use walk::Course;

use crate::{Caller, Error, GetRequest, Library, Result};

/// Nodes on one page at most.
const MOST: usize = 1_000;
/// How far a walk goes unless another depth is asked for.
const DEPTH: u32 = 2;
const DEEPEST: u32 = 5;

/// A question to the graph.
#[derive(Clone, Debug, Default)]
pub struct GraphRequest {
    /// The origin, by content.
    pub hash: Option<String>,
    /// The origin, by name.
    pub name: Option<String>,
    /// The origin, by key.
    pub node_key: Option<String>,
    /// The origin, by number.
    pub node_id: Option<u64>,
    /// Count the nodes of each type.
    pub list_types: bool,
    /// List the nodes of a type, or keep only these of a walk.
    pub list_type: Option<String>,
    /// List isolated nodes.
    pub isolated: bool,
    /// Follow only these relations.
    pub relations: Vec<String>,
    /// How far to go, from 1 to 5.
    pub depth: Option<u64>,
    /// Nodes on this page.
    pub limit: Option<u64>,
    /// Nodes to skip.
    pub offset: u64,
    /// Follow edges backwards.
    pub reverse: bool,
    /// Say what is known of nodes.
    pub node_properties: bool,
    /// Say what is known of edges.
    pub edge_properties: bool,
    /// Add what the catalog knows of documents.
    pub hydrate: bool,
    /// Only documents of this snapshot, as it has them.
    pub snapshot: Option<String>,
}

/// A node in a reply.
#[derive(Clone, Debug)]
pub struct GraphNode {
    /// Its number, at most 53 bits.
    pub node_id: u64,
    /// Its key.
    pub node_key: String,
    /// Its type.
    pub node_type: String,
    /// Its name.
    pub name: String,
    /// The path of its document.
    pub path: Option<String>,
    /// The content of a document or version.
    pub hash: Option<String>,
    /// Steps from the origin.
    pub distance: u32,
    /// What is known of it.
    pub properties: Option<Map<String, Value>>,
    /// What the catalog knows of it.
    pub document: Option<Document>,
}

/// An edge in a reply.
#[derive(Clone, Debug)]
pub struct GraphEdge {
    /// The key of the node it leads from.
    pub source: String,
    /// The key of the node it leads to.
    pub target: String,
    /// What connects them.
    pub relation: &'static str,
    /// What is known of it.
    pub properties: Option<Map<String, Value>>,
}

/// An answer of the graph.
#[derive(Clone, Debug)]
pub enum GraphReply {
    /// A walk.
    Walk {
        /// Where it began.
        origin: Box<GraphNode>,
        /// The nodes of this page, the nearest first.
        nodes: Vec<GraphNode>,
        /// The edges that connect them with each other and with earlier ones.
        edges: Vec<GraphEdge>,
        /// How many nodes there are; `None` when they were not all counted.
        total: Option<u64>,
        /// Whether something is left out after this page.
        truncated: bool,
    },
    /// A list of nodes.
    Nodes {
        /// The nodes of this page.
        nodes: Vec<GraphNode>,
        /// How many there are.
        total: u64,
        /// Whether there are more after this page.
        truncated: bool,
    },
    /// Types of nodes, and how many there are of each.
    Types(Vec<(&'static str, u64)>),
}

/// A document that is connected with another one.
#[derive(Clone, Debug)]
pub struct Related {
    /// The document.
    pub document: Document,
    /// Steps between the two.
    pub distance: u32,
    /// What connects the last step.
    pub relation: &'static str,
}

/// Figures of the whole graph.
#[derive(Clone, Debug)]
pub struct GraphStats {
    /// Documents.
    pub documents: u64,
    /// Edges by relation.
    pub relations: BTreeMap<&'static str, u64>,
    /// The documents with the most neighbours: path, documents it leads to, documents that lead to it.
    pub most_connected: Vec<(String, u64, u64)>,
    /// Paths of documents that nothing is connected with.
    pub orphans: Vec<String>,
    /// Links that lead nowhere: path, line, target.
    pub broken: Vec<(String, u32, String)>,
}

/// One question while it is answered.
struct Graph<'a> {
    library: &'a Library,
    caller: &'a Caller,
    call: &'a CallContext,
    docs: Docs<'a>,
    numbers: Numbers,
    /// Local parts of the numbers of nodes, by document and key.
    locals: RefCell<HashMap<Doc, HashMap<String, u64>>>,
}

impl GraphRequest {
    fn says_where_to_begin(&self) -> bool {
        self.name.is_some() || self.hash.is_some() || self.node_key.is_some() || self.node_id.is_some()
    }
}

impl Library {
    /// Answers a question to the graph.
    pub fn graph(&self, caller: &Caller, request: &GraphRequest, call: &CallContext) -> Result<GraphReply> {
        let depth = depth_of(request.depth)?;
        let relations = relations_of(&request.relations)?;
        let limit = usize::try_from(request.limit.unwrap_or(100)).unwrap_or(MOST);
        if limit == 0 || limit > MOST {
            return Err(Error::invalid("limit", format!("must be between 1 and {MOST}")));
        }
        let offset = usize::try_from(request.offset).unwrap_or(usize::MAX);
        let showing = Showing {
            node_properties: request.node_properties,
            edge_properties: request.edge_properties,
            hydrate: request.hydrate,
        };
        self.with_graph(caller, request.snapshot.as_deref(), call, |graph| {
            if request.list_types {
                if request.says_where_to_begin() {
                    return Err(Error::invalid(
                        "list_types",
                        "counts the nodes of the whole library: omit name, hash, node_key and node_id",
                    ));
                }
                return graph.types().map(GraphReply::Types);
            }
            let Some(origin) = graph.origin(request)? else {
                let wanted = match (&request.list_type, request.isolated) {
                    (Some(wanted), _) => wanted.as_str(),
                    (None, true) => "document",
                    (None, false) => {
                        return Err(Error::invalid(
                            "name",
                            "must say where to begin: give name, hash, node_key or node_id, or list_types, list_type or isolated",
                        ));
                    }
                };
                let only = (request.isolated, &relations[..]);
                return graph.list(&wanted.to_lowercase(), only, offset, limit, showing);
            };
            if request.isolated {
                return Err(Error::invalid("isolated", "lists nodes of the whole library: omit name, hash, node_key and node_id"));
            }
            let only = request.list_type.as_ref().map(|wanted| wanted.to_lowercase());
            let course = Course { depth, reverse: request.reverse, relations: relations.clone(), offset, limit, only };
            graph.answer(&origin, &course, showing)
        })
    }

    /// Documents that are connected with one, the nearest first.
    pub fn related(
        &self,
        caller: &Caller,
        document: &Document,
        depth: Option<u64>,
        most: usize,
        call: &CallContext,
    ) -> Result<(Vec<Related>, bool)> {
        let depth = depth_of(depth)?;
        self.with_graph(caller, None, call, |graph| {
            let Some(doc) = graph.docs.of_number(document.number) else { return Ok((Vec::new(), false)) };
            graph.related(doc, depth, most)
        })
    }

    /// Figures of the caller's whole graph.
    pub fn graph_stats(&self, caller: &Caller, call: &CallContext) -> Result<GraphStats> {
        self.with_graph(caller, None, call, |graph| {
            let stats = graph.stats()?;
            let path = |doc: Doc| graph.docs.path(doc).to_owned();
            Ok(GraphStats {
                documents: stats.documents,
                relations: stats.relations,
                most_connected: stats.most.iter().map(|(doc, both)| (path(*doc), both.0, both.1)).collect(),
                orphans: stats.orphans.iter().map(|doc| path(*doc)).collect(),
                broken: stats
                    .broken
                    .iter()
                    .filter_map(|edge| {
                        Some((path(edge.from.doc()?), edge.because.line, edge.because.written.clone()))
                    })
                    .collect(),
            })
        })
    }

    fn with_graph<T>(
        &self,
        caller: &Caller,
        snapshot: Option<&str>,
        call: &CallContext,
        answer: impl FnOnce(&Graph<'_>) -> Result<T>,
    ) -> Result<T> {
        caller.must_read()?;
        let snapshot = snapshot.map(|id| self.one_snapshot(caller, None, Some(id), None)).transpose()?;
        let view = self.indexing.view(call)?;
        let filter = self.index_filter(caller, &view, &shelf_catalog::Filter::default(), &[])?;
        let docs = self.graph_docs(caller, &view, &filter, snapshot.as_ref(), call)?;
        let account = match caller.pass.scope() {
            Scope::Account(account) => account.as_bytes().to_vec(),
            Scope::Collection(collection) => collection.as_bytes().to_vec(),
            Scope::Library => b"library".to_vec(),
        };
        let numbers = Numbers::new(&self.secret("graph")?, &account);
        answer(&Graph { library: self, caller, call, docs, numbers, locals: RefCell::default() })
    }
}

impl Graph<'_> {
    fn origin(&self, request: &GraphRequest) -> Result<Option<Node>> {
        let given = [
            request.node_key.is_some(),
            request.node_id.is_some(),
            request.hash.is_some() || request.name.is_some(),
        ];
        if given.iter().filter(|given| **given).count() > 1 {
            return Err(Error::invalid(
                "node_key",
                "node_id and name or hash each say where to begin: give only one of them",
            ));
        }
        if let Some(key) = &request.node_key {
            let found = self.node_of_key(key)?;
            return found.map(Some).ok_or_else(|| Error::missing("node", key));
        }
        if let Some(id) = request.node_id {
            let found = self.node_of_id(id)?;
            return found.map(Some).ok_or_else(|| Error::missing("node", id.to_string()));
        }
        if request.hash.is_none() && request.name.is_none() {
            return Ok(None);
        }
        let asked =
            GetRequest { hash: request.hash.clone(), name: request.name.clone(), ..GetRequest::default() };
        let found = self.library.get(self.caller, &asked, self.call)?;
        let words = || request.hash.as_deref().or(request.name.as_deref()).unwrap_or_default();
        let found = found.ok_or_else(|| Error::missing("document", words()))?;
        // A document that is not in the snapshot is not there.
        let doc =
            self.docs.of_number(found.document.number).ok_or_else(|| Error::missing("document", words()))?;
        Ok(Some(Node::Document(doc)))
    }

    fn answer(&self, origin: &Node, course: &Course, showing: Showing) -> Result<GraphReply> {
        let walked = self.walk(origin, course)?;
        let ends = walked.edges.iter().flat_map(|edge| [&edge.from, &edge.to]);
        let docs: Vec<Doc> =
            walked.nodes.iter().map(|(node, _)| node).chain(ends).filter_map(Node::doc).collect();
        self.docs.fetch_rows(&docs);
        let shown = self.show_node(origin, 0, showing);
        Ok(GraphReply::Walk {
            origin: Box::new(shown.ok_or_else(|| Error::missing("node", "origin"))?),
            nodes: walked
                .nodes
                .iter()
                .filter_map(|(node, far)| self.show_node(node, *far, showing))
                .collect(),
            edges: walked.edges.iter().filter_map(|edge| self.show_edge(edge, showing)).collect(),
            total: walked.total.map(|total| total as u64),
            truncated: walked.truncated,
        })
    }

    fn list(
        &self,
        wanted: &str,
        only: (bool, &[Relation]),
        offset: usize,
        limit: usize,
        showing: Showing,
    ) -> Result<GraphReply> {
        let listed = self.of_type(wanted, only, offset, limit)?;
        let docs: Vec<Doc> = listed.nodes.iter().filter_map(Node::doc).collect();
        self.docs.fetch_rows(&docs);
        Ok(GraphReply::Nodes {
            nodes: listed.nodes.iter().filter_map(|node| self.show_node(node, 0, showing)).collect(),
            total: listed.total as u64,
            truncated: listed.total > offset.saturating_add(limit),
        })
    }

    fn related(&self, doc: Doc, depth: u32, most: usize) -> Result<(Vec<Related>, bool)> {
        let mut found: Vec<(Doc, u32, &'static str)> = Vec::new();
        let mut truncated = false;
        for reverse in [false, true] {
            let course = Course { depth, reverse, relations: Vec::new(), offset: 0, limit: MOST, only: None };
            let walked = self.walk(&Node::Document(doc), &course)?;
            truncated |= walked.truncated;
            for (node, distance) in walked.nodes {
                let Some(other) = node.doc().filter(|other| *other != doc) else { continue };
                if found.iter().any(|(known, far, _)| *known == other && *far <= distance) {
                    continue;
                }
                let end = |edge: &edges::Edge| if reverse { edge.from.clone() } else { edge.to.clone() };
                let relation = walked
                    .edges
                    .iter()
                    .find(|edge| end(edge) == node)
                    .map_or("", |edge| edge.relation.name());
                found.retain(|(known, _, _)| *known != other);
                found.push((other, distance, relation));
            }
        }
        found.sort_by_key(|(doc, distance, _)| (*distance, self.docs.path(*doc)));
        truncated |= found.len() > most;
        found.truncate(most);
        let docs: Vec<Doc> = found.iter().map(|(doc, _, _)| *doc).collect();
        self.docs.fetch_rows(&docs);
        let related = found.into_iter().filter_map(|(doc, distance, relation)| {
            Some(Related { document: (*self.docs.row(doc)?).clone(), distance, relation })
        });
        Ok((related.collect(), truncated))
    }
}

/// Bytes of the facts and keys of a content, which are read as indexing would read them: for measuring it.
pub fn facts_size(path: &str, bytes: &[u8]) -> usize {
    let sample = &bytes[..bytes.len().min(shelf_reading::SAMPLE)];
    let detected = shelf_reading::detect(path, sample);
    let text = shelf_reading::text_of(path, &detected.mime, detected.is_text, bytes).ok().flatten();
    let Some(text) = text else { return 0 };
    let facts = shelf_reading::facts::facts(path, &detected.mime, &text, Some(bytes));
    facts.encode().len() + 4 * keys::of(path, "", &shelf_base::Digest::of(bytes), &facts).len()
}

fn depth_of(depth: Option<u64>) -> Result<u32> {
    match depth {
        None => Ok(DEPTH),
        Some(depth) => u32::try_from(depth)
            .ok()
            .filter(|depth| (1..=DEEPEST).contains(depth))
            .ok_or_else(|| Error::invalid("depth", "must be between 1 and 5")),
    }
}

fn relations_of(names: &[String]) -> Result<Vec<Relation>> {
    let known = || Relation::ALL.map(Relation::name).join(", ");
    names
        .iter()
        .filter(|name| !name.trim().is_empty())
        .map(|name| {
            Relation::named(name)
                .ok_or_else(|| Error::invalid("relation", format!("'{name}' must be one of {}", known())))
        })
        .collect()
}
