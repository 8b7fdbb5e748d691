//! Imports, as each language writes them.

use tree_sitter::Node;

use super::{Language, Walk, children, line_of};
use crate::facts::{Import, ImportKind, LONGEST_NAME, SymbolKind};

/// Bytes of one import declaration that are looked at.
const LONGEST_DECLARATION: usize = 64 << 10;
/// Levels of braces in one declaration of Rust.
const DEEPEST: usize = 32;

impl<'a> Walk<'a> {
    pub(super) fn import(&mut self, node: Node<'a>) {
        match self.language {
            Language::Rust => self.import_rust(node),
            Language::Python => self.import_python(node),
            Language::JavaScript | Language::TypeScript => self.import_script(node),
            Language::Go => {
                let path = self.field_text(node, "path").trim_matches(['"', '`']);
                let named = self.field_text(node, "name");
                let local = if named.is_empty() { path.rsplit('/').next().unwrap_or(path) } else { named };
                let kind = if named == "." { ImportKind::All } else { ImportKind::Named };
                self.add_import(kind, path, "", local, node);
            }
            Language::Java => self.import_java(node),
            Language::C | Language::Cpp => {
                let path = self.field_text(node, "path");
                let kind = if path.starts_with('<') { ImportKind::SystemFile } else { ImportKind::File };
                self.add_import(kind, path.trim_matches(['"', '<', '>']), "", "", node);
            }
            Language::CSharp => self.import_c_sharp(node),
            Language::Ruby => {}
        }
    }

    fn add_import(&mut self, kind: ImportKind, module: &str, item: &str, local: &str, node: Node<'a>) {
        let fits = |text: &str| text.len() <= LONGEST_NAME;
        let is_named = !module.is_empty() && fits(module) && fits(item) && fits(local);
        if is_named && self.has_room(self.facts.imports.len()) {
            self.facts.imports.push(Import {
                kind,
                module: module.to_owned(),
                item: item.to_owned(),
                local: local.to_owned(),
                line: line_of(node),
            });
        }
    }

    pub(super) fn child_module(&mut self, node: Node<'a>) {
        let name = self.field_text(node, "name");
        let around = self.scopes.last().map_or("", |scope| &scope.prefix);
        let module =
            if around.is_empty() { format!("self::{name}") } else { format!("self::{around}::{name}") };
        self.add_import(ImportKind::Child, &module, "", name, node);
    }

    fn import_rust(&mut self, node: Node<'a>) {
        let text = self.text.get(node.byte_range()).unwrap_or_default();
        if text.len() > LONGEST_DECLARATION {
            self.facts.is_cut = true;
            return;
        }
        if node.kind() == "extern_crate_declaration" {
            let name = self.field_text(node, "name");
            return self.add_import(ImportKind::Named, name, "", name, node);
        }
        let is_public = text.starts_with("pub");
        let Some(argument) = self.field(node, "argument") else { return };
        let tree = self.text.get(argument.byte_range()).unwrap_or_default();
        for leaf in rust_leaves(&without_comments(tree)) {
            let (path, local) = match leaf.split_once(" as ") {
                Some((path, local)) => (path.trim(), local.trim()),
                None => (leaf.as_str(), leaf.rsplit("::").next().unwrap_or(&leaf)),
            };
            let path = self.seen_from_file(path);
            let (module, item) = path.rsplit_once("::").unwrap_or((&path, ""));
            match (item, is_public) {
                ("*", true) => self.add_import(ImportKind::ReexportAll, module, "", "", node),
                ("*", false) => self.add_import(ImportKind::All, module, "", "", node),
                ("self", _) => {
                    let own = module.rsplit("::").next().unwrap_or(module);
                    let local = if local == "self" { own } else { local };
                    self.add_import(named(is_public), module, "", local, node);
                }
                (item, _) => self.add_import(named(is_public), module, item, local, node),
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

    fn import_python(&mut self, node: Node<'a>) {
        let module = self.field_text(node, "module_name");
        let is_from = node.kind() == "import_from_statement";
        let mut cursor = node.walk();
        let names: Vec<Node<'a>> = node.children_by_field_name("name", &mut cursor).take(4_096).collect();
        if is_from && names.is_empty() {
            return self.add_import(ImportKind::All, module, "", "", node);
        }
        for name in names {
            let (path, local) = match name.kind() {
                "aliased_import" => (self.field_text(name, "name"), self.field_text(name, "alias")),
                _ => (self.text(name), self.text(name)),
            };
            if is_from {
                self.add_import(ImportKind::Named, module, path, local, node);
            } else {
                self.add_import(ImportKind::Named, path, "", local, node);
            }
        }
    }

    fn import_script(&mut self, node: Node<'a>) {
        let source = self.field_text(node, "source").trim_matches(['"', '\'', '`']);
        let is_export = node.kind() == "export_statement";
        if source.is_empty() {
            return;
        }
        let mut found = false;
        for clause in children(node) {
            match clause.kind() {
                "import_clause" => {
                    for part in children(clause) {
                        found = true;
                        match part.kind() {
                            "identifier" => {
                                self.add_import(ImportKind::Named, source, "default", self.text(part), node);
                            }
                            "namespace_import" => {
                                let local = part.named_child(0).map_or("", |name| self.text(name));
                                self.add_import(ImportKind::Named, source, "", local, node);
                            }
                            _ => self.script_names(part, source, ImportKind::Named, node),
                        }
                    }
                }
                "export_clause" => {
                    found = true;
                    self.script_names(clause, source, ImportKind::Reexport, node);
                }
                "namespace_export" => {
                    found = true;
                    let local = clause.named_child(0).map_or("", |name| self.text(name));
                    self.add_import(ImportKind::Reexport, source, "", local, node);
                }
                _ => {}
            }
        }
        if !found {
            let kind = if is_export { ImportKind::ReexportAll } else { ImportKind::Named };
            self.add_import(kind, source, "", "", node);
        }
    }

    fn script_names(&mut self, list: Node<'a>, source: &str, kind: ImportKind, node: Node<'a>) {
        for name in children(list) {
            let item = self.field_text(name, "name");
            let alias = self.field_text(name, "alias");
            if !item.is_empty() {
                self.add_import(kind, source, item, if alias.is_empty() { item } else { alias }, node);
            }
        }
    }

    /// `require("name")` and `import("name")`.
    pub(super) fn required(&mut self, function: &str, node: Node<'a>) {
        if function != "require" {
            return;
        }
        let argument = self.field(node, "arguments").and_then(|list| list.named_child(0));
        let Some(argument) = argument.filter(|argument| argument.kind() == "string") else { return };
        let source = self.text(argument).trim_matches(['"', '\'', '`']);
        let declarator = self.parent().filter(|parent| parent.kind() == "variable_declarator");
        let Some(pattern) = declarator.and_then(|declarator| self.field(declarator, "name")) else {
            return self.add_import(ImportKind::Named, source, "", "", node);
        };
        if pattern.kind() != "object_pattern" {
            return self.add_import(ImportKind::Named, source, "", self.text(pattern), node);
        }
        for part in children(pattern) {
            let (item, local) = match part.kind() {
                "pair_pattern" => (self.field_text(part, "key"), self.field_text(part, "value")),
                _ => (self.text(part), self.text(part)),
            };
            self.add_import(ImportKind::Named, source, item, local, node);
        }
    }

    fn import_java(&mut self, node: Node<'a>) {
        let text = self.text(node);
        let path = text.trim_start_matches("import").trim_end_matches(';').trim();
        let path: String = path.strip_prefix("static ").unwrap_or(path).split_whitespace().collect();
        match path.rsplit_once('.') {
            Some((module, "*")) => self.add_import(ImportKind::All, module, "", "", node),
            Some((module, item)) => self.add_import(ImportKind::Named, module, item, item, node),
            None => self.add_import(ImportKind::Named, &path, "", &path, node),
        }
    }

    fn import_c_sharp(&mut self, node: Node<'a>) {
        let text = self.text(node).trim_start_matches("global ");
        let body = text.trim_start_matches("using").trim_end_matches(';').trim();
        let body = body.strip_prefix("static ").unwrap_or(body);
        match body.split_once('=') {
            Some((local, path)) => {
                let path = path.trim();
                let (module, item) = path.rsplit_once('.').unwrap_or((path, ""));
                self.add_import(ImportKind::Named, module, item, local.trim(), node);
            }
            None => self.add_import(ImportKind::All, body, "", "", node),
        }
    }

    pub(super) fn required_ruby(&mut self, function: &str, node: Node<'a>) {
        let arguments = self.field(node, "arguments").map(children).unwrap_or_default();
        let Some(path) = arguments.iter().rev().find(|argument| argument.kind() == "string") else { return };
        let path = self.text(*path).trim_matches(['"', '\'']);
        let kind = if function == "require_relative" { ImportKind::File } else { ImportKind::Named };
        self.add_import(kind, path, "", "", node);
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
