//! Lists of nodes: by type, isolated ones, and figures of the whole graph.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use shelf_base::ids::CollectionId;
use shelf_catalog::SnapshotFilter;
use shelf_reading::facts::{Facts, LinkKind, SymbolKind};

use super::{
    Graph,
    docs::Doc,
    edges::Edge,
    nodes::{Node, Relation, symbol_kind},
    paths::Target,
};
use crate::{Error, Result};

/// Snapshots that are listed at most.
const SNAPSHOTS: usize = 100_000;

/// Nodes of one page, and how many there are.
pub(super) struct Listed {
    pub(super) nodes: Vec<Node>,
    pub(super) total: usize,
}

impl Graph<'_> {
    /// How many nodes of each type there are.
    pub(super) fn types(&self) -> Result<Vec<(&'static str, u64)>> {
        let mut counts: BTreeMap<&'static str, u64> = BTreeMap::new();
        let mut add = |name, count: usize| *counts.entry(name).or_default() += count as u64;
        let docs = self.docs.all();
        add("document", docs.len());
        self.docs.fetch_rows(&docs);
        for doc in docs {
            self.call.check()?;
            let facts = self.docs.facts(doc);
            add("heading", facts.headings.len());
            add("version", self.docs.row(doc).map_or(0, |row| row.version.number as usize));
            for kind in SymbolKind::ALL {
                add(kind.name(), symbols(&facts, kind).len());
            }
        }
        for node in self.shared_nodes()? {
            add(self.type_of(&node), 1);
        }
        add("reference", self.references()?.len());
        Ok(counts.into_iter().filter(|(_, count)| *count > 0).collect())
    }

    /// Nodes of a type: only isolated ones when asked for, or else, when relations are given, only those that have them.
    pub(super) fn of_type(
        &self,
        wanted: &str,
        (is_isolated, relations): (bool, &[Relation]),
        offset: usize,
        limit: usize,
    ) -> Result<Listed> {
        let mut listed = Listed { nodes: Vec::new(), total: 0 };
        let mut take = |node: Node| -> Result<()> {
            let is_asked = is_isolated || !relations.is_empty();
            if is_asked && self.is_isolated(&node, relations)? != is_isolated {
                return Ok(());
            }
            if listed.total >= offset && listed.nodes.len() < limit {
                listed.nodes.push(node);
            }
            listed.total += 1;
            Ok(())
        };
        match wanted {
            "document" => self.docs.all().into_iter().try_for_each(|doc| take(Node::Document(doc)))?,
            "heading" | "version" | "symbol" => {
                for doc in self.docs.all() {
                    self.call.check()?;
                    self.parts_of(doc, wanted).into_iter().try_for_each(&mut take)?;
                }
            }
            "tag" | "collection" | "snapshot" => {
                let nodes = self.shared_nodes()?.into_iter().filter(|node| self.type_of(node) == wanted);
                nodes.collect::<Vec<_>>().into_iter().try_for_each(&mut take)?;
            }
            "reference" => {
                self.references()?.into_iter().try_for_each(|name| take(Node::Reference(name.into())))?
            }
            wanted => {
                let Some(kind) = symbol_kind(wanted) else {
                    return Err(Error::invalid(
                        "list_type",
                        "must be document, version, collection, tag, snapshot, heading, reference, symbol, function, method, \
                         class, struct, enum, trait, interface, module or type",
                    ));
                };
                for doc in self.docs.all() {
                    self.call.check()?;
                    let facts = self.docs.facts(doc);
                    symbols(&facts, kind)
                        .into_iter()
                        .try_for_each(|name| take(Node::Symbol(doc, name.into())))?;
                }
            }
        }
        Ok(listed)
    }

    fn parts_of(&self, doc: Doc, wanted: &str) -> Vec<Node> {
        let facts = self.docs.facts(doc);
        match wanted {
            "heading" => {
                facts.headings.iter().map(|one| Node::Heading(doc, one.anchor.as_str().into())).collect()
            }
            "version" => {
                let newest = self.docs.row(doc).map_or(0, |row| row.version.number);
                (1..=newest).map(|number| Node::Version(doc, number)).collect()
            }
            _ => {
                let mut seen = HashSet::new();
                let once = facts.definitions.iter().filter(|one| seen.insert(one.qualified.as_str()));
                once.map(|one| Node::Symbol(doc, one.qualified.as_str().into())).collect()
            }
        }
    }

    /// Tags, collections and snapshots.
    pub(super) fn shared_nodes(&self) -> Result<Vec<Node>> {
        let scope = self.caller.pass.scope();
        let mut nodes: Vec<Node> = Vec::new();
        let mut collections = self.library.catalog.collections(scope)?;
        collections.sort_by(|one, other| one.collection.name.cmp(&other.collection.name));
        nodes.extend(collections.into_iter().map(|one| Node::Collection(one.collection.id)));
        let mut tags: BTreeSet<String> = BTreeSet::new();
        let docs = self.docs.all();
        self.docs.fetch_rows(&docs);
        docs.iter().for_each(|doc| tags.extend(self.tags(*doc)));
        nodes.extend(tags.into_iter().map(|tag| Node::Tag(tag.into())));
        let snapshots = self.library.catalog.snapshots(scope, &SnapshotFilter::default(), SNAPSHOTS)?;
        nodes.extend(snapshots.into_iter().map(|one| Node::Snapshot(one.at)));
        Ok(nodes)
    }

    pub(super) fn collection_name(&self, id: CollectionId) -> String {
        let found = self.library.catalog.known_collection(self.caller.pass.scope(), id).ok().flatten();
        found.map(|found| found.name).unwrap_or_default()
    }

    /// What documents refer to and the library does not hold.
    pub(super) fn references(&self) -> Result<BTreeSet<String>> {
        let mut names = BTreeSet::new();
        for doc in self.docs.all() {
            self.call.check()?;
            let mut edges = Vec::new();
            self.docs.out_of_document(doc, &is_reference, &mut edges);
            names.extend(edges.into_iter().filter_map(|edge| match edge.to {
                Node::Reference(name) => Some(name.to_string()),
                _ => None,
            }));
        }
        Ok(names)
    }

    /// Whether a node has no edge of these relations; without any, none but those that say where it is kept.
    fn is_isolated(&self, node: &Node, relations: &[Relation]) -> Result<bool> {
        self.call.check()?;
        let wanted = |relation: Relation| {
            if relations.is_empty() {
                !matches!(
                    relation,
                    Relation::Contains | Relation::HasVersion | Relation::InSnapshot | Relation::Tagged
                )
            } else {
                relations.contains(&relation)
            }
        };
        if relations.is_empty()
            && let Node::Document(doc) = node
            && has_edges(&self.docs.facts(*doc))
        {
            return Ok(false);
        }
        Ok(self.outgoing(node, false, &wanted)?.is_empty() && self.incoming(node, false, &wanted)?.is_empty())
    }

    /// Figures of the whole graph.
    pub(super) fn stats(&self) -> Result<Stats> {
        let mut degrees: BTreeMap<Doc, (u64, u64)> = BTreeMap::new();
        let mut stats = Stats::default();
        for doc in self.docs.all() {
            self.call.check()?;
            let mut edges = Vec::new();
            self.docs.out_of_document(doc, &between_documents, &mut edges);
            self.docs.out_of_symbols(doc, &between_documents, &mut edges);
            degrees.entry(doc).or_default();
            stats.documents += 1;
            let mut seen = HashSet::new();
            for edge in edges {
                *stats.relations.entry(edge.relation.name()).or_default() += 1;
                if edge.because.is_broken {
                    stats.broken.push(edge);
                    continue;
                }
                let Some(target) = edge.to.doc().filter(|target| *target != doc && seen.insert(*target))
                else {
                    continue;
                };
                degrees.entry(doc).or_default().0 += 1;
                degrees.entry(target).or_default().1 += 1;
            }
        }
        let mut order: Vec<(Doc, (u64, u64))> = degrees.into_iter().collect();
        order.sort_by(|one, other| {
            let degree = |both: &(u64, u64)| both.0 + both.1;
            degree(&other.1)
                .cmp(&degree(&one.1))
                .then_with(|| self.docs.path(one.0).cmp(self.docs.path(other.0)))
        });
        for (doc, _) in order.iter().filter(|(_, both)| *both == (0, 0)) {
            if self.is_isolated(&Node::Document(*doc), &[])? {
                stats.orphans.push(*doc);
            }
        }
        stats.most = order.into_iter().filter(|(_, both)| *both != (0, 0)).take(20).collect();
        Ok(stats)
    }
}

/// Figures of a graph.
#[derive(Default)]
pub(super) struct Stats {
    pub(super) documents: u64,
    pub(super) relations: BTreeMap<&'static str, u64>,
    /// Documents with the most neighbours, with the numbers of those they lead to and those that lead to them.
    pub(super) most: Vec<(Doc, (u64, u64))>,
    /// Documents that nothing is connected with.
    pub(super) orphans: Vec<Doc>,
    /// Links that lead nowhere.
    pub(super) broken: Vec<Edge>,
}

const fn is_reference(relation: Relation) -> bool {
    matches!(relation, Relation::LinksTo | Relation::References | Relation::Imports | Relation::Cites)
}

const fn between_documents(relation: Relation) -> bool {
    relation.is_usual() && !matches!(relation, Relation::Defines)
}

/// The qualified names of the symbols of a kind, each once.
fn symbols(facts: &Facts, kind: SymbolKind) -> Vec<&str> {
    let mut seen = HashSet::new();
    let first = facts.definitions.iter().filter(|one| seen.insert(one.qualified.as_str()));
    first.filter(|one| one.kind == kind).map(|one| one.qualified.as_str()).collect()
}

/// Whether a document has an edge for sure, without looking at any other.
fn has_edges(facts: &Facts) -> bool {
    let leads_out = |link: &shelf_reading::facts::Link| {
        link.kind == LinkKind::Citation
            || !matches!(Target::of(&link.target, link.kind), Target::Inside { path, .. } if path.is_empty())
    };
    !facts.definitions.is_empty() || !facts.imports.is_empty() || facts.links.iter().any(leads_out)
}
