//! Edges to a node: documents that mention it are found by their keys, and their own edges are resolved.

use std::{collections::HashSet, rc::Rc};

use shelf_reading::{
    code,
    facts::{Definition, Facts, Language, LinkKind, SymbolKind},
};

use super::{
    docs::{Doc, Docs, speak_together},
    edges::{Edge, Wanted},
    keys::{self, Key},
    modules::outside_name,
    nodes::{Node, Relation},
    paths::{self, Target},
};

/// Words at the beginning of paths that say where these begin.
const RELATIVE: [&str; 5] = ["crate", "self", "super", ".", ".."];
/// A name with no more definitions than this may be meant without its type being named.
const RARE: usize = 16;
/// Files that use a name and are all looked at.
const MANY_USES: usize = 256;
/// Types that descend from another one, and whose users may call its methods.
const DESCENDANTS: usize = 64;
/// Names of a file by which it is looked for among imports.
const OUTER_NAMES: usize = 2_000;

impl Docs<'_> {
    /// Edges to a document, a heading or a symbol, from anywhere.
    pub(super) fn edges_to(&self, node: &Node, wanted: Wanted<'_>, edges: &mut Vec<Edge>) {
        let before = edges.len();
        match node {
            Node::Document(doc) => self.to_document(*doc, wanted, edges),
            Node::Heading(doc, _) => {
                if wanted(Relation::LinksTo) {
                    self.linking_to(*doc, wanted, edges);
                }
                if wanted(Relation::Contains) {
                    self.out_of_document(*doc, &|relation| relation == Relation::Contains, edges);
                }
            }
            Node::Symbol(doc, name) => self.to_symbol(*doc, name, wanted, edges),
            Node::Reference(name) => self.to_reference(name, wanted, edges),
            Node::Version(..) | Node::Tag(_) | Node::Collection(_) | Node::Snapshot(_) => {}
        }
        let mut at = 0;
        edges.retain(|edge| {
            at += 1;
            at <= before || edge.to == *node
        });
    }

    fn to_document(&self, doc: Doc, wanted: Wanted<'_>, edges: &mut Vec<Edge>) {
        if wanted(Relation::LinksTo) || wanted(Relation::Cites) {
            self.linking_to(doc, wanted, edges);
        }
        if wanted(Relation::Imports) {
            self.importing(doc, edges);
        }
        for relation in [Relation::DuplicateOf, Relation::SimilarTo] {
            if wanted(relation) {
                // Both are the same from either side.
                let mut same = Vec::new();
                if relation == Relation::DuplicateOf {
                    self.duplicates(doc, &mut same)
                } else {
                    self.similar(doc, &mut same)
                }
                edges.extend(same.into_iter().map(|edge| Edge { from: edge.to, to: edge.from, ..edge }));
            }
        }
    }

    /// Links and citations of others that may lead to a document or a place in it.
    fn linking_to(&self, doc: Doc, wanted: Wanted<'_>, edges: &mut Vec<Edge>) {
        let path = self.path(doc);
        let mut words = paths::stems(path);
        words.extend(self.title_of(doc).map(|title| paths::fold(&title)));
        words.sort_unstable();
        words.dedup();
        let mut docs: Vec<Doc> = words.iter().flat_map(|word| self.with(Key::Links(word))).collect();
        docs.push(doc);
        if wanted(Relation::Cites) {
            docs.extend(self.resource_names(doc).iter().flat_map(|name| self.with(Key::Cites(name))));
        }
        for other in self.in_order(docs) {
            let facts = self.facts(other);
            for link in &facts.links {
                let may_lead = match (link.kind, Target::of(&link.target, link.kind)) {
                    (LinkKind::Citation, _) => true,
                    (_, Target::Inside { path, .. }) => {
                        (path.is_empty() && other == doc)
                            || words.contains(&paths::fold(paths::stem(path.trim_end_matches('/'))))
                    }
                    (_, Target::Outside) => false,
                };
                if may_lead {
                    edges.extend(
                        self.link_edges(other, &facts, link).into_iter().filter(|edge| wanted(edge.relation)),
                    );
                }
            }
        }
    }

    fn importing(&self, doc: Doc, edges: &mut Vec<Edge>) {
        let facts = self.facts(doc);
        // Only code is imported.
        if facts.language.is_none() {
            return;
        }
        let path = self.path(doc);
        let mut words = paths::stems(path);
        words.push(paths::fold(paths::last(paths::folder(path))));
        if !facts.package.is_empty() {
            words.push(paths::fold(paths::last_name(&facts.package)));
        }
        // Items are imported by their names, crates and packages by those in their manifests.
        let outer = facts.definitions.iter().filter(|one| one.parent.is_none()).take(OUTER_NAMES);
        words.extend(outer.map(|one| paths::fold(paths::last_name(&one.name))));
        words.extend(self.package_words(doc));
        words.sort_unstable();
        words.dedup();
        let docs = self.may_import(doc, &words);
        for other in self.in_order(docs) {
            let theirs = self.facts(other);
            if !speak_together(theirs.language, facts.language) {
                continue;
            }
            let mut found = Vec::new();
            for (at, import) in theirs.imports.iter().enumerate() {
                let names = keys::import_words(import.kind, &import.module, &import.item);
                let may_mean = |name: &String| words.binary_search(name).is_ok() || is_relative(name);
                if names.iter().any(may_mean) {
                    self.import_edges(other, &theirs, at, &mut found);
                }
            }
            edges.extend(found.into_iter().filter(|edge| edge.to == Node::Document(doc)));
        }
    }

    /// Files that import something with one of these names, as far as that may be a document or a part of it.
    fn may_import(&self, doc: Doc, words: &[String]) -> Vec<Doc> {
        let path = self.path(doc);
        let language = self.facts(doc).language;
        let depth = paths::folder(path).split('/').count();
        let root = self.package_root(doc);
        let is_near = |one: Doc| match root {
            Some(root) => self.path(one).strip_prefix(root).is_some_and(|rest| rest.starts_with('/')),
            None => paths::common_folders(self.path(one), path) + 8 > depth,
        };
        let mut docs: Vec<Doc> = words.iter().flat_map(|word| self.with(Key::Imports(word))).collect();
        // Paths that say where they begin, not what they mean, are only used within one tree.
        for word in RELATIVE {
            docs.extend(self.with(Key::Imports(word)).into_iter().filter(|one| is_near(*one)));
        }
        let packages = if language == Some(Language::Rust) { self.package_words(doc) } else { Vec::new() };
        // Another crate names this one in its paths.
        let naming: Option<HashSet<Doc>> = (!packages.is_empty()).then(|| {
            let names = packages.iter().map(|name| outside_name("rust", &name.replace('-', "_")));
            names.flat_map(|name| self.with(Key::Refers(&name))).collect()
        });
        docs.retain(|one| {
            *one != doc
                && code::language_of(self.path(*one), "")
                    .is_none_or(|theirs| speak_together(Some(theirs), language))
                && naming.as_ref().is_none_or(|naming| is_near(*one) || naming.contains(one))
        });
        docs
    }

    /// The folder of the manifest around a file of code; `None` when there is none, or it is the outermost one.
    fn package_root(&self, doc: Doc) -> Option<&str> {
        let manifest = match self.facts(doc).language? {
            Language::Rust => "Cargo.toml",
            Language::JavaScript | Language::TypeScript => "package.json",
            Language::Go => "go.mod",
            _ => return None,
        };
        let mut around = paths::folders_around(self.path(doc)).filter(|folder| !folder.is_empty());
        around.find(|folder| self.at_path(&format!("{folder}/{manifest}"), doc).is_some())
    }

    fn to_symbol(&self, doc: Doc, name: &Rc<str>, wanted: Wanted<'_>, edges: &mut Vec<Edge>) {
        let facts = self.facts(doc);
        if wanted(Relation::Defines) {
            self.out_of_document(doc, &|relation| relation == Relation::Defines, edges);
        }
        if wanted(Relation::Contains) {
            self.out_of_symbols(doc, &|relation| relation == Relation::Contains, edges);
        }
        let Some(own) = facts.definitions.iter().find(|one| *one.qualified == **name) else { return };
        let mut docs = Vec::new();
        if wanted(Relation::Calls) || wanted(Relation::References) {
            docs.extend(self.may_use(doc, &facts, own));
            if own.kind != SymbolKind::Method {
                docs.extend(self.renaming(&own.name));
            }
        }
        for other in self.in_order(docs) {
            let theirs = self.facts(other);
            if !speak_together(theirs.language, facts.language) {
                continue;
            }
            for one in theirs
                .uses
                .iter()
                .filter(|one| one.name == own.name || renames(&theirs, &one.name, &own.name))
            {
                self.use_edges(other, &theirs, one, wanted, edges);
            }
        }
        if wanted(Relation::Inherits) || wanted(Relation::Implements) {
            for other in self.with(Key::Descends(&own.name)) {
                let theirs = self.facts(other);
                self.ancestor_edges(other, &theirs, None, wanted, edges);
            }
        }
    }

    /// Files that use the name of a definition. A method of a common name is only meant where its type, or one that
    /// descends from it, is named as well: everybody has a `new` and a `get`.
    fn may_use(&self, doc: Doc, facts: &Facts, own: &Definition) -> Vec<Doc> {
        let separator = facts.language.map_or(".", Language::separator);
        let owner =
            own.qualified.strip_suffix(own.name.as_str()).and_then(|rest| rest.strip_suffix(separator));
        let is_method = own.kind == SymbolKind::Method;
        let Some(owner) =
            owner.filter(|_| is_method && self.few_with(Key::Defines(&own.name), RARE).is_none())
        else {
            return self.with(Key::Uses(&own.name));
        };
        if let Some(docs) = self.few_with(Key::Uses(&own.name), MANY_USES) {
            return docs;
        }
        let mut docs = self.naming(paths::last_name(owner)).to_vec();
        docs.push(doc);
        let folder = paths::folder(self.path(doc));
        docs.extend(self.with(Key::Folder(&paths::fold(paths::last(folder)))));
        docs
    }

    /// Files that name a type or one of its descendants.
    fn naming(&self, name: &str) -> Rc<[Doc]> {
        if let Some(known) = self.named_types.borrow().get(name) {
            return known.clone();
        }
        let (mut names, mut docs) = (vec![name.to_owned()], Vec::new());
        let mut at = 0;
        while let Some(name) = names.get(at).cloned() {
            at += 1;
            docs.extend(self.with(Key::Uses(&name)));
            docs.extend(self.with(Key::Imports(&paths::fold(&name))));
            for other in self.with(Key::Descends(&name)) {
                docs.push(other);
                for one in self.facts(other).ancestors.iter() {
                    let descendant = paths::last_name(&one.of);
                    let is_new =
                        paths::last_name(&one.name) == name && !names.iter().any(|known| known == descendant);
                    if is_new && names.len() < DESCENDANTS {
                        names.push(descendant.to_owned());
                    }
                }
            }
        }
        docs.sort_unstable();
        docs.dedup();
        let docs: Rc<[Doc]> = docs.into();
        self.named_types.borrow_mut().insert(name.to_owned(), docs.clone());
        docs
    }

    /// Files that import a name, perhaps under another one.
    fn renaming(&self, name: &str) -> Vec<Doc> {
        let mut docs = self.with(Key::Imports(&paths::fold(name)));
        docs.retain(|doc| self.facts(*doc).imports.iter().any(|one| one.item == name && one.local != name));
        docs
    }

    fn to_reference(&self, name: &str, wanted: Wanted<'_>, edges: &mut Vec<Edge>) {
        for other in self.with(Key::Refers(name)) {
            let facts = self.facts(other);
            let links = facts.links.iter().filter(|link| link.target == name);
            edges.extend(
                links
                    .flat_map(|link| self.link_edges(other, &facts, link))
                    .filter(|edge| wanted(edge.relation)),
            );
            if wanted(Relation::Imports) {
                (0..facts.imports.len()).for_each(|at| self.import_edges(other, &facts, at, edges));
            }
        }
    }

    /// Each document once, by path.
    fn in_order(&self, mut docs: Vec<Doc>) -> Vec<Doc> {
        docs.sort_unstable();
        docs.dedup();
        docs.sort_by_cached_key(|doc| (self.path(*doc), self.number(*doc)));
        docs
    }
}

fn is_relative(name: &str) -> bool {
    RELATIVE.contains(&name)
}

/// Whether a file calls `name` by `local`.
fn renames(facts: &Facts, local: &str, name: &str) -> bool {
    local != name && facts.imports.iter().any(|one| one.local == local && one.item == name)
}
