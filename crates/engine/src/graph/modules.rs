//! Which files an import means, by the rules of its language as far as they can be known without building anything.

use std::rc::Rc;

use shelf_reading::facts::{Facts, Import, ImportKind, Language, SymbolKind};

use super::{
    docs::{Doc, Docs, speak_together},
    keys::Key,
    paths,
};

/// Files of one package at most.
const PACKAGE_FILES: usize = 64;
/// Endings that an import of a script may leave out.
const SCRIPT_ENDINGS: [&str; 13] = [
    "",
    ".ts",
    ".tsx",
    ".js",
    ".jsx",
    ".mjs",
    ".cjs",
    ".mts",
    ".d.ts",
    "/index.ts",
    "/index.tsx",
    "/index.js",
    "/index.jsx",
];

/// Crates that every program has: a path that begins with one means it, whatever modules there are.
const BUILT_IN_CRATES: [&str; 5] = ["std", "core", "alloc", "proc_macro", "test"];

/// What an import means.
#[derive(Clone, Debug, Default)]
pub(super) struct Imported {
    /// The files, the likeliest first.
    pub(super) docs: Vec<Doc>,
    /// How sure it is, from 0 to 1.
    pub(super) confidence: f32,
    /// The one thing that is imported, when it was found.
    pub(super) symbol: Option<(Doc, Rc<str>)>,
    /// The file that passes it on, when it is not the one that defines it.
    pub(super) via: Option<Doc>,
}

/// The name under which a module that is not in the library is known: `rust:serde`, `python:os.path`.
pub(super) fn outside_name(language: &str, module: &str) -> String {
    let module = match language {
        "rust" => module.split("::").next().unwrap_or(module),
        _ => module,
    };
    format!("{language}:{module}")
}

impl Docs<'_> {
    /// What an import of a document means, by its place among the imports; nothing when it is not in the library.
    pub(super) fn imported(&self, doc: Doc, facts: &Facts, at: usize) -> Rc<Imported> {
        self.imported_within(doc, facts, at, 2)
    }

    fn imported_within(&self, doc: Doc, facts: &Facts, at: usize, steps: u32) -> Rc<Imported> {
        self.imports.get_or_find((doc, at, steps), || Rc::new(self.find_imported(doc, facts, at, steps)))
    }

    /// The files of the module that an import names.
    pub(super) fn imported_module(&self, doc: Doc, facts: &Facts, at: usize) -> (Rc<[Doc]>, f32) {
        self.modules.get_or_find((doc, at), || {
            let import = &facts.imports[at];
            let (docs, confidence) = self.module(doc, facts, &import.module, import.kind, false);
            (docs.into(), confidence)
        })
    }

    fn find_imported(&self, doc: Doc, facts: &Facts, at: usize, steps: u32) -> Imported {
        let Some(language) = facts.language else { return Imported::default() };
        let import = &facts.imports[at];
        let whole = || match language {
            Language::Rust => format!("{}::{}", import.module, import.item),
            _ if import.module.ends_with('.') => format!("{}{}", import.module, import.item),
            _ => format!("{}.{}", import.module, import.item),
        };
        // The item may be a module itself.
        if !import.item.is_empty() && matches!(language, Language::Rust | Language::Python) {
            let (docs, confidence) = self.module(doc, facts, &whole(), import.kind, true);
            if !docs.is_empty() {
                return Imported { docs, confidence, ..Imported::default() };
            }
        }
        let (docs, confidence) = self.imported_module(doc, facts, at);
        if import.item.is_empty() || docs.is_empty() {
            return Imported { docs: docs.to_vec(), confidence, ..Imported::default() };
        }
        if matches!(language, Language::Java) {
            return self.imported_class(&docs, &import.item);
        }
        match self.item_of(&docs, &import.item, steps) {
            Some((target, name, via)) => Imported {
                docs: vec![target],
                confidence,
                symbol: Some((target, name)),
                via: via.filter(|via| *via != target),
            },
            // Constants and types that no facts tell of.
            None => {
                let (docs, via) = match self.passed_on(&docs, &import.item, steps) {
                    Some((docs, via)) => (docs, Some(via)),
                    None => (docs.iter().copied().take(1).collect(), None),
                };
                let via = via.filter(|via| !docs.contains(via));
                Imported { docs, confidence: confidence * 0.9, via, ..Imported::default() }
            }
        }
    }

    /// The files from which one of these passes a name on, and which of these does.
    fn passed_on(&self, docs: &[Doc], item: &str, steps: u32) -> Option<(Vec<Doc>, Doc)> {
        let steps = steps.checked_sub(1)?;
        docs.iter().find_map(|doc| {
            let facts = self.facts(*doc);
            let passes = |one: &Import| one.local == item && passes_on(one, facts.language);
            let mut named = facts.imports.iter().enumerate().filter(|(_, one)| passes(one));
            named.find_map(|(at, _)| {
                let found = self.imported_within(*doc, &facts, at, steps);
                (!found.docs.is_empty()).then(|| (found.docs.clone(), *doc))
            })
        })
    }

    fn imported_class(&self, docs: &[Doc], item: &str) -> Imported {
        for doc in docs.iter().copied() {
            let facts = self.facts(doc);
            let found = facts
                .definitions
                .iter()
                .find(|one| one.name == item || paths::last_name(&one.qualified) == item);
            if let Some(found) = found {
                return Imported {
                    docs: vec![doc],
                    confidence: 1.0,
                    symbol: Some((doc, found.qualified.as_str().into())),
                    via: None,
                };
            }
        }
        Imported::default()
    }

    /// The definition of a name in one of these files, or in what they pass on.
    pub(super) fn item_of(
        &self,
        docs: &[Doc],
        item: &str,
        steps: u32,
    ) -> Option<(Doc, Rc<str>, Option<Doc>)> {
        for doc in docs.iter().copied() {
            let facts = self.facts(doc);
            let outer = facts.definitions.iter().find(|one| one.name == item && one.qualified == item);
            if let Some(found) = outer.or_else(|| facts.definitions.iter().find(|one| one.name == item)) {
                return Some((doc, found.qualified.as_str().into(), None));
            }
        }
        if steps == 0 {
            return None;
        }
        for doc in docs.iter().copied() {
            let facts = self.facts(doc);
            for (at, import) in facts.imports.iter().enumerate() {
                if passes_on(import, facts.language) && import.local == item {
                    let found = self.imported_within(doc, &facts, at, steps - 1);
                    if let Some((target, name)) = found.symbol.clone() {
                        return Some((target, name, Some(doc)));
                    }
                }
                if matches!(import.kind, ImportKind::ReexportAll)
                    || (import.kind == ImportKind::All && facts.language == Some(Language::Python))
                {
                    let (inner, _) = self.imported_module(doc, &facts, at);
                    if let Some((target, name, _)) = self.item_of(&inner, item, 0) {
                        return Some((target, name, Some(doc)));
                    }
                }
            }
        }
        None
    }

    /// The files of a module, and how sure that is. With `whole` nothing is found unless all of the path is a module.
    pub(super) fn module(
        &self,
        doc: Doc,
        facts: &Facts,
        module: &str,
        kind: ImportKind,
        whole: bool,
    ) -> (Vec<Doc>, f32) {
        let Some(language) = facts.language else { return (Vec::new(), 0.0) };
        let mut found = match language {
            Language::Rust => return self.module_rust(doc, facts, module, whole),
            Language::Python => self.module_python(doc, module),
            Language::JavaScript | Language::TypeScript => self.module_script(doc, module),
            Language::Go => self.module_go(doc, module),
            Language::Java => self.module_java(doc, module),
            Language::CSharp => self.package_files(doc, module),
            Language::C | Language::Cpp => self.module_c(doc, module, kind),
            Language::Ruby => self.module_ruby(doc, module, kind),
        };
        found.retain(|one| {
            *one != doc
                && (matches!(kind, ImportKind::File)
                    || speak_together(self.facts(*one).language, Some(language)))
        });
        let sure = match language {
            Language::Go | Language::CSharp | Language::Java => found.len() <= PACKAGE_FILES,
            _ => found.len() == 1,
        };
        let confidence = if sure { 1.0 } else { 0.7 };
        if !matches!(language, Language::Go | Language::CSharp | Language::Java) {
            found.truncate(1);
        }
        (found, confidence)
    }

    /// The file of a Rust module by its path.
    fn module_rust(&self, doc: Doc, facts: &Facts, module: &str, whole: bool) -> (Vec<Doc>, f32) {
        let mut names = module.split("::").filter(|name| !name.is_empty()).peekable();
        let Some(first) = names.next() else { return (Vec::new(), 0.0) };
        let mut confidence = 1.0;
        let start = match first {
            "crate" => self.crate_root(doc),
            "self" => Some(doc),
            "super" => self.parent_module(doc),
            first => {
                let declares =
                    facts.imports.iter().any(|one| one.kind == ImportKind::Child && one.local == first);
                let child = if declares { self.child_module(doc, "", first) } else { None };
                child.or_else(|| self.crate_named(first, doc)).or_else(|| {
                    if BUILT_IN_CRATES.contains(&first) {
                        return None;
                    }
                    confidence = 0.8;
                    // An older edition: paths begin at the root of the crate.
                    self.crate_root(doc).and_then(|root| self.child_module(root, "", first))
                })
            }
        };
        let Some(mut at) = start else { return (Vec::new(), 0.0) };
        // Modules with a body that the path has led into.
        let mut inner = String::new();
        while let Some(name) = names.next() {
            let next =
                if name == "super" { self.parent_module(at) } else { self.child_module(at, &inner, name) };
            match next {
                Some(next) => {
                    at = next;
                    inner.clear();
                }
                None if names.peek().is_some() && self.has_inner_module(at, &inner, name) => {
                    if !inner.is_empty() {
                        inner.push('/');
                    }
                    inner.push_str(name);
                }
                None if whole => return (Vec::new(), 0.0),
                None => {
                    // A module with a body or a type of this file; the rest of the path is within it.
                    let is_inner = self.facts(at).definitions.iter().any(|one| one.name == name);
                    if !is_inner && names.peek().is_some() {
                        confidence *= 0.6;
                    }
                    break;
                }
            }
        }
        (vec![at], confidence)
    }

    fn crate_root(&self, doc: Doc) -> Option<Doc> {
        self.roots.get_or_find(doc, || self.find_crate_root(doc))
    }

    fn find_crate_root(&self, doc: Doc) -> Option<Doc> {
        let path = self.path(doc);
        let own = paths::last(path);
        for folder in paths::folders_around(path) {
            let mut names = ["lib.rs", "main.rs"];
            if own == "main.rs" {
                names.reverse();
            }
            for name in names {
                let candidate = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
                if let Some(found) = self.at_path(&candidate, doc) {
                    return Some(found);
                }
            }
            // A test, example or program of its own stands beside `src`.
            if matches!(paths::last(folder), "tests" | "examples" | "benches" | "bin") {
                return Some(doc);
            }
        }
        None
    }

    /// Whether a file has a module with a body at a path within it.
    fn has_inner_module(&self, doc: Doc, inner: &str, name: &str) -> bool {
        let qualified =
            if inner.is_empty() { name.to_owned() } else { format!("{}::{name}", inner.replace('/', "::")) };
        let facts = self.facts(doc);
        facts.definitions.iter().any(|one| one.kind == SymbolKind::Module && one.qualified == qualified)
    }

    /// The file of a module of a file, or of a module with a body in it.
    fn child_module(&self, doc: Doc, inner: &str, name: &str) -> Option<Doc> {
        let mut folder = module_folder(self.path(doc));
        if !inner.is_empty() {
            folder = if folder.is_empty() { inner.to_owned() } else { format!("{folder}/{inner}") };
        }
        let place = |rest: &str| {
            if folder.is_empty() { format!("{name}{rest}") } else { format!("{folder}/{name}{rest}") }
        };
        self.at_path(&place(".rs"), doc).or_else(|| self.at_path(&place("/mod.rs"), doc))
    }

    fn parent_module(&self, doc: Doc) -> Option<Doc> {
        let path = self.path(doc);
        let folder = if paths::last(path) == "mod.rs" {
            paths::folder(paths::folder(path))
        } else {
            paths::folder(path)
        };
        let place = |name: &str| if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
        ["mod.rs", "lib.rs", "main.rs"]
            .into_iter()
            .find_map(|name| self.at_path(&place(name), doc))
            .or_else(|| self.at_path(&format!("{folder}.rs"), doc))
    }

    /// The root of another crate, by the name that its manifest gives it.
    fn crate_named(&self, name: &str, near: Doc) -> Option<Doc> {
        self.manifests(name, "Cargo.toml", near).into_iter().find_map(|manifest| {
            let folder = paths::folder(self.path(manifest));
            let place =
                |rest: &str| if folder.is_empty() { rest.to_owned() } else { format!("{folder}/{rest}") };
            self.at_path(&place("src/lib.rs"), manifest)
                .or_else(|| self.at_path(&place("src/main.rs"), manifest))
        })
    }

    /// The files that declare a package of this name, the nearest first.
    fn manifests(&self, package: &str, file: &str, near: Doc) -> Vec<Doc> {
        let folded = paths::fold(package);
        let mut found = self.with(Key::Package(&folded));
        found.retain(|doc| {
            paths::last(self.path(*doc)) == file && paths::fold(&self.facts(*doc).package) == folded
        });
        self.nearest_first(&mut found, near);
        found
    }

    fn module_python(&self, doc: Doc, module: &str) -> Vec<Doc> {
        let name = module.trim_start_matches('.');
        let dots = module.len() - name.len();
        let inner = name.replace('.', "/");
        let endings =
            |base: &str| [format!("{base}.py"), format!("{base}/__init__.py"), format!("{base}.pyi")];
        if dots > 0 {
            let folder = paths::folders_around(self.path(doc)).nth(dots - 1).unwrap_or_default();
            let base = match (folder.is_empty(), inner.is_empty()) {
                (_, true) => folder.to_owned(),
                (true, false) => inner,
                (false, false) => format!("{folder}/{inner}"),
            };
            return endings(&base).iter().find_map(|path| self.at_path(path, doc)).into_iter().collect();
        }
        endings(&inner)
            .iter()
            .map(|suffix| self.python_ending(suffix, doc))
            .find(|found| !found.is_empty())
            .unwrap_or_default()
    }

    /// A module by the end of its path. It must stand where the importing file's packages begin, or beside it.
    fn python_ending(&self, suffix: &str, near: Doc) -> Vec<Doc> {
        let mut found = self.ending(suffix, near);
        let own = self.path(near);
        found.retain(|doc| {
            let root = self.path(*doc).strip_suffix(suffix).unwrap_or_default().trim_end_matches('/');
            let is_around =
                root.is_empty() || own.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'));
            is_around || suffix.contains('/')
        });
        found
    }

    fn module_script(&self, doc: Doc, module: &str) -> Vec<Doc> {
        let endings = |base: &str| {
            let mut all: Vec<String> =
                SCRIPT_ENDINGS.iter().map(|ending| format!("{base}{ending}")).collect();
            // TypeScript names the file that will be made of the one that is there.
            if let Some(stem) = base.strip_suffix(".js").or_else(|| base.strip_suffix(".mjs")) {
                all.extend([".ts", ".tsx", ".mts"].map(|ending| format!("{stem}{ending}")));
            }
            all
        };
        let at = |base: &str, near: Doc| endings(base).iter().find_map(|path| self.at_path(path, near));
        if module.starts_with('.') || module.starts_with('/') {
            let base = paths::join(paths::folder(self.path(doc)), module);
            return base.and_then(|base| at(&base, doc)).into_iter().collect();
        }
        let parts = if module.starts_with('@') { 2 } else { 1 };
        let split = module.match_indices('/').nth(parts - 1).map_or(module.len(), |(at, _)| at);
        let (package, inner) = (&module[..split], module[split..].trim_start_matches('/'));
        for manifest in self.manifests(package, "package.json", doc) {
            let folder = paths::folder(self.path(manifest));
            let inners = if inner.is_empty() { vec!["index", "src/index", "lib/index"] } else { vec![inner] };
            for inner in inners {
                let found = paths::join(folder, inner).and_then(|base| at(&base, manifest));
                if let Some(found) = found.or_else(|| {
                    paths::join(folder, &format!("src/{inner}")).and_then(|base| at(&base, manifest))
                }) {
                    return vec![found];
                }
            }
        }
        // `@/x` and `~/x` mean the root of the sources, by convention.
        let rooted = module.strip_prefix("@/").or_else(|| module.strip_prefix("~/"));
        rooted
            .and_then(|rooted| {
                let around = paths::folders_around(self.path(doc));
                around
                    .flat_map(|folder| {
                        [paths::join(folder, rooted), paths::join(folder, &format!("src/{rooted}"))]
                    })
                    .flatten()
                    .find_map(|base| at(&base, doc))
            })
            .into_iter()
            .collect()
    }

    fn module_go(&self, doc: Doc, module: &str) -> Vec<Doc> {
        let folder_name = paths::fold(paths::last(module));
        let mut found = self.with(Key::Folder(&folder_name));
        let is_source = |path: &str| path.ends_with(".go") && !path.ends_with("_test.go");
        found.retain(|doc| is_source(self.path(*doc)));
        // The module that the path begins with says where its folders are.
        let by_manifest =
            module.match_indices('/').map(|(at, _)| at).chain([module.len()]).rev().find_map(|at| {
                let manifest = self.manifests(&module[..at], "go.mod", doc).into_iter().next()?;
                paths::join(paths::folder(self.path(manifest)), module[at..].trim_start_matches('/'))
            });
        match by_manifest {
            Some(folder) => {
                found.retain(|doc| paths::folder(self.path(*doc)) == folder.trim_end_matches('/'))
            }
            // Without it, the last two folders must agree: one alone may mean anything.
            None => {
                let mut parts = module.rsplit('/');
                let (last, before) = (parts.next().unwrap_or_default(), parts.next());
                let Some(before) = before.filter(|before| !before.contains('.')) else { return Vec::new() };
                let end = format!("{before}/{last}");
                found.retain(|doc| {
                    let folder = paths::folder(self.path(*doc));
                    folder.strip_suffix(&end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
                });
            }
        }
        found.truncate(PACKAGE_FILES);
        found
    }

    fn module_java(&self, doc: Doc, module: &str) -> Vec<Doc> {
        let found = self.package_files(doc, module);
        if !found.is_empty() {
            return found;
        }
        // A static import names a class where others name a package.
        let Some((package, class)) = module.rsplit_once('.') else { return Vec::new() };
        let mut found = self.package_files(doc, package);
        found.retain(|doc| self.facts(*doc).definitions.iter().any(|one| one.name == class));
        found
    }

    /// The files of a package of Java or a namespace of C#.
    pub(super) fn package_files(&self, near: Doc, package: &str) -> Vec<Doc> {
        let mut found = self.with(Key::Package(&paths::fold(package)));
        found.retain(|doc| {
            let facts = self.facts(*doc);
            facts.language.is_some() && facts.package == package
        });
        let mut spaces = self.with(Key::Defines(package));
        spaces.retain(|doc| {
            let facts = self.facts(*doc);
            let is_space = |kind| kind == SymbolKind::Module;
            facts.language == Some(Language::CSharp)
                && facts.definitions.iter().any(|one| is_space(one.kind) && one.qualified == package)
        });
        found.extend(spaces);
        self.nearest_first(&mut found, near);
        found.dedup();
        found.truncate(PACKAGE_FILES);
        found
    }

    fn module_c(&self, doc: Doc, module: &str, kind: ImportKind) -> Vec<Doc> {
        if kind == ImportKind::File
            && let Some(found) =
                paths::join(paths::folder(self.path(doc)), module).and_then(|path| self.at_path(&path, doc))
        {
            return vec![found];
        }
        let module = module.trim_start_matches("./").trim_start_matches("../");
        // A header of the system has a path of its own: `<vector>` is none of ours, `<shelf/view.hpp>` may be.
        if kind == ImportKind::SystemFile && !module.contains('/') {
            return Vec::new();
        }
        self.ending(module, doc)
    }

    fn module_ruby(&self, doc: Doc, module: &str, kind: ImportKind) -> Vec<Doc> {
        let named = |path: &str| if path.ends_with(".rb") { path.to_owned() } else { format!("{path}.rb") };
        if kind == ImportKind::File {
            let path = paths::join(paths::folder(self.path(doc)), module).map(|path| named(&path));
            return path.and_then(|path| self.at_path(&path, doc)).into_iter().collect();
        }
        let mut found = self.ending(&named(module), doc);
        // `require 'json'` means the file of that name at a load path, not any.
        found.retain(|one| module.contains('/') || paths::last(paths::folder(self.path(*one))) == "lib");
        found
    }
}

/// Whether a file passes on what it imports.
fn passes_on(import: &Import, language: Option<Language>) -> bool {
    match import.kind {
        ImportKind::Reexport => true,
        ImportKind::Named => language == Some(Language::Python),
        _ => false,
    }
}

/// The folder that holds the modules within a Rust file.
fn module_folder(path: &str) -> String {
    match paths::last(path) {
        "mod.rs" | "lib.rs" | "main.rs" => paths::folder(path).to_owned(),
        _ => path.strip_suffix(".rs").unwrap_or(path).to_owned(),
    }
}
