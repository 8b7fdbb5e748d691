//! Types of variables and fields, as far as the text says them close by: `let shelf: Shelf`, `x = Shelf(…)`.

use tree_sitter::Node;

use super::{Language, Walk, children};

/// Types whose methods are mostly those of what they hold.
const WRAPPERS: &[&str] = &["Arc", "Box", "Rc", "unique_ptr", "shared_ptr", "Option", "Optional"];
/// Bytes of a path of names at most.
const LONGEST_PATH: usize = 160;

impl<'a> Walk<'a> {
    /// The name of a type, without references, type arguments and wrappers.
    pub(super) fn type_path(&self, node: Node<'a>) -> Option<String> {
        type_path(self.text(node))
    }

    /// A typed parameter, field or property.
    pub(super) fn typed(&mut self, node: Node<'a>) {
        let Some(found) = self.field(node, "type").and_then(|found| self.type_path(found)) else { return };
        let is_field = matches!(node.kind(), "field_declaration" | "property_declaration");
        let mut names: Vec<&'a str> = Vec::new();
        for field in ["name", "pattern"] {
            let mut cursor = node.walk();
            let all: Vec<Node<'a>> = node.children_by_field_name(field, &mut cursor).take(64).collect();
            names.extend(all.into_iter().map(|name| self.text(name)));
        }
        if names.is_empty() {
            let inner = match self.language {
                Language::C | Language::Cpp => self.declared(node),
                Language::Python => node.named_child(0),
                _ => None,
            };
            names.extend(inner.map(|inner| self.text(inner)));
        }
        for name in names {
            let name = name.trim_start_matches("mut ").trim_start_matches("...");
            self.remember(name, found.clone(), is_field);
        }
    }

    /// A variable with a type, or with a value whose type is evident.
    pub(super) fn variable(&mut self, node: Node<'a>) {
        match self.language {
            Language::JavaScript | Language::TypeScript => self.variable_script(node),
            Language::Python | Language::Ruby => {
                let (Some(left), Some(right)) = (self.field(node, "left"), self.field(node, "right")) else {
                    return;
                };
                if let Some(found) = self.made_type(right) {
                    self.remember_receiver(self.text(left), found);
                }
            }
            Language::Rust => {
                let name = self.field_text(node, "pattern").trim_start_matches("mut ");
                let said = self.field(node, "type").and_then(|found| self.type_path(found));
                let made = || self.field(node, "value").and_then(|value| self.made_type(value));
                if let Some(found) = said.or_else(made) {
                    self.remember(name, found, false);
                }
            }
            Language::Go => self.variable_go(node),
            Language::Java | Language::CSharp => self.variable_typed(node),
            Language::C | Language::Cpp => {
                let said = self.field(node, "type").and_then(|found| self.type_path(found));
                let named = self.declared(node).map(|name| self.text(name));
                if let (Some(found), Some(name)) = (said, named) {
                    self.remember(name, found, node.kind() == "field_declaration");
                }
            }
        }
    }

    fn variable_script(&mut self, node: Node<'a>) {
        let key = ["name", "property", "key"].into_iter().find_map(|field| self.field(node, field));
        let Some(key) = key else { return };
        let name = self.text(key);
        let Some(value) = self.field(node, "value") else {
            if let Some(found) = self.field(node, "type").and_then(|found| self.type_path(found)) {
                self.remember(name, found, node.kind() != "variable_declarator");
            }
            return;
        };
        let is_function = matches!(
            value.kind(),
            "arrow_function" | "function_expression" | "function" | "generator_function"
        );
        if is_function
            && matches!(key.kind(), "identifier" | "property_identifier" | "private_property_identifier")
        {
            return self.define_value(name, node);
        }
        let said = self.field(node, "type").and_then(|found| self.type_path(found));
        if let Some(found) = said.or_else(|| self.made_type(value)) {
            self.remember(name, found, node.kind() != "variable_declarator");
        }
    }

    fn variable_go(&mut self, node: Node<'a>) {
        if let Some(found) = self.field(node, "type").and_then(|found| self.type_path(found)) {
            let name = self.field_text(node, "name");
            return self.remember(name, found, false);
        }
        let (left, right) = (self.field(node, "left"), self.field(node, "right"));
        let (Some(name), Some(value)) = (
            left.or_else(|| self.field(node, "name")).map(|left| self.text(left)),
            right.or_else(|| self.field(node, "value")).and_then(|right| right.named_child(0)),
        ) else {
            return;
        };
        let first = name.split(',').next().unwrap_or(name).trim();
        if let Some(found) = self.made_type(value) {
            self.remember(first, found, false);
        }
    }

    fn variable_typed(&mut self, node: Node<'a>) {
        let said = self.field(node, "type").and_then(|found| self.type_path(found));
        let is_field = node.kind() == "field_declaration"
            || self.parent().is_some_and(|parent| parent.kind() == "field_declaration");
        for declarator in children(node) {
            if declarator.kind() != "variable_declarator" {
                continue;
            }
            let name = self.field_text(declarator, "name");
            let inferred = said.as_deref() == Some("var");
            let made = || {
                let value = self.field(declarator, "value").or_else(|| declarator.named_child(1));
                value.and_then(|value| self.made_type(value))
            };
            let found = if inferred { made() } else { said.clone() };
            if let Some(found) = found {
                self.remember(name, found, is_field);
            }
        }
    }

    /// The type that an expression evidently makes a value of.
    fn made_type(&self, value: Node<'a>) -> Option<String> {
        let mut value = value;
        for _ in 0..4 {
            let inner = match value.kind() {
                "try_expression" | "await_expression" | "await" | "parenthesized_expression" => {
                    value.named_child(0)
                }
                "unary_expression" => self.field(value, "operand"),
                "reference_expression" => self.field(value, "value"),
                _ => None,
            };
            match inner {
                Some(inner) => value = inner,
                None => break,
            }
        }
        match value.kind() {
            "new_expression" => self.field(value, "constructor").and_then(|found| self.type_path(found)),
            "object_creation_expression" | "composite_literal" => {
                self.field(value, "type").and_then(|found| self.type_path(found))
            }
            "struct_expression" => self.field(value, "name").and_then(|found| self.type_path(found)),
            "call_expression" | "call" => self.made_by_call(value),
            _ => None,
        }
    }

    /// `Type::new(…)`, `Type(…)`, `Type.new`, `NewType(…)`.
    fn made_by_call(&self, call: Node<'a>) -> Option<String> {
        match self.language {
            Language::Rust => {
                let (owner, _) = self.field_text(call, "function").rsplit_once("::")?;
                let owner = type_path(owner)?;
                let own = self.own_type();
                if owner == "Self" { own.map(str::to_owned) } else { is_type_name(&owner).then_some(owner) }
            }
            Language::Python => {
                type_path(self.field_text(call, "function")).filter(|name| is_type_name(name))
            }
            Language::Ruby => {
                let is_new = self.field_text(call, "method") == "new";
                is_new.then(|| type_path(self.field_text(call, "receiver"))).flatten()
            }
            Language::Go => {
                let function = self.field_text(call, "function");
                let (package, name) = function.rsplit_once('.').unwrap_or(("", function));
                let name = name.strip_prefix("New").filter(|name| is_type_name(name))?;
                Some(if package.is_empty() { name.to_owned() } else { format!("{package}.{name}") })
            }
            _ => None,
        }
    }

    /// A variable, or a field of the object itself: `self.shelf = …`, `@shelf = …`.
    fn remember_receiver(&mut self, left: &'a str, found: String) {
        match left
            .strip_prefix("self.")
            .or_else(|| left.strip_prefix("this."))
            .or_else(|| left.strip_prefix('@'))
        {
            Some(field) => self.remember(field, found, true),
            None => self.remember(left, found, false),
        }
    }

    fn remember(&mut self, name: &'a str, found: String, is_field: bool) {
        if name.is_empty() || name.len() > LONGEST_PATH || self.fields.len() > crate::facts::MOST_FACTS {
            return;
        }
        if is_field {
            if let Some(own) = self.own_type().map(str::to_owned) {
                self.fields.insert((own, name), found);
            }
        } else if let Some(scope) = self.scopes.last_mut() {
            scope.variables.insert(name, found);
        }
    }

    /// The type of what stands before the dot of a call; empty when it is not evident.
    pub(super) fn receiver_type(&self, receiver: &str) -> String {
        if matches!(receiver, "self" | "this" | "Self" | "cls") {
            return self.own_type().unwrap_or_default().to_owned();
        }
        let own_field =
            ["self.", "this.", "this->", "@"].into_iter().find_map(|own| receiver.strip_prefix(own));
        if let Some(field) = own_field {
            let own = self.own_type().unwrap_or_default().to_owned();
            return self.fields.get(&(own, field)).cloned().unwrap_or_default();
        }
        let known = self.scopes.iter().rev().find_map(|scope| scope.variables.get(receiver));
        known.cloned().unwrap_or_else(|| {
            // Java, C# and C++ write fields without a word before them.
            let own = self.own_type().unwrap_or_default().to_owned();
            self.fields.get(&(own, receiver)).cloned().unwrap_or_default()
        })
    }
}

/// The name of a type as it is written, without references, type arguments, arrays and wrappers.
pub(super) fn type_path(text: &str) -> Option<String> {
    let mut rest = text.trim().trim_start_matches(':').trim_start();
    loop {
        let before = rest;
        rest = rest.trim_start_matches(['&', '*', '?', '(', '[', ']', '"', '\'']).trim_start();
        for word in ["mut ", "const ", "dyn ", "impl ", "struct ", "enum ", "class ", "readonly "] {
            rest = rest.strip_prefix(word).unwrap_or(rest);
        }
        // A lifetime stands after the reference, without its mark by now.
        if before.trim_start().starts_with("&'") {
            rest = rest.split_once(' ').map_or(rest, |(_, rest)| rest);
        }
        if rest == before {
            break;
        }
    }
    let end = rest
        .find(|letter: char| !(letter.is_alphanumeric() || "_.:$".contains(letter)))
        .unwrap_or(rest.len());
    let (path, after) = rest.split_at(end);
    let path = path.trim_matches([':', '.']);
    let last = path.rsplit([':', '.']).next().unwrap_or(path);
    if WRAPPERS.contains(&last)
        && let Some(inner) = after.strip_prefix('<')
    {
        return type_path(inner).filter(|inner| !WRAPPERS.contains(&inner.as_str()));
    }
    (!path.is_empty() && path.len() <= LONGEST_PATH).then(|| path.to_owned())
}

fn is_type_name(path: &str) -> bool {
    let last = path.rsplit([':', '.']).next().unwrap_or(path);
    last.chars().next().is_some_and(char::is_uppercase)
}
