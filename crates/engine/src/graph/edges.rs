//! Edges from a node, found in the facts and resolved at this moment. Those to a node are in [`incoming`](super::incoming).

use shelf_reading::facts::{Facts, Link, LinkKind, Use, UseKind};

use super::{
    docs::{Doc, Docs},
    keys::{self, Key},
    modules::outside_name,
    nodes::{Node, Relation},
    paths::{self, Target},
};

/// Endings that links to pages may leave out or write otherwise.
const PAGE_ENDINGS: [&str; 9] =
    [".md", ".markdown", ".mdx", ".rst", ".adoc", ".html", "/index.md", "/README.md", "/index.html"];
/// Likeness of sketches from which documents count as near duplicates.
const LIKENESS: f32 = 0.5;
/// Cosine from which documents count as neighbours in meaning.
const COSINE: f32 = 0.75;
/// Neighbours of one document at most.
const NEIGHBOURS: usize = 10;

/// Why two nodes are connected.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Because {
    pub(super) line: u32,
    pub(super) text: String,
    pub(super) title: String,
    /// How it is written, or what a likeness rests on.
    pub(super) kind: &'static str,
    pub(super) confidence: f32,
    pub(super) candidates: usize,
    pub(super) count: u32,
    /// The words of the source: a link's target, a module's path.
    pub(super) written: String,
    pub(super) anchor: String,
    pub(super) is_broken: bool,
    pub(super) score: Option<f32>,
}

/// An edge.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Edge {
    pub(super) from: Node,
    pub(super) to: Node,
    pub(super) relation: Relation,
    pub(super) because: Because,
}

/// Where a link leads.
pub(super) struct Led {
    pub(super) doc: Doc,
    pub(super) confidence: f32,
    pub(super) candidates: usize,
}

/// Which relations a walk follows.
pub(super) type Wanted<'w> = &'w dyn Fn(Relation) -> bool;

impl Docs<'_> {
    /// Edges from a document itself; not those of its symbols, nor those that the catalog knows.
    pub(super) fn out_of_document(&self, doc: Doc, wanted: Wanted<'_>, edges: &mut Vec<Edge>) {
        let facts = self.facts(doc);
        let own = Node::Document(doc);
        if wanted(Relation::Contains) {
            for heading in &facts.headings {
                let because = Because { line: heading.line, confidence: 1.0, count: 1, ..Because::default() };
                let to = Node::Heading(doc, heading.anchor.as_str().into());
                edges.push(Edge { from: own.clone(), to, relation: Relation::Contains, because });
            }
        }
        let follows_links =
            wanted(Relation::LinksTo) || wanted(Relation::References) || wanted(Relation::Cites);
        if follows_links {
            let links = facts.links.iter().flat_map(|link| self.link_edges(doc, &facts, link));
            edges.extend(links.filter(|edge| wanted(edge.relation)));
        }
        if wanted(Relation::Imports) {
            (0..facts.imports.len()).for_each(|at| self.import_edges(doc, &facts, at, edges));
        }
        if wanted(Relation::Defines) {
            for definition in &facts.definitions {
                let because =
                    Because { line: definition.lines.0, confidence: 1.0, count: 1, ..Because::default() };
                let to = Node::Symbol(doc, definition.qualified.as_str().into());
                edges.push(Edge { from: own.clone(), to, relation: Relation::Defines, because });
            }
        }
        let uses = facts.uses.iter().filter(|one| one.from.is_none());
        uses.for_each(|one| self.use_edges(doc, &facts, one, wanted, edges));
        if wanted(Relation::DuplicateOf) {
            self.duplicates(doc, edges);
        }
        if wanted(Relation::SimilarTo) {
            self.similar(doc, edges);
        }
    }

    /// Edges from a symbol.
    pub(super) fn out_of_symbol(&self, doc: Doc, name: &str, wanted: Wanted<'_>, edges: &mut Vec<Edge>) {
        let facts = self.facts(doc);
        let own: Vec<u32> = (0u32..)
            .zip(&facts.definitions)
            .filter(|(_, one)| one.qualified == name)
            .map(|(at, _)| at)
            .collect();
        if wanted(Relation::Contains) {
            let inner =
                facts.definitions.iter().filter(|one| one.parent.is_some_and(|parent| own.contains(&parent)));
            for one in inner {
                let because = Because { line: one.lines.0, confidence: 1.0, count: 1, ..Because::default() };
                let to = Node::Symbol(doc, one.qualified.as_str().into());
                let from = Node::Symbol(doc, name.into());
                edges.push(Edge { from, to, relation: Relation::Contains, because });
            }
        }
        if wanted(Relation::Calls) || wanted(Relation::References) {
            let uses = facts.uses.iter().filter(|one| one.from.is_some_and(|from| own.contains(&from)));
            uses.for_each(|one| self.use_edges(doc, &facts, one, wanted, edges));
        }
        if wanted(Relation::Inherits) || wanted(Relation::Implements) {
            self.ancestor_edges(doc, &facts, Some(name), wanted, edges);
        }
    }

    /// Edges from every symbol of a document.
    pub(super) fn out_of_symbols(&self, doc: Doc, wanted: Wanted<'_>, edges: &mut Vec<Edge>) {
        let facts = self.facts(doc);
        let uses = facts.uses.iter().filter(|one| one.from.is_some());
        uses.for_each(|one| self.use_edges(doc, &facts, one, wanted, edges));
        self.ancestor_edges(doc, &facts, None, wanted, edges);
        if wanted(Relation::Contains) {
            for one in &facts.definitions {
                let Some(parent) = one.parent.and_then(|parent| facts.definitions.get(parent as usize))
                else {
                    continue;
                };
                let because = Because { line: one.lines.0, confidence: 1.0, count: 1, ..Because::default() };
                edges.push(Edge {
                    from: Node::Symbol(doc, parent.qualified.as_str().into()),
                    to: Node::Symbol(doc, one.qualified.as_str().into()),
                    relation: Relation::Contains,
                    because,
                });
            }
        }
    }

    pub(super) fn use_edges(
        &self,
        doc: Doc,
        facts: &Facts,
        one: &Use,
        wanted: Wanted<'_>,
        edges: &mut Vec<Edge>,
    ) {
        let relation = match one.kind {
            UseKind::Mention => Relation::References,
            UseKind::Call | UseKind::PathCall | UseKind::MemberCall | UseKind::Construct => Relation::Calls,
        };
        if !wanted(relation) {
            return;
        }
        let from = match one.from.and_then(|from| facts.definitions.get(from as usize)) {
            Some(definition) => Node::Symbol(doc, definition.qualified.as_str().into()),
            None => Node::Document(doc),
        };
        for meaning in self.meanings(doc, facts, one) {
            let to = Node::Symbol(meaning.doc, meaning.qualified);
            if to == from && relation == Relation::References {
                continue;
            }
            let because = Because {
                line: one.line,
                text: if one.receiver.is_empty() {
                    one.name.clone()
                } else {
                    format!("{}.{}", one.receiver, one.name)
                },
                confidence: meaning.confidence,
                candidates: meaning.candidates,
                count: one.count,
                ..Because::default()
            };
            edges.push(Edge { from: from.clone(), to, relation, because });
        }
    }

    /// Edges from types of a document to their ancestors; of one type when a name is given.
    pub(super) fn ancestor_edges(
        &self,
        doc: Doc,
        facts: &Facts,
        only: Option<&str>,
        wanted: Wanted<'_>,
        edges: &mut Vec<Edge>,
    ) {
        for ancestor in &facts.ancestors {
            if only.is_some_and(|only| ancestor.of != only) {
                continue;
            }
            let from = self.descendant(doc, facts, &ancestor.of);
            for meaning in self.types_named(doc, facts, paths::last_name(&ancestor.name)) {
                let target = self.facts(meaning.doc);
                let kind = target
                    .definitions
                    .iter()
                    .find(|one| *one.qualified == *meaning.qualified)
                    .map(|one| one.kind);
                let own =
                    facts.definitions.iter().find(|one| one.qualified == ancestor.of).map(|one| one.kind);
                use shelf_reading::facts::SymbolKind::{Interface, Trait};
                let is_interface =
                    matches!(kind, Some(Interface | Trait)) && !matches!(own, Some(Interface | Trait));
                let implements = ancestor.implements || is_interface;
                let relation = if implements { Relation::Implements } else { Relation::Inherits };
                let to = Node::Symbol(meaning.doc, meaning.qualified);
                if !wanted(relation) || to == from {
                    continue;
                }
                let because = Because {
                    line: ancestor.line,
                    text: ancestor.name.clone(),
                    confidence: meaning.confidence,
                    candidates: meaning.candidates,
                    count: 1,
                    ..Because::default()
                };
                edges.push(Edge { from: from.clone(), to, relation, because });
            }
        }
    }

    /// The type whose ancestor is told: mostly of the same file, else the one that the name means there.
    fn descendant(&self, doc: Doc, facts: &Facts, name: &str) -> Node {
        if facts.definitions.iter().any(|one| one.qualified == name) {
            return Node::Symbol(doc, name.into());
        }
        match self.types_named(doc, facts, paths::last_name(name)).into_iter().next() {
            Some(found) => Node::Symbol(found.doc, found.qualified),
            None => Node::Document(doc),
        }
    }

    pub(super) fn import_edges(&self, doc: Doc, facts: &Facts, at: usize, edges: &mut Vec<Edge>) {
        let import = &facts.imports[at];
        let found = self.imported(doc, facts, at);
        let written = if import.item.is_empty() {
            import.module.clone()
        } else {
            format!("{} {}", import.module, import.item)
        };
        let because = Because {
            line: import.line,
            written,
            confidence: found.confidence,
            candidates: found.docs.len(),
            count: 1,
            text: found.symbol.as_ref().map(|(_, name)| name.to_string()).unwrap_or_default(),
            ..Because::default()
        };
        let from = Node::Document(doc);
        if found.docs.is_empty() {
            let language = facts.language.map_or("", |language| language.name());
            let to = Node::Reference(outside_name(language, &import.module).into());
            let because = Because { confidence: 1.0, ..because };
            edges.push(Edge { from, to, relation: Relation::Imports, because });
            return;
        }
        for target in found.via.into_iter().chain(found.docs.iter().copied()) {
            if target != doc {
                let to = Node::Document(target);
                edges.push(Edge {
                    from: from.clone(),
                    to,
                    relation: Relation::Imports,
                    because: because.clone(),
                });
            }
        }
    }

    /// The edges of a link: to a document, to the heading that it names, or to a reference.
    pub(super) fn link_edges(&self, doc: Doc, facts: &Facts, link: &Link) -> Vec<Edge> {
        let from = Node::Document(doc);
        let because = Because {
            line: link.line,
            text: link.text.clone(),
            title: link.title.clone(),
            kind: link.kind.name(),
            confidence: 1.0,
            candidates: 1,
            count: 1,
            written: link.target.clone(),
            ..Because::default()
        };
        let edge = |to: Node, relation, because| Edge { from: from.clone(), to, relation, because };
        let reference = |because: Because, relation| {
            edge(Node::Reference(link.target.as_str().into()), relation, because)
        };
        if link.kind == LinkKind::Citation {
            let cited =
                paths::resource_of(&link.target).map(|resource| self.resource(&resource)).unwrap_or_default();
            return match cited {
                Some(cited) => vec![edge(Node::Document(cited), Relation::Cites, because)],
                None => vec![reference(Because { is_broken: true, ..because }, Relation::Cites)],
            };
        }
        let Target::Inside { path, anchor } = Target::of(&link.target, link.kind) else {
            return vec![reference(because, Relation::References)];
        };
        if path.is_empty() {
            return match self.heading_at(doc, facts, &anchor) {
                Some(heading) => vec![edge(heading, Relation::LinksTo, because)],
                None if facts.anchors.contains(&anchor) || anchor.is_empty() || anchor == "top" => Vec::new(),
                None => vec![reference(Because { is_broken: true, ..because }, Relation::LinksTo)],
            };
        }
        let Some(led) = self.led(doc, &path, link.kind) else {
            return vec![reference(Because { is_broken: true, ..because }, Relation::LinksTo)];
        };
        let target = self.facts(led.doc);
        let heading = if anchor.is_empty() { None } else { self.heading_at(led.doc, &target, &anchor) };
        let has_place =
            anchor.is_empty() || heading.is_some() || target.anchors.contains(&anchor) || is_lines(&anchor);
        let because = Because {
            confidence: led.confidence,
            candidates: led.candidates,
            anchor,
            is_broken: !has_place,
            ..because
        };
        let mut edges = vec![edge(Node::Document(led.doc), Relation::LinksTo, because.clone())];
        edges.extend(heading.map(|heading| edge(heading, Relation::LinksTo, because)));
        edges
    }

    fn heading_at(&self, doc: Doc, facts: &Facts, anchor: &str) -> Option<Node> {
        let found = facts.headings.iter().find(|one| one.anchor == anchor).or_else(|| {
            // Links of wikis name a heading by its words.
            let folded = shelf_reading::links::slug(anchor);
            facts.headings.iter().find(|one| one.anchor == folded || one.anchor.eq_ignore_ascii_case(anchor))
        })?;
        Some(Node::Heading(doc, found.anchor.as_str().into()))
    }

    /// The document that a link means.
    pub(super) fn led(&self, doc: Doc, path: &str, kind: LinkKind) -> Option<Led> {
        if kind == LinkKind::Wiki {
            return self.led_by_name(doc, path);
        }
        let own = paths::folder(self.path(doc));
        let one = |doc, confidence| Some(Led { doc, confidence, candidates: 1 });
        if let Some(found) = paths::join(own, path).and_then(|path| self.page_at(&path, doc)) {
            return one(found.0, found.1);
        }
        // From the root of a site, which is one of the folders around the document.
        if let Some(rooted) = path.strip_prefix('/') {
            for folder in paths::folders_around(self.path(doc)) {
                if let Some(found) = paths::join(folder, rooted).and_then(|path| self.page_at(&path, doc)) {
                    return one(found.0, 0.8 * found.1);
                }
            }
        }
        None
    }

    /// A page by its path, or by what its path would be as another format.
    fn page_at(&self, path: &str, near: Doc) -> Option<(Doc, f32)> {
        let path = path.trim_end_matches('/');
        if let Some(found) = self.at_path(path, near) {
            return Some((found, 1.0));
        }
        let stem = path.strip_suffix(".html").or_else(|| path.strip_suffix(".htm"));
        let bases = [Some(path), stem].into_iter().flatten();
        bases
            .flat_map(|base| PAGE_ENDINGS.iter().map(move |ending| format!("{base}{ending}")))
            .find_map(|candidate| self.at_path(&candidate, near))
            .map(|found| (found, 0.9))
    }

    fn led_by_name(&self, doc: Doc, name: &str) -> Option<Led> {
        let name = name.trim_end_matches(".md");
        if name.contains('/')
            && let Some((found, confidence)) = paths::join("", name).and_then(|path| self.page_at(&path, doc))
        {
            return Some(Led { doc: found, confidence, candidates: 1 });
        }
        let folded = paths::fold(paths::last(name));
        let folders = paths::fold(paths::folder(name));
        let mut found = self.with(Key::Stem(&folded));
        found.retain(|one| {
            let path = self.path(*one);
            paths::fold(paths::stem(path)) == folded && paths::fold(paths::folder(path)).ends_with(&folders)
        });
        if found.is_empty() {
            found = self.with(Key::Title(&paths::fold(name)));
            found.retain(|one| *one != doc);
        }
        self.nearest_first(&mut found, doc);
        let candidates = found.len();
        let confidence = if candidates == 1 { 1.0 } else { 0.7 };
        found.first().map(|first| Led { doc: *first, confidence, candidates })
    }

    pub(super) fn duplicates(&self, doc: Doc, edges: &mut Vec<Edge>) {
        let hash = self.hash(doc);
        let mut same = self.with(Key::Content(&hash.to_string()));
        same.retain(|one| *one != doc && self.hash(*one) == hash);
        for other in same {
            let because = Because { confidence: 1.0, count: 1, ..Because::default() };
            let (from, to) = (Node::Document(doc), Node::Document(other));
            edges.push(Edge { from, to, relation: Relation::DuplicateOf, because });
        }
    }

    /// Near duplicates by their sketches, and neighbours in meaning by their vectors.
    pub(super) fn similar(&self, doc: Doc, edges: &mut Vec<Edge>) {
        let own = self.facts(doc);
        let hash = self.hash(doc);
        let mut alike: Vec<(Doc, f32)> = Vec::new();
        if let Some(sketch) = &own.sketch {
            let mut docs: Vec<Doc> =
                sketch.bands().into_iter().flat_map(|band| self.with_hash(keys::band(band), 256)).collect();
            docs.sort_unstable();
            docs.dedup();
            for other in docs.into_iter().filter(|other| *other != doc && self.hash(*other) != hash) {
                let likeness = self.facts(other).sketch.as_ref().map_or(0.0, |other| sketch.likeness(other));
                if likeness >= LIKENESS {
                    alike.push((other, likeness));
                }
            }
        }
        alike.sort_by(|one, other| {
            other.1.total_cmp(&one.1).then_with(|| self.path(one.0).cmp(self.path(other.0)))
        });
        let mut near = self.linked().neighbours(doc, NEIGHBOURS + 1);
        near.retain(|(other, cosine)| *cosine >= COSINE && self.hash(*other) != hash);
        near.truncate(NEIGHBOURS);
        let words = alike.iter().map(|(other, score)| (*other, *score, "words"));
        let meaning = near.iter().filter(|(other, _)| alike.iter().all(|(known, _)| known != other));
        for (other, score, basis) in words.chain(meaning.map(|(other, score)| (*other, *score, "meaning"))) {
            let because = Because {
                kind: basis,
                score: Some((score * 1000.0).round() / 1000.0),
                confidence: 1.0,
                count: 1,
                ..Because::default()
            };
            let (from, to) = (Node::Document(doc), Node::Document(other));
            edges.push(Edge { from, to, relation: Relation::SimilarTo, because });
        }
    }
}

/// `L10-L20`: lines of a file, as code hosts write them.
fn is_lines(anchor: &str) -> bool {
    anchor
        .strip_prefix(['L', 'l'])
        .is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
}
