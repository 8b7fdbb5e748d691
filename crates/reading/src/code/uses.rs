//! Calls, constructions and types that are mentioned.

use tree_sitter::Node;

use super::{Language, Walk, children, evident::type_path, line_of};
use crate::facts::{Use, UseKind};

/// Bytes of what stands before a called name at most; longer expressions say nothing about it.
const LONGEST_RECEIVER: usize = 120;

/// Macros of Rust's own library, which nobody looks for.
const OWN_MACROS: &[&str] = &[
    "assert",
    "assert_eq",
    "assert_ne",
    "cfg",
    "concat",
    "debug_assert",
    "debug_assert_eq",
    "eprint",
    "eprintln",
    "env",
    "file",
    "format",
    "format_args",
    "include_str",
    "line",
    "matches",
    "panic",
    "print",
    "println",
    "todo",
    "unimplemented",
    "unreachable",
    "vec",
    "write",
    "writeln",
];

impl<'a> Walk<'a> {
    pub(super) fn call(&mut self, node: Node<'a>) {
        match self.language {
            Language::Java => {
                let (name, receiver) = (self.field_text(node, "name"), self.field_text(node, "object"));
                self.add_member(name, receiver, self.field(node, "object").is_some(), node);
            }
            Language::Ruby => self.call_ruby(node),
            _ => {
                let Some(function) = self.field(node, "function") else { return };
                self.call_of(function, node);
            }
        }
    }

    fn call_of(&mut self, function: Node<'a>, node: Node<'a>) {
        match function.kind() {
            "identifier" | "type_identifier" => {
                let name = self.text(function);
                if self.language == Language::JavaScript || self.language == Language::TypeScript {
                    self.required(name, node);
                }
                let is_type = self.language == Language::Python && name.starts_with(char::is_uppercase);
                let kind = if is_type { UseKind::Construct } else { UseKind::Call };
                self.add_use(kind, name, "", String::new(), node);
            }
            "scoped_identifier" | "qualified_identifier" => {
                let path = self.text(function);
                if let Some((receiver, name)) = path.rsplit_once("::") {
                    self.path_call(name, receiver, node);
                }
            }
            "generic_function" | "template_function" | "generic_name" => {
                let inner = self.field(function, "function").or_else(|| self.field(function, "name"));
                match inner.or_else(|| function.named_child(0)) {
                    Some(inner) if inner.id() != function.id() => self.call_of(inner, node),
                    _ => {}
                }
            }
            "field_expression"
            | "attribute"
            | "member_expression"
            | "selector_expression"
            | "member_access_expression" => self.member_call(function, node),
            // `foo?.()`, `(f)()`, `a[b]()` say nothing that can be looked up.
            _ => {}
        }
    }

    fn member_call(&mut self, function: Node<'a>, node: Node<'a>) {
        let name = ["field", "attribute", "property", "name"]
            .into_iter()
            .find_map(|field| self.field(function, field));
        let object = ["value", "object", "operand", "argument", "expression"]
            .into_iter()
            .find_map(|field| self.field(function, field));
        let Some(name) = name else { return };
        let name = match name.kind() {
            "generic_name" | "template_method" => name.named_child(0).unwrap_or(name),
            _ => name,
        };
        self.add_member(self.text(name), object.map_or("", |object| self.text(object)), true, node);
    }

    /// `receiver.name(…)`; without a receiver it is a call of a method of the same object, or of a function.
    fn add_member(&mut self, name: &'a str, receiver: &str, has_receiver: bool, node: Node<'a>) {
        if !has_receiver {
            return self.add_use(UseKind::Call, name, "", String::new(), node);
        }
        let receiver = simple(receiver);
        let receiver_type = if receiver.is_empty() { String::new() } else { self.receiver_type(receiver) };
        self.add_use(UseKind::MemberCall, name, receiver, receiver_type, node);
    }

    fn path_call(&mut self, name: &'a str, receiver: &str, node: Node<'a>) {
        let Some(receiver) = type_path(receiver) else { return };
        let receiver_type = if receiver == "Self" { self.receiver_type("Self") } else { String::new() };
        self.add_use(UseKind::PathCall, name, &receiver, receiver_type, node);
    }

    fn call_ruby(&mut self, node: Node<'a>) {
        let name = self.field_text(node, "method");
        let receiver = self.field(node, "receiver");
        if receiver.is_none() {
            if matches!(name, "require" | "require_relative" | "load" | "autoload") {
                return self.required_ruby(name, node);
            }
            if matches!(name, "include" | "extend" | "prepend") {
                let modules = self.field(node, "arguments").map(children).unwrap_or_default();
                let of = self.own_type().unwrap_or_default().to_owned();
                for module in modules {
                    if matches!(module.kind(), "constant" | "scope_resolution") && !of.is_empty() {
                        self.add_ancestor(&of, self.text(module).to_owned(), true, node);
                    }
                }
                return;
            }
        }
        let receiver_text = receiver.map_or("", |receiver| self.text(receiver));
        if name == "new"
            && let Some(made) = type_path(receiver_text)
        {
            let made = made.rsplit("::").next().unwrap_or(&made).len();
            let name = &receiver_text[receiver_text.len() - made.min(receiver_text.len())..];
            return self.add_use(UseKind::Construct, name, "", String::new(), node);
        }
        self.add_member(name, receiver_text, receiver.is_some(), node);
    }

    pub(super) fn construct(&mut self, node: Node<'a>) {
        let made = ["constructor", "type", "name"].into_iter().find_map(|field| self.field(node, field));
        let Some(made) = made else { return };
        let text = self.text(made);
        let Some(path) = type_path(text) else { return };
        let path = if path == "Self" { self.receiver_type("Self") } else { path };
        let last = path.rsplit([':', '.']).next().unwrap_or(&path);
        let at = text.find(last).unwrap_or(0);
        let name = text.get(at..at + last.len()).unwrap_or_default();
        self.add_use(UseKind::Construct, name, "", String::new(), node);
    }

    pub(super) fn use_macro(&mut self, node: Node<'a>) {
        let path = self.field_text(node, "macro");
        let (receiver, name) = path.rsplit_once("::").unwrap_or(("", path));
        if OWN_MACROS.contains(&name) {
            return;
        }
        let kind = if receiver.is_empty() { UseKind::Call } else { UseKind::PathCall };
        self.add_use(kind, name, receiver, String::new(), node);
    }

    /// A type that is named. What is defined, constructed or inherited from is told elsewhere.
    pub(super) fn mention(&mut self, node: Node<'a>) {
        let is_told = self.parent().is_some_and(|parent| {
            let is_name = parent.child_by_field_name("name").is_some_and(|name| name.id() == node.id());
            let kind = parent.kind();
            is_name
                || matches!(
                    kind,
                    "struct_expression"
                        | "composite_literal"
                        | "object_creation_expression"
                        | "new_expression"
                        | "type_parameter"
                        | "superclass"
                        | "base_class_clause"
                        | "type_list"
                        | "trait_bounds"
                        | "impl_item"
                        | "extends_clause"
                        | "implements_clause"
                        | "use_as_clause"
                )
        });
        let name = self.text(node);
        let is_parameter = name.len() == 1;
        if !is_told && !is_parameter && !matches!(name, "Self" | "String" | "Option" | "Result" | "Vec") {
            self.add_use(UseKind::Mention, name, "", String::new(), node);
        }
    }

    fn add_use(
        &mut self,
        kind: UseKind,
        name: &'a str,
        receiver: &str,
        receiver_type: String,
        node: Node<'a>,
    ) {
        let is_name = name.chars().next().is_some_and(|first| first.is_alphabetic() || "_$".contains(first));
        if !is_name || name.len() > LONGEST_RECEIVER || !self.has_room(self.facts.uses.len()) {
            return;
        }
        let from = self.definition();
        let key = (kind, from, name, receiver.to_owned());
        if let Some(known) = self.known_uses.get(&key) {
            let count = &mut self.facts.uses[*known].count;
            *count = count.saturating_add(1);
            return;
        }
        self.known_uses.insert(key, self.facts.uses.len());
        self.facts.uses.push(Use {
            kind,
            from,
            name: name.to_owned(),
            receiver: receiver.to_owned(),
            receiver_type,
            line: line_of(node),
            count: 1,
        });
    }
}

/// What stands before a name, if it is a path of names; empty for any other expression.
fn simple(receiver: &str) -> &str {
    let is_path = |letter: char| letter.is_alphanumeric() || "_.:$@>-".contains(letter);
    let fits = receiver.len() <= LONGEST_RECEIVER && receiver.chars().all(is_path);
    if fits { receiver } else { "" }
}
