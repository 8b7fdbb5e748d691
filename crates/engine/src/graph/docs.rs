//! The documents that a question is about: those of the caller, as they are now or as a snapshot has them.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use foldhash::{HashMap, HashSet};
use shelf_base::Digest;
use shelf_catalog::{Document, Scope};
use shelf_index::{Linked, Place};
use shelf_reading::facts::{Facts, Language};

use super::{keys::Key, memo::Memo, modules::Imported, paths};
use crate::Library;

/// A document of the view at hand.
pub(super) type Doc = Place;

/// Documents that one key leads to at most. Where there are more, the answer says that it is cut.
const LOOKED_AT: usize = 4_096;
/// Files with more definitions than this have a table of their names.
const MANY_DEFINITIONS: usize = 256;
/// Facts that are kept unpacked during one question.
const KEPT_FACTS: usize = 20_000;

/// Keys whose documents are kept during one question, and documents of one of them at most.
const KEPT_KEYS: usize = 20_000;
const KEPT_LIST: usize = 512;

/// Places of definitions, by their names.
type Names = HashMap<String, Vec<u32>>;

/// Documents by a key and how many of them were asked for at most.
type Keyed = HashMap<(u32, usize), Rc<[Doc]>>;

/// The files of a module, and how sure that is.
type Module = (Rc<[Doc]>, f32);

/// A document as a snapshot has it.
pub(super) struct Other {
    pub(super) hash: Digest,
    pub(super) facts: Rc<Facts>,
    pub(super) keys: HashSet<u32>,
}

/// The documents of a question.
pub(super) struct Docs<'a> {
    library: &'a Library,
    scope: &'a Scope,
    linked: Linked<'a>,
    /// What the catalog says of documents.
    rows: RefCell<HashMap<Doc, Option<Rc<Document>>>>,
    /// Documents whose version in the snapshot is not the present one.
    others: HashMap<Doc, Other>,
    facts: RefCell<HashMap<Doc, Rc<Facts>>>,
    /// Definitions of large files by their names.
    names: RefCell<HashMap<Doc, Names>>,
    /// Documents that have a key, as far as they were asked for.
    keyed: RefCell<Keyed>,
    /// Documents that name a type or a descendant of it.
    pub(super) named_types: RefCell<HashMap<String, Rc<[Doc]>>>,
    /// What imports mean, by document, place and how many files they may be passed on through.
    pub(super) imports: Memo<(Doc, usize, u32), Rc<Imported>>,
    /// The files of the modules that imports name.
    pub(super) modules: Memo<(Doc, usize), Module>,
    /// The roots of the crates that files belong to.
    pub(super) roots: Memo<Doc, Option<Doc>>,
    /// Whether a bound left something out.
    cut: Cell<bool>,
}

impl<'a> Docs<'a> {
    pub(super) fn new(
        library: &'a Library,
        scope: &'a Scope,
        linked: Linked<'a>,
        others: HashMap<Doc, Other>,
    ) -> Self {
        let (rows, facts, names) = (RefCell::default(), RefCell::default(), RefCell::default());
        let (keyed, named_types, cut) = (RefCell::default(), RefCell::default(), Cell::new(false));
        let (imports, modules, roots) = (Memo::default(), Memo::default(), Memo::default());
        Self {
            library,
            scope,
            linked,
            rows,
            others,
            facts,
            names,
            keyed,
            named_types,
            imports,
            modules,
            roots,
            cut,
        }
    }

    /// What the catalog says of a document; `None` when it was deleted meanwhile.
    pub(super) fn row(&self, doc: Doc) -> Option<Rc<Document>> {
        self.fetch_rows(&[doc]);
        self.rows.borrow().get(&doc).cloned().flatten()
    }

    /// Asks the catalog for several documents at once.
    pub(super) fn fetch_rows(&self, docs: &[Doc]) {
        let known = |doc: &Doc| self.rows.borrow().contains_key(doc);
        let mut missing: Vec<Doc> = docs.iter().copied().filter(|doc| !known(doc)).collect();
        missing.sort_unstable();
        missing.dedup();
        for some in missing.chunks(512) {
            let numbers: Vec<i64> = some.iter().map(|doc| self.number(*doc)).collect();
            let found = self.library.catalog.numbered(self.scope, &numbers).unwrap_or_default();
            let mut by_number: HashMap<i64, Document> =
                found.into_iter().map(|row| (row.number, row)).collect();
            let mut rows = self.rows.borrow_mut();
            for (doc, number) in some.iter().zip(numbers) {
                rows.insert(*doc, by_number.remove(&number).map(Rc::new));
            }
        }
    }

    pub(super) fn title_of(&self, doc: Doc) -> Option<String> {
        self.row(doc).map(|row| row.title.clone())
    }

    /// The document that a citation names: by its resource id, its own id or its content.
    pub(super) fn resource(&self, name: &str) -> Option<Doc> {
        if let Ok(id) = name.parse() {
            let found = self.library.catalog.document(self.scope, id).ok().flatten();
            return found.and_then(|row| self.of_number(row.number));
        }
        if name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            let hash = name.to_ascii_lowercase();
            return self
                .with(Key::Content(&hash))
                .into_iter()
                .find(|doc| self.hash(*doc).to_string() == hash);
        }
        let named = self.with(Key::Stem(&paths::fold(name)));
        named
            .into_iter()
            .find(|doc| self.row(*doc).is_some_and(|row| row.resource_id.as_deref() == Some(name)))
    }

    /// The names by which a document can be cited.
    pub(super) fn resource_names(&self, doc: Doc) -> Vec<String> {
        let mut names = vec![self.hash(doc).to_string()];
        if let Some(row) = self.row(doc) {
            names.push(row.id.to_string());
            names.extend(row.resource_id.clone());
        }
        names
    }

    /// The names of packages that a document is the main file of.
    pub(super) fn package_words(&self, doc: Doc) -> Vec<String> {
        let mut words = Vec::new();
        for folder in paths::folders_around(self.path(doc)).take(2) {
            for manifest in ["Cargo.toml", "package.json", "go.mod"] {
                let path =
                    if folder.is_empty() { manifest.to_owned() } else { format!("{folder}/{manifest}") };
                if let Some(found) = self.at_path(&path, doc) {
                    let package = &self.facts(found).package;
                    words.extend([paths::fold(package), paths::fold(paths::last_name(package))]);
                }
            }
        }
        words
    }

    pub(super) fn was_cut(&self) -> bool {
        self.cut.get()
    }

    pub(super) fn note_cut(&self) {
        self.cut.set(true);
    }

    pub(super) const fn linked(&self) -> &Linked<'a> {
        &self.linked
    }

    pub(super) fn path(&self, doc: Doc) -> &'a str {
        self.linked.known(doc).path
    }

    pub(super) fn number(&self, doc: Doc) -> i64 {
        self.linked.known(doc).number
    }

    pub(super) fn hash(&self, doc: Doc) -> Digest {
        self.others.get(&doc).map_or_else(|| self.linked.known(doc).hash, |other| other.hash)
    }

    pub(super) fn of_number(&self, number: i64) -> Option<Doc> {
        self.linked.place(number)
    }

    /// Every document, by path.
    pub(super) fn all(&self) -> Vec<Doc> {
        let mut all: Vec<Doc> = self.linked.all().collect();
        all.sort_by_cached_key(|doc| {
            let known = self.linked.known(*doc);
            (known.path, known.number)
        });
        all
    }

    pub(super) fn facts(&self, doc: Doc) -> Rc<Facts> {
        if let Some(other) = self.others.get(&doc) {
            return other.facts.clone();
        }
        if let Some(known) = self.facts.borrow().get(&doc) {
            return known.clone();
        }
        let facts = Rc::new(Facts::decode(self.linked.facts(doc)).unwrap_or_default());
        let mut kept = self.facts.borrow_mut();
        if kept.len() >= KEPT_FACTS {
            kept.clear();
        }
        kept.insert(doc, facts.clone());
        facts
    }

    /// The definitions of a name in a document, by their places. Large files are not searched from end to end each time.
    pub(super) fn definitions_named(&self, doc: Doc, name: &str) -> Vec<u32> {
        let facts = self.facts(doc);
        if facts.definitions.len() < MANY_DEFINITIONS {
            let own = (0..).zip(&facts.definitions).filter(|(_, one)| one.name == name);
            return own.map(|(at, _)| at).collect();
        }
        let mut known = self.names.borrow_mut();
        let names = known.entry(doc).or_insert_with(|| {
            let mut names = Names::default();
            for (at, one) in (0..).zip(&facts.definitions) {
                names.entry(one.name.clone()).or_default().push(at);
            }
            names
        });
        names.get(name).cloned().unwrap_or_default()
    }

    /// Documents that have a key, by path.
    pub(super) fn with_hash(&self, key: u32, most: usize) -> Vec<Doc> {
        if let Some(known) = self.keyed.borrow().get(&(key, most)) {
            return known.to_vec();
        }
        let found = self.find_hash(key, most);
        let mut keyed = self.keyed.borrow_mut();
        if keyed.len() >= KEPT_KEYS {
            keyed.clear();
        }
        if found.len() <= KEPT_LIST {
            keyed.insert((key, most), found.as_slice().into());
        }
        found
    }

    fn find_hash(&self, key: u32, most: usize) -> Vec<Doc> {
        let mut found = self.linked.mentioning(key, most);
        if !self.others.is_empty() {
            found.retain(|doc| self.others.get(doc).is_none_or(|other| other.keys.contains(&key)));
            let known: HashSet<Doc> = found.iter().copied().collect();
            let others =
                self.others.iter().filter(|(doc, other)| other.keys.contains(&key) && !known.contains(doc));
            found.extend(others.map(|(doc, _)| *doc));
        }
        if found.len() > 1 {
            found.sort_by_cached_key(|doc| {
                let known = self.linked.known(*doc);
                (known.path, known.number)
            });
        }
        found
    }

    /// Documents that have a key, by path.
    pub(super) fn with(&self, key: Key<'_>) -> Vec<Doc> {
        let found = self.with_hash(key.hash(), LOOKED_AT);
        if found.len() == LOOKED_AT {
            self.note_cut();
        }
        found
    }

    /// The same, unless there are more than `most`.
    pub(super) fn few_with(&self, key: Key<'_>, most: usize) -> Option<Vec<Doc>> {
        let found = self.with_hash(key.hash(), most + 1);
        (found.len() <= most).then_some(found)
    }

    /// The document with a path; of several the one in the same collection as `near`.
    pub(super) fn at_path(&self, path: &str, near: Doc) -> Option<Doc> {
        let own = self.linked.known(near).collection;
        let mut found = self.with(Key::Path(path));
        found.retain(|doc| self.path(*doc) == path);
        found.iter().copied().find(|doc| self.linked.known(*doc).collection == own).or(found.first().copied())
    }

    /// Documents whose path ends with `suffix`, the nearest to `near` first.
    pub(super) fn ending(&self, suffix: &str, near: Doc) -> Vec<Doc> {
        let stem = paths::fold(paths::stem(suffix));
        let fits = |path: &str| {
            path.strip_suffix(suffix).is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        let mut found = self.with(Key::Stem(&stem));
        found.retain(|doc| fits(self.path(*doc)));
        self.nearest_first(&mut found, near);
        found
    }

    /// Orders documents by how near they stand to another one.
    pub(super) fn nearest_first(&self, docs: &mut [Doc], near: Doc) {
        if docs.len() < 2 {
            return;
        }
        let own = self.linked.known(near);
        docs.sort_by_cached_key(|doc| {
            let known = self.linked.known(*doc);
            let distance = usize::MAX - paths::common_folders(known.path, own.path);
            (known.collection != own.collection, distance, known.path.len(), known.path)
        });
    }
}

/// Whether names of one language can mean things of another.
pub(super) fn speak_together(one: Option<Language>, other: Option<Language>) -> bool {
    let family = |language: Language| match language {
        Language::Cpp => Language::C,
        Language::TypeScript => Language::JavaScript,
        language => language,
    };
    one.is_some() && one.map(family) == other.map(family)
}
