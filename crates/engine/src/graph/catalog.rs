//! Edges that the catalog knows: collections, versions, tags and snapshots.

use std::collections::BTreeSet;

use shelf_catalog::{Filter, SnapshotFilter};

use super::{
    Graph,
    docs::Doc,
    edges::{Because, Edge, Wanted},
    keys::Key,
    nodes::{Node, Relation},
};
use crate::Result;

/// Snapshots that are looked at for one document.
const SNAPSHOTS: usize = 256;

impl Graph<'_> {
    /// Edges that lead away from a node.
    pub(super) fn outgoing(&self, node: &Node, is_origin: bool, wanted: Wanted<'_>) -> Result<Vec<Edge>> {
        let mut edges = Vec::new();
        match node {
            Node::Document(doc) => {
                self.docs.out_of_document(*doc, wanted, &mut edges);
                if is_origin {
                    self.docs.out_of_symbols(*doc, wanted, &mut edges);
                }
                if wanted(Relation::HasVersion) {
                    self.versions(*doc, &mut edges)?;
                }
                if wanted(Relation::Tagged) {
                    let tags = self.tags(*doc);
                    edges.extend(
                        tags.into_iter()
                            .map(|tag| plain(node.clone(), Node::Tag(tag.into()), Relation::Tagged)),
                    );
                }
                if wanted(Relation::InSnapshot) {
                    self.snapshots(*doc, &mut edges)?;
                }
            }
            Node::Symbol(doc, name) => self.docs.out_of_symbol(*doc, name, wanted, &mut edges),
            Node::Collection(id) if wanted(Relation::Contains) => {
                for doc in self.docs.all() {
                    if self.docs.linked().known(doc).collection == *id {
                        edges.push(plain(node.clone(), Node::Document(doc), Relation::Contains));
                    }
                }
            }
            Node::Collection(_)
            | Node::Heading(..)
            | Node::Version(..)
            | Node::Tag(_)
            | Node::Snapshot(_)
            | Node::Reference(_) => {}
        }
        Ok(edges)
    }

    /// Edges that lead to a node.
    pub(super) fn incoming(&self, node: &Node, is_origin: bool, wanted: Wanted<'_>) -> Result<Vec<Edge>> {
        let mut edges = Vec::new();
        self.docs.edges_to(node, wanted, &mut edges);
        match node {
            Node::Document(doc) => {
                if wanted(Relation::Contains) {
                    let collection = self.docs.linked().known(*doc).collection;
                    edges.push(plain(Node::Collection(collection), node.clone(), Relation::Contains));
                }
                if is_origin {
                    let facts = self.docs.facts(*doc);
                    let names: BTreeSet<&str> =
                        facts.definitions.iter().map(|one| one.qualified.as_str()).collect();
                    let symbols = names.into_iter().map(|name| Node::Symbol(*doc, name.into()));
                    let headings =
                        facts.headings.iter().map(|one| Node::Heading(*doc, one.anchor.as_str().into()));
                    let without_own = |relation| {
                        relation != Relation::Defines && relation != Relation::Contains && wanted(relation)
                    };
                    for own in symbols.chain(headings) {
                        self.call.check()?;
                        self.docs.edges_to(&own, &without_own, &mut edges);
                    }
                }
            }
            Node::Tag(tag) if wanted(Relation::Tagged) => {
                for doc in self.tagged(tag)? {
                    edges.push(plain(Node::Document(doc), node.clone(), Relation::Tagged));
                }
            }
            Node::Snapshot(at) if wanted(Relation::InSnapshot) => {
                let id = at.with_micros();
                let snapshot = self.library.one_snapshot(self.caller, None, Some(&id), None)?;
                for doc in self.in_snapshot(&snapshot)?.into_keys() {
                    edges.push(plain(Node::Document(doc), node.clone(), Relation::InSnapshot));
                }
                edges.sort_by_cached_key(|edge| edge.from.doc().map(|doc| self.docs.path(doc)));
            }
            Node::Version(doc, _) if wanted(Relation::HasVersion) => {
                edges.push(plain(Node::Document(*doc), node.clone(), Relation::HasVersion));
            }
            _ => {}
        }
        Ok(edges)
    }

    /// The versions of a document, up to the one that is read.
    fn versions(&self, doc: Doc, edges: &mut Vec<Edge>) -> Result<()> {
        let Some(row) = self.docs.row(doc) else { return Ok(()) };
        let mut versions = self.library.catalog.versions(self.caller.pass.scope(), row.id)?;
        let read = self.docs.hash(doc);
        if let Some(last) = versions.iter().rposition(|version| version.hash == read) {
            versions.truncate(last + 1);
        }
        for version in versions {
            edges.push(plain(Node::Document(doc), Node::Version(doc, version.number), Relation::HasVersion));
        }
        Ok(())
    }

    /// The tags of a document: those that people gave it, and those in its text.
    pub(super) fn tags(&self, doc: Doc) -> BTreeSet<String> {
        let mut tags: BTreeSet<String> = self.docs.facts(doc).tags.iter().cloned().collect();
        tags.extend(self.docs.row(doc).map(|row| row.tags.clone()).unwrap_or_default());
        tags
    }

    /// The documents with a tag, by path.
    pub(super) fn tagged(&self, tag: &str) -> Result<Vec<Doc>> {
        let filter = Filter { tags: vec![tag.to_owned()], ..Filter::default() };
        let numbers = self.library.catalog.numbers(self.caller.pass.scope(), &filter)?;
        let mut docs: Vec<Doc> =
            numbers.into_iter().filter_map(|number| self.docs.of_number(number)).collect();
        let in_text = self.docs.with(Key::Tagged(tag)).into_iter();
        docs.extend(in_text.filter(|doc| self.docs.facts(*doc).tags.iter().any(|own| own == tag)));
        docs.sort_unstable();
        docs.dedup();
        docs.sort_by_cached_key(|doc| (self.docs.path(*doc), self.docs.number(*doc)));
        Ok(docs)
    }

    fn snapshots(&self, doc: Doc, edges: &mut Vec<Edge>) -> Result<()> {
        let Some(row) = self.docs.row(doc) else { return Ok(()) };
        let scope = self.caller.pass.scope();
        let filter = SnapshotFilter { collection: Some(&row.collection_name), ..SnapshotFilter::default() };
        let found = self.library.catalog.snapshots(scope, &filter, SNAPSHOTS + 1)?;
        if found.len() > SNAPSHOTS {
            self.docs.note_cut();
        }
        for snapshot in found.iter().take(SNAPSHOTS).filter(|snapshot| snapshot.collection == row.collection)
        {
            self.call.check()?;
            let listing = self.library.listing(snapshot, self.call)?;
            let path = super::snapshot::relative(&snapshot.draft.root, &row.path);
            let holds = path.is_some_and(|path| {
                listing.entries.binary_search_by(|entry| entry.path.as_str().cmp(path)).is_ok()
            });
            if holds {
                edges.push(plain(Node::Document(doc), Node::Snapshot(snapshot.at), Relation::InSnapshot));
            }
        }
        Ok(())
    }
}

fn plain(from: Node, to: Node, relation: Relation) -> Edge {
    Edge { from, to, relation, because: Because { confidence: 1.0, count: 1, ..Because::default() } }
}
