//! Imports, as each language writes them.

use super::{Walk, tokens::Kind};
use crate::facts::{Import, ImportKind, LONGEST_NAME, SymbolKind};

/// Levels of braces in one declaration of Rust.
const DEEPEST: usize = 32;

impl<'a> Walk<'a> {
    pub(super) fn add_import(&mut self, kind: ImportKind, module: &str, item: &str, local: &str, at: usize) {
        let fits = |text: &str| text.len() <= LONGEST_NAME;
        let is_named = !module.is_empty() && fits(module) && fits(item) && fits(local);
        if is_named && self.has_room(self.facts.imports.len()) {
            self.facts.imports.push(Import {
                kind,
                module: module.to_owned(),
                item: item.to_owned(),
                local: local.to_owned(),
                line: self.tokens.line(at),
            });
        }
    }

    /// What a string says, without its quotes; empty for anything else.
    pub(super) fn quoted(&self, at: usize) -> &'a str {
        match self.tokens.get(at) {
            Some(token) if token.kind == Kind::Text => {
                self.tokens.text_of(token).trim_matches(['"', '\'', '`'])
            }
            _ => "",
        }
    }

    /// `mod name;`: a module that has a file of its own.
    pub(super) fn child_module(&mut self, name: &str, at: usize) {
        let around = self.scopes.last().map_or("", |scope| &scope.prefix);
        let module =
            if around.is_empty() { format!("self::{name}") } else { format!("self::{around}::{name}") };
        self.add_import(ImportKind::Child, &module, "", name, at);
    }

    /// The paths of a declaration of Rust, which is written from one token to another one.
    pub(super) fn import_rust(&mut self, first: usize, last: usize, is_public: bool) {
        let tree = self.tokens.span(first, last);
        for leaf in rust_leaves(&without_comments(tree)) {
            let (path, local) = match leaf.split_once(" as ") {
                Some((path, local)) => (path.trim(), local.trim()),
                None => (leaf.as_str(), leaf.rsplit("::").next().unwrap_or(&leaf)),
            };
            let path = self.seen_from_file(path);
            let (module, item) = path.rsplit_once("::").unwrap_or((&path, ""));
            match (item, is_public) {
                ("*", true) => self.add_import(ImportKind::ReexportAll, module, "", "", first),
                ("*", false) => self.add_import(ImportKind::All, module, "", "", first),
                ("self", _) => {
                    let own = module.rsplit("::").next().unwrap_or(module);
                    let local = if local == "self" { own } else { local };
                    self.add_import(named(is_public), module, "", local, first);
                }
                (item, _) => self.add_import(named(is_public), module, item, local, first),
            }
        }
    }

    /// A path as it reads at the top of the file: within a module that has a body, `self` is that module, and `super` the
    /// one around it.
    fn seen_from_file(&self, path: &str) -> String {
        let modules: Vec<&str> = self
            .scopes
            .iter()
            .filter_map(|scope| {
                let definition = self.facts.definitions.get(scope.definition? as usize)?;
                let is_module = definition.kind == SymbolKind::Module && definition.qualified == scope.prefix;
                is_module.then_some(definition.name.as_str())
            })
            .collect();
        let names: Vec<&str> = path.split("::").collect();
        let own = usize::from(names.first() == Some(&"self"));
        let ups = names.iter().skip(own).take_while(|name| **name == "super").count();
        if modules.is_empty() || own + ups == 0 {
            return path.to_owned();
        }
        let rest = names.iter().skip(own + ups);
        let start = if ups > modules.len() { vec!["super"; ups - modules.len()] } else { vec!["self"] };
        let inner = modules.iter().take(modules.len().saturating_sub(ups));
        start.iter().chain(inner).chain(rest).copied().collect::<Vec<_>>().join("::")
    }
}

const fn named(is_public: bool) -> ImportKind {
    if is_public { ImportKind::Reexport } else { ImportKind::Named }
}

/// A declaration without the comments in it.
fn without_comments(tree: &str) -> std::borrow::Cow<'_, str> {
    if !tree.contains("//") && !tree.contains("/*") {
        return tree.into();
    }
    let mut kept = String::with_capacity(tree.len());
    let mut rest = tree;
    while let Some(at) = rest.find("//").into_iter().chain(rest.find("/*")).min() {
        kept.push_str(&rest[..at]);
        let end = if rest[at..].starts_with("//") { "\n" } else { "*/" };
        rest = rest[at + 2..].split_once(end).map_or("", |(_, after)| after);
        kept.push(' ');
    }
    kept.push_str(rest);
    kept.into()
}

/// The paths of a `use` declaration, one for each thing that it imports: `a::{b, c::{d as e}}` is `a::b` and
/// `a::c::d as e`.
fn rust_leaves(tree: &str) -> Vec<String> {
    let mut leaves = Vec::new();
    let mut prefixes: Vec<String> = vec![String::new()];
    let mut path = String::new();
    let mut finish = |path: &mut String, prefix: &str| {
        let leaf = path.trim();
        if !leaf.is_empty() && prefix.len() + leaf.len() <= LONGEST_NAME {
            leaves.push(format!("{prefix}{leaf}"));
        }
        path.clear();
    };
    for letter in tree.chars() {
        let prefix = prefixes.last().map(String::as_str).unwrap_or_default();
        match letter {
            '{' => {
                if prefixes.len() == DEEPEST || prefix.len() + path.len() > LONGEST_NAME {
                    return leaves;
                }
                let inner = format!("{prefix}{}", path.trim());
                path.clear();
                prefixes.push(inner);
            }
            ',' => finish(&mut path, prefix),
            '}' => {
                finish(&mut path, prefix);
                if prefixes.len() > 1 {
                    prefixes.pop();
                }
            }
            letter if letter.is_whitespace() => {
                if !path.is_empty() && !path.ends_with([' ', ':']) {
                    path.push(' ');
                }
            }
            letter => path.push(letter),
        }
    }
    finish(&mut path, "");
    leaves
}

#[cfg(test)]
mod tests {
    use super::{rust_leaves, without_comments};

    #[test]
    fn a_use_declaration_falls_into_paths() {
        assert_eq!(rust_leaves("a::b"), ["a::b"]);
        assert_eq!(
            rust_leaves("a::{self, b, c::{d as e, *},\n    f}"),
            ["a::self", "a::b", "a::c::d as e", "a::c::*", "a::f"]
        );
        assert_eq!(rust_leaves("{{{{"), Vec::<String>::new());
        let with_comments = "a::{\n    // b, c\n    d, /* e::{ */ f\n} // end";
        assert_eq!(rust_leaves(&without_comments(with_comments)), ["a::d", "a::f"]);
    }
}
