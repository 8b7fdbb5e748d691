//! Which definitions a name means where it is used.
//!
//! Names are looked for where a reader would look: in the file, in what it imports, in its package, among what the type
//! of the receiver has and inherits. Only then the whole library is asked, and only when few things have the name: a
//! method called `get` on a value of unknown type means nothing in particular, and no edge is made of it.

use std::rc::Rc;

use shelf_reading::facts::{Definition, Facts, ImportKind, Language, SymbolKind, Use, UseKind};

use super::{
    docs::{Doc, Docs, speak_together},
    keys::Key,
    paths,
};

/// Definitions of one name that are all taken for possible; with more, the name says nothing.
const POSSIBLE: usize = 4;
/// Files of a package that are looked at for a name.
const PACKAGE: usize = 32;
/// Steps from a type to its ancestors in search of a method.
const ANCESTORS: usize = 4;

/// A definition that a name may mean.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Meaning {
    pub(super) doc: Doc,
    pub(super) qualified: Rc<str>,
    /// How sure it is, from 0 to 1.
    pub(super) confidence: f32,
    /// How many definitions fit equally.
    pub(super) candidates: usize,
}

type Found = (Doc, Rc<str>);

impl Docs<'_> {
    /// What a use of a name means.
    pub(super) fn meanings(&self, doc: Doc, facts: &Facts, one: &Use) -> Vec<Meaning> {
        match one.kind {
            UseKind::Construct | UseKind::Mention => self.types_named(doc, facts, &one.name),
            UseKind::Call => self.called(doc, facts, one),
            UseKind::PathCall | UseKind::MemberCall => self.called_on(doc, facts, one),
        }
    }

    fn called(&self, doc: Doc, facts: &Facts, one: &Use) -> Vec<Meaning> {
        let language = facts.language;
        // A method of the same type needs no receiver in these languages.
        let own_type = one.from.and_then(|from| type_around(facts, from));
        let implicit =
            matches!(language, Some(Language::Java | Language::CSharp | Language::Cpp | Language::Ruby));
        if implicit && let Some(own) = &own_type {
            let found = self.methods_of(doc, facts, own, &one.name);
            if !found.is_empty() {
                return sure(found, 0.95);
            }
        }
        let here = self.defined_in(&[doc], &one.name, |found| implicit || !is_method(found));
        if !here.is_empty() {
            // The innermost, or the only one.
            let nearest = nearest_scope(facts, one.from, &here);
            return sure(vec![nearest], 1.0);
        }
        if let Some(found) = self.imported_name(doc, facts, &one.name) {
            return sure(vec![found], 0.95);
        }
        let around = self.neighbourhood(doc, facts);
        let found: Vec<Found> = self.defined_in(&around, &one.name, |found| !is_method(found) || implicit);
        if !found.is_empty() {
            return sure(found, 0.9);
        }
        self.anywhere(
            doc,
            facts,
            &one.name,
            |found| !is_method(found) || language == Some(Language::Ruby),
            0.5,
        )
    }

    fn called_on(&self, doc: Doc, facts: &Facts, one: &Use) -> Vec<Meaning> {
        if !one.receiver_type.is_empty() {
            let found = self.methods_of(doc, facts, &one.receiver_type, &one.name);
            if !found.is_empty() {
                return sure(found, 0.95);
            }
            // The type is known and is not ours, or has no such method.
            if !self.types_named(doc, facts, paths::last_name(&one.receiver_type)).is_empty()
                || one.kind == UseKind::PathCall
            {
                return Vec::new();
            }
            return Vec::new();
        }
        if !one.receiver.is_empty() {
            let found = self.in_module(doc, facts, one);
            if !found.is_empty() {
                return sure(found, 0.95);
            }
            let starts_upper = paths::last_name(&one.receiver).starts_with(char::is_uppercase);
            if one.kind == UseKind::PathCall || starts_upper {
                let found = self.methods_of(doc, facts, &one.receiver, &one.name);
                return sure(found, 0.95);
            }
            // What an import names and is not in the library is outside of it.
            let first = one.receiver.split(['.', ':']).next().unwrap_or_default();
            if facts.imports.iter().any(|import| import.local == first) {
                return Vec::new();
            }
        }
        if one.kind == UseKind::PathCall {
            return Vec::new();
        }
        let here: Vec<Found> = facts
            .definitions
            .iter()
            .filter(|found| found.name == one.name && is_method(found))
            .map(|found| (doc, found.qualified.as_str().into()))
            .collect();
        if here.len() == 1 {
            return sure(here, 0.6);
        }
        self.anywhere(doc, facts, &one.name, is_method, 0.5)
    }

    /// A function of a module: `module.name(…)`, `a::b::name(…)`.
    fn in_module(&self, doc: Doc, facts: &Facts, one: &Use) -> Vec<Found> {
        let receiver = one.receiver.as_str();
        let mut modules: Vec<Doc> = Vec::new();
        let named = facts.imports.iter().enumerate().filter(|(_, import)| !import.local.is_empty());
        for (at, import) in named {
            let rest = match receiver.strip_prefix(import.local.as_str()) {
                Some("") => "",
                Some(rest) => match rest.strip_prefix("::").or_else(|| rest.strip_prefix('.')) {
                    Some(rest) => rest,
                    None => continue,
                },
                None => continue,
            };
            let found = self.imported(doc, facts, at);
            if let Some((target, name)) = &found.symbol {
                // A type that was imported, perhaps under another name.
                let inner = self.methods_in(*target, name, &one.name);
                if !inner.is_empty() {
                    return inner;
                }
                return self.methods_of(*target, &self.facts(*target), name, &one.name);
            }
            if rest.is_empty() {
                modules.extend(&found.docs);
            } else if facts.language == Some(Language::Rust) {
                let path = format!("{}::{}::{rest}", import.module, import.item).replace("::::", "::");
                modules.extend(self.module(doc, facts, &path, ImportKind::Named, true).0);
            }
        }
        if modules.is_empty() && facts.language == Some(Language::Rust) && one.kind == UseKind::PathCall {
            modules = self.module(doc, facts, receiver, ImportKind::Named, true).0;
        }
        let mut found = self.defined_in(&modules, &one.name, |found| !is_method(found));
        if found.is_empty()
            && let Some((target, name, _)) = self.item_of(&modules, &one.name, 1)
        {
            found.push((target, name));
        }
        found.truncate(POSSIBLE);
        found
    }

    /// What an import of this file brings in under a name.
    fn imported_name(&self, doc: Doc, facts: &Facts, name: &str) -> Option<Found> {
        let imports = || facts.imports.iter().enumerate();
        for (at, import) in imports().filter(|(_, import)| import.local == name) {
            let found = self.imported(doc, facts, at);
            if let Some(symbol) = &found.symbol {
                return Some(symbol.clone());
            }
            // The default export of a script has the name that the importing file gives it.
            if import.item == "default"
                && let Some(symbol) = self.item_of(&found.docs, name, 1)
            {
                return Some((symbol.0, symbol.1));
            }
        }
        let all = |kind| matches!(kind, ImportKind::All | ImportKind::ReexportAll | ImportKind::File);
        for (at, _) in imports().filter(|(_, import)| all(import.kind)) {
            let (docs, _) = self.imported_module(doc, facts, at);
            if let Some((target, name, _)) = self.item_of(&docs, name, 1) {
                return Some((target, name));
            }
        }
        None
    }

    /// The other files whose names need no import: the same package, folder or, in C, what the file includes stands for.
    fn neighbourhood(&self, doc: Doc, facts: &Facts) -> Vec<Doc> {
        let mut around = match facts.language {
            Some(Language::Go) => {
                let folder = paths::folder(self.path(doc));
                let mut found = self.with(Key::Folder(&paths::fold(paths::last(folder))));
                found.retain(|one| {
                    paths::folder(self.path(*one)) == folder && self.facts(*one).package == facts.package
                });
                found
            }
            Some(Language::Java | Language::CSharp) if !facts.package.is_empty() => {
                self.package_files(doc, &facts.package)
            }
            _ => Vec::new(),
        };
        around.retain(|one| *one != doc);
        around.truncate(PACKAGE);
        around
    }

    fn defined_in(&self, docs: &[Doc], name: &str, fits: impl Fn(&Definition) -> bool) -> Vec<Found> {
        let mut found = Vec::new();
        for doc in docs.iter().copied() {
            let facts = self.facts(doc);
            let named = self.definitions_named(doc, name);
            let own = named.iter().filter_map(|at| facts.definitions.get(*at as usize));
            // Generated code defines one name thousands of times.
            let mut last = "";
            for one in own.filter(|one| fits(one)) {
                if one.qualified != last {
                    last = &one.qualified;
                    found.push((doc, Rc::from(last)));
                }
            }
        }
        found
    }

    /// Definitions of a name in the whole library, if they are few.
    fn anywhere(
        &self,
        doc: Doc,
        facts: &Facts,
        name: &str,
        fits: impl Fn(&Definition) -> bool,
        confidence: f32,
    ) -> Vec<Meaning> {
        let Some(mut docs) = self.few_with(Key::Defines(name), 4 * POSSIBLE) else { return Vec::new() };
        docs.retain(|one| speak_together(self.facts(*one).language, facts.language));
        self.nearest_first(&mut docs, doc);
        let found = self.defined_in(&docs, name, fits);
        if found.len() > POSSIBLE { Vec::new() } else { sure(found, confidence) }
    }

    /// The types that a name means.
    pub(super) fn types_named(&self, doc: Doc, facts: &Facts, name: &str) -> Vec<Meaning> {
        let fits = |one: &Definition| one.kind.is_type() || one.kind == SymbolKind::Module;
        let here = self.defined_in(&[doc], name, fits);
        if let Some(first) = here.into_iter().next() {
            return sure(vec![first], 1.0);
        }
        if let Some(found) = self.imported_name(doc, facts, name) {
            return sure(vec![found], 0.95);
        }
        let around = self.neighbourhood(doc, facts);
        let near = self.defined_in(&around, name, fits);
        if !near.is_empty() {
            return sure(near.into_iter().take(POSSIBLE).collect(), 0.9);
        }
        // What is imported under this name and was not found is outside the library.
        if facts.imports.iter().any(|import| import.local == name) {
            return Vec::new();
        }
        self.anywhere(doc, facts, name, fits, 0.6)
    }

    /// Methods of a type and of its ancestors.
    fn methods_of(&self, doc: Doc, facts: &Facts, type_name: &str, method: &str) -> Vec<Found> {
        let mut types: Vec<Found> = Vec::new();
        let own = facts.definitions.iter().find(|one| one.qualified == type_name);
        match own {
            Some(own) => types.push((doc, own.qualified.as_str().into())),
            None => {
                let named = self.types_named(doc, facts, paths::last_name(type_name));
                types.extend(named.into_iter().map(|one| (one.doc, one.qualified)));
            }
        }
        if types.is_empty() {
            // The type itself may be defined by a macro; its methods still name it.
            let own = self.methods_in(doc, type_name, method);
            if !own.is_empty() {
                return own;
            }
        }
        for _ in 0..ANCESTORS {
            let mut found: Vec<Found> = Vec::new();
            for (doc, name) in &types {
                found.extend(self.methods_in(*doc, name, method));
            }
            if found.is_empty() {
                found = self.methods_elsewhere(&types, method);
            }
            if !found.is_empty() {
                found.sort_by(|one, other| (self.path(one.0), &one.1).cmp(&(self.path(other.0), &other.1)));
                found.dedup();
                found.truncate(POSSIBLE);
                return found;
            }
            types = self.ancestors_of(&types);
            if types.is_empty() {
                break;
            }
        }
        Vec::new()
    }

    /// Methods of a type in one file.
    fn methods_in(&self, doc: Doc, type_name: &str, method: &str) -> Vec<Found> {
        let named = self.definitions_named(doc, method);
        if named.is_empty() {
            return Vec::new();
        }
        let facts = self.facts(doc);
        let separator = facts.language.map_or(".", Language::separator);
        let qualified = format!("{type_name}{separator}{method}");
        let tail = format!("{separator}{}{separator}{method}", paths::last_name(type_name));
        let fits = |one: &&Definition| {
            one.name == method
                && (one.qualified == qualified
                    || one.qualified.ends_with(&tail)
                    || one.qualified == tail[separator.len()..])
        };
        let own = named.iter().filter_map(|at| facts.definitions.get(*at as usize)).filter(fits);
        own.map(|one| (doc, Rc::from(one.qualified.as_str()))).take(1).collect()
    }

    /// Methods of types in other files than the types themselves: other parts of a crate, the source beside a header.
    fn methods_elsewhere(&self, types: &[Found], method: &str) -> Vec<Found> {
        let split = |language| {
            matches!(
                language,
                Some(
                    Language::Rust
                        | Language::Cpp
                        | Language::C
                        | Language::Go
                        | Language::Ruby
                        | Language::CSharp
                )
            )
        };
        let mut found = Vec::new();
        for (doc, name) in types {
            let facts = self.facts(*doc);
            if !split(facts.language) {
                continue;
            }
            let Some(mut docs) = self.few_with(Key::Defines(method), 512) else { continue };
            docs.retain(|one| one != doc && speak_together(self.facts(*one).language, facts.language));
            self.nearest_first(&mut docs, *doc);
            for other in docs {
                // Types of one name in different crates are different types.
                let near = paths::common_folders(self.path(*doc), self.path(other)) + 3
                    > paths::folder(self.path(*doc)).split('/').count();
                if near {
                    found.extend(self.methods_in(other, name, method));
                }
            }
        }
        found
    }

    /// The ancestors of types, as far as they are in the library.
    pub(super) fn ancestors_of(&self, types: &[Found]) -> Vec<Found> {
        let mut found = Vec::new();
        for (doc, name) in types {
            let facts = self.facts(*doc);
            for ancestor in facts.ancestors.iter().filter(|one| *one.of == **name) {
                let named = self.types_named(*doc, &facts, paths::last_name(&ancestor.name));
                found.extend(named.into_iter().map(|one| (one.doc, one.qualified)));
            }
        }
        found.truncate(4 * POSSIBLE);
        found
    }
}

fn sure(found: Vec<Found>, confidence: f32) -> Vec<Meaning> {
    let candidates = found.len();
    let share = confidence / candidates.max(1) as f32;
    found
        .into_iter()
        .map(|(doc, qualified)| Meaning { doc, qualified, confidence: share, candidates })
        .collect()
}

fn is_method(definition: &Definition) -> bool {
    definition.kind == SymbolKind::Method
}

/// The type around a definition.
fn type_around(facts: &Facts, from: u32) -> Option<String> {
    let definition = facts.definitions.get(from as usize)?;
    let separator = facts.language.map_or(".", Language::separator);
    if definition.kind == SymbolKind::Method {
        return definition
            .qualified
            .strip_suffix(definition.name.as_str())?
            .strip_suffix(separator)
            .map(str::to_owned);
    }
    definition.parent.and_then(|parent| type_around(facts, parent))
}

/// Of several definitions with one name in a file, the one nearest around the use.
fn nearest_scope(facts: &Facts, from: Option<u32>, found: &[Found]) -> Found {
    let own =
        from.and_then(|from| facts.definitions.get(from as usize)).map_or("", |one| one.qualified.as_str());
    let common = |name: &str| own.bytes().zip(name.bytes()).take_while(|(one, other)| one == other).count();
    let best = found.iter().max_by_key(|(_, name)| (common(name), std::cmp::Reverse(name.len())));
    best.cloned().unwrap_or_else(|| found[0].clone())
}
