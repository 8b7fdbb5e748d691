//! Definitions and what they descend from.

use tree_sitter::Node;

use super::{Language, Scope, Walk, children, end_line_of, line_of};
use crate::facts::{Ancestor, Definition, SymbolKind};

/// Levels of nested declarators that are looked through: `(*(*name)(int))[3]`.
const DECLARATORS: usize = 16;

impl<'a> Walk<'a> {
    pub(super) fn define(&mut self, kind: SymbolKind, node: Node<'a>) {
        match self.language {
            Language::C | Language::Cpp => self.define_c(kind, node),
            Language::Go => self.define_go(kind, node),
            Language::Ruby => self.define_ruby(kind, node),
            _ => {
                let name = self.field_text(node, "name");
                self.open(kind, name, None, node);
                self.ancestors(node, name);
            }
        }
    }

    /// Adds a definition and opens its scope. `owner` is the type that a method belongs to when that is not around it.
    fn open(&mut self, kind: SymbolKind, name: &'a str, owner: Option<&str>, node: Node<'a>) {
        let name = name.trim_matches(['"', '\'', '`']);
        if name.is_empty() || !self.has_room(self.facts.definitions.len()) {
            return;
        }
        let separator = self.language.separator();
        let parent = self.definition();
        let around = self.scopes.last().map_or("", |scope| &scope.prefix);
        let prefix = match owner {
            Some(owner) if around.is_empty() => owner.to_owned(),
            Some(owner) => format!("{around}{separator}{owner}"),
            None => around.to_owned(),
        };
        let qualified =
            if prefix.is_empty() { name.to_owned() } else { format!("{prefix}{separator}{name}") };
        // Names that grow with the depth of nesting would take the square of the text.
        if qualified.len() > crate::facts::LONGEST_NAME {
            self.facts.is_cut = true;
            return;
        }
        let in_type = owner.is_some()
            || self
                .scopes
                .last()
                .is_some_and(|scope| scope.own_type.is_some() && self.is_body_of_type(scope));
        let kind = match kind {
            SymbolKind::Function if in_type => SymbolKind::Method,
            SymbolKind::Method if !in_type => SymbolKind::Function,
            kind => kind,
        };
        let outer = self.outermost(node);
        let bytes = offset(outer.start_byte())..offset(outer.end_byte());
        let lines = (line_of(outer), end_line_of(outer));
        let place = self.facts.definitions.len() as u32;
        self.facts.definitions.push(Definition {
            kind,
            name: name.to_owned(),
            qualified: qualified.clone(),
            parent,
            bytes,
            lines,
        });
        let own_type = match owner {
            Some(owner) => Some(owner.to_owned()),
            None if kind.is_type() || (kind == SymbolKind::Module && self.language == Language::Ruby) => {
                Some(qualified.clone())
            }
            None => None,
        };
        self.scopes.push(Scope {
            depth: self.depth,
            definition: Some(place),
            prefix: qualified,
            own_type,
            ..Scope::default()
        });
    }

    /// Whether a scope is the body of a type itself, not of one of its methods.
    fn is_body_of_type(&self, scope: &Scope<'a>) -> bool {
        let Some(definition) = scope.definition.and_then(|at| self.facts.definitions.get(at as usize)) else {
            return true;
        };
        // The scope of an `impl` has the definition around it.
        scope.prefix != definition.qualified
            || definition.kind.is_type()
            || (definition.kind == SymbolKind::Module && self.language == Language::Ruby)
    }

    /// `impl Type { … }` and `impl Trait for Type { … }`.
    pub(super) fn open_impl(&mut self, node: Node<'a>) {
        let Some(own_type) = self.field(node, "type").and_then(|found| self.type_path(found)) else { return };
        let name = own_type.rsplit("::").next().unwrap_or(&own_type).to_owned();
        let around = self.scopes.last().map_or("", |scope| &scope.prefix);
        let prefix = if around.is_empty() { name } else { format!("{around}::{name}") };
        if let Some(ancestor) = self.field(node, "trait").and_then(|found| self.type_path(found)) {
            self.add_ancestor(&prefix, ancestor, true, node);
        }
        let definition = self.definition();
        let own_type = Some(prefix.clone());
        self.scopes.push(Scope { depth: self.depth, definition, prefix, own_type, ..Scope::default() });
    }

    /// A Rust module; one without a body is an import of its file.
    pub(super) fn module(&mut self, node: Node<'a>) {
        if self.field(node, "body").is_some() {
            self.open(SymbolKind::Module, self.field_text(node, "name"), None, node);
        } else {
            self.child_module(node);
        }
    }

    pub(super) fn package(&mut self, node: Node<'a>) {
        let Some(name) = children(node).into_iter().find(|child| !child.is_extra()) else { return };
        self.facts.package = self.text(name).split_whitespace().collect();
    }

    fn define_c(&mut self, kind: SymbolKind, node: Node<'a>) {
        if kind == SymbolKind::Function && node.kind() == "function_definition" {
            let Some(declared) = self.declared(node) else { return };
            let name = self.text(declared);
            if let Some((owner, name)) = name.rsplit_once("::") {
                return self.open(kind, name, Some(owner), node);
            }
            return self.open(kind, name, None, node);
        }
        // `struct name *pointer` mentions a structure; only one with a body defines it.
        let has_body = self.field(node, "body").is_some() || node.kind() == "preproc_function_def";
        let mut name = self.field_text(node, "name");
        let parent = self.parent().filter(|parent| parent.kind() == "type_definition");
        if name.is_empty()
            && let Some(declared) = parent.and_then(|parent| self.declared(parent))
        {
            name = self.text(declared);
        }
        if has_body && !name.is_empty() {
            self.open(kind, name, None, node);
            self.ancestors(node, name);
        }
    }

    /// The name inside a declarator.
    pub(super) fn declared(&self, node: Node<'a>) -> Option<Node<'a>> {
        let mut declarator = self.field(node, "declarator")?;
        for _ in 0..DECLARATORS {
            let inner = self.field(declarator, "declarator").or_else(|| {
                let holds = matches!(declarator.kind(), "parenthesized_declarator" | "reference_declarator");
                holds.then(|| declarator.named_child(0)).flatten()
            });
            match inner {
                Some(inner) => declarator = inner,
                None => break,
            }
        }
        let is_name = matches!(
            declarator.kind(),
            "identifier"
                | "field_identifier"
                | "qualified_identifier"
                | "type_identifier"
                | "destructor_name"
                | "operator_name"
        );
        is_name.then_some(declarator)
    }

    fn define_go(&mut self, kind: SymbolKind, node: Node<'a>) {
        let name = self.field_text(node, "name");
        match kind {
            SymbolKind::Method => {
                let receiver = self.field(node, "receiver").and_then(|list| list.named_child(0));
                let owner = receiver
                    .and_then(|receiver| self.field(receiver, "type"))
                    .and_then(|found| self.type_path(found));
                self.open(kind, name, owner.as_deref(), node);
            }
            SymbolKind::Struct => {
                let Some(body) = self.field(node, "type") else { return };
                let kind = match body.kind() {
                    "struct_type" => SymbolKind::Struct,
                    "interface_type" => SymbolKind::Interface,
                    _ => return,
                };
                self.open(kind, name, None, node);
                self.embedded(body, name);
            }
            _ => self.open(kind, name, None, node),
        }
    }

    /// The types that a Go structure or interface embeds.
    fn embedded(&mut self, body: Node<'a>, name: &'a str) {
        for list in children(body) {
            let parts = if list.kind() == "field_declaration_list" { children(list) } else { vec![list] };
            for part in parts {
                let is_embedded = match part.kind() {
                    "field_declaration" => self.field(part, "name").is_none(),
                    "type_elem" | "constraint_elem" => true,
                    _ => false,
                };
                let held =
                    if is_embedded { self.field(part, "type").or_else(|| part.named_child(0)) } else { None };
                if let Some(ancestor) = held.and_then(|held| self.type_path(held)) {
                    self.add_ancestor(name, ancestor, false, part);
                }
            }
        }
    }

    fn define_ruby(&mut self, kind: SymbolKind, node: Node<'a>) {
        let name = self.field_text(node, "name");
        self.open(kind, name, None, node);
        if let Some(parent) = self.field(node, "superclass").and_then(|clause| clause.named_child(0)) {
            let of = self.scopes.last().map(|scope| scope.prefix.clone()).unwrap_or_default();
            let ancestor = self.text(parent).to_owned();
            self.add_ancestor(&of, ancestor, false, node);
        }
    }

    /// The clauses of a definition that name ancestors.
    fn ancestors(&mut self, node: Node<'a>, name: &str) {
        if name.is_empty() {
            return;
        }
        let of = match self.scopes.last() {
            Some(scope) if scope.depth == self.depth => scope.prefix.clone(),
            _ => return,
        };
        let is_interface = node.kind().starts_with("interface");
        for clause in children(node) {
            match clause.kind() {
                "trait_bounds" if node.kind() == "trait_item" => self.each_ancestor(&of, clause, |_| false),
                "argument_list" if self.language == Language::Python => {
                    self.each_ancestor(&of, clause, |_| false);
                }
                "superclass" => self.each_ancestor(&of, clause, |_| false),
                "super_interfaces" => self.each_ancestor(&of, clause, |_| true),
                "extends_interfaces" | "extends_type_clause" | "base_class_clause" => {
                    self.each_ancestor(&of, clause, |_| false);
                }
                "class_heritage" => self.heritage(&of, clause),
                // By convention the names of interfaces begin with an I and another capital.
                "base_list" => self.each_ancestor(&of, clause, |name| {
                    let mut letters = name.rsplit('.').next().unwrap_or(name).chars();
                    !is_interface
                        && letters.next() == Some('I')
                        && letters.next().is_some_and(char::is_uppercase)
                }),
                _ => {}
            }
        }
    }

    /// `extends` and `implements` of JavaScript and TypeScript.
    fn heritage(&mut self, of: &str, clause: Node<'a>) {
        for part in children(clause) {
            match part.kind() {
                "extends_clause" => self.each_ancestor(of, part, |_| false),
                "implements_clause" => self.each_ancestor(of, part, |_| true),
                _ => {
                    let name = self.text(part).to_owned();
                    self.add_ancestor(of, name, false, part);
                }
            }
        }
    }

    fn each_ancestor(&mut self, of: &str, clause: Node<'a>, implements: impl Fn(&str) -> bool) {
        let list = children(clause).into_iter().flat_map(|part| {
            if matches!(part.kind(), "type_list" | "interface_type_list") {
                children(part)
            } else {
                vec![part]
            }
        });
        let parts: Vec<Node<'a>> = list.collect();
        for part in parts {
            let is_name = !matches!(
                part.kind(),
                "keyword_argument"
                    | "type_arguments"
                    | "access_specifier"
                    | "argument_list"
                    | "lifetime"
                    | "higher_ranked_trait_bound"
                    | "removed_trait_bound"
            );
            if let Some(name) = is_name.then(|| self.type_path(part)).flatten() {
                let implements = implements(&name);
                self.add_ancestor(of, name, implements, part);
            }
        }
    }

    pub(super) fn add_ancestor(&mut self, of: &str, name: String, implements: bool, node: Node<'a>) {
        if name.is_empty() || !self.has_room(self.facts.ancestors.len()) {
            return;
        }
        self.facts.ancestors.push(Ancestor { of: of.to_owned(), name, implements, line: line_of(node) });
    }

    /// A function that is the value of a variable or field.
    pub(super) fn define_value(&mut self, name: &'a str, node: Node<'a>) {
        self.open(SymbolKind::Function, name, None, node);
    }

    /// A definition begins with what decorates or exports it.
    fn outermost(&self, node: Node<'a>) -> Node<'a> {
        let Some(parent) = self.parent() else { return node };
        match (self.language, parent.kind()) {
            (_, "decorated_definition" | "export_statement" | "template_declaration") => parent,
            (Language::Go, "type_declaration") if parent.named_child_count() == 1 => parent,
            (Language::C | Language::Cpp, "type_definition") => parent,
            (Language::JavaScript | Language::TypeScript, "lexical_declaration" | "variable_declaration")
                if parent.named_child_count() == 1 =>
            {
                let outer = self.around.iter().rev().nth(1).copied();
                outer.filter(|outer| outer.kind() == "export_statement").unwrap_or(parent)
            }
            _ => node,
        }
    }
}

fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
