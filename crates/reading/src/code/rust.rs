//! Rust.

use super::{Body, Scope, Walk, define::Found, evident::type_path, tokens::mark, uses::looks_like_type};
use crate::facts::{SymbolKind, UseKind};

const MODIFIERS: &[&str] = &["pub", "async", "const", "unsafe", "extern", "default", "auto", "safe"];

/// Words before parentheses that call nothing.
const KEYWORDS: &[&str] = &[
    "as", "async", "await", "box", "break", "const", "crate", "dyn", "else", "enum", "extern", "fn", "for",
    "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref", "return", "self", "Self",
    "static", "struct", "super", "Fn", "FnMut", "FnOnce", "trait", "type", "union", "unsafe", "use", "where",
    "while", "yield",
];

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

impl Walk<'_> {
    pub(super) fn step_rust(&mut self, at: usize) -> usize {
        let tokens = &self.tokens;
        if tokens.mark(at) == b'#' {
            let bracket = at + 1 + usize::from(tokens.mark(at + 1) == b'!');
            return if tokens.mark(bracket) == b'[' { tokens.past(bracket) } else { at + 1 };
        }
        let is_named = tokens.is_word(at + 1);
        match tokens.word(at) {
            "" => at + 1,
            "fn" if is_named => self.rust_function(at),
            "struct" | "enum" | "trait" if is_named => self.rust_type(at),
            "union" if is_named && matches!(tokens.mark(at + 2), b'{' | b'<') => self.rust_type(at),
            "type" if is_named && self.begins_item(at) => self.rust_alias(at, self.first_of(at, MODIFIERS)),
            "mod" if is_named => self.rust_module(at),
            "impl" if self.begins_item(at) => self.rust_impl(at),
            "use" if self.begins_item(at) && tokens.mark(at + 1) != b'<' => self.rust_use(at),
            "extern" if tokens.word(at + 1) == "crate" => {
                let name = tokens.word(at + 2);
                self.add_import(crate::facts::ImportKind::Named, name, "", name, at);
                at + 3
            }
            "macro_rules" if tokens.mark(at + 1) == b'!' && tokens.is_word(at + 2) => {
                let last = tokens.past(at + 3) - 1;
                let (kind, name) = (SymbolKind::Function, tokens.word(at + 2));
                self.open(&Found { kind, name, owner: None, first: at, last });
                last + 1
            }
            "let" => self.rust_let(at),
            "if" | "while" | "match" | "for" => {
                if let Some(block) = self.find(at + 1, b"{;") {
                    self.blocks.insert(block);
                }
                at + 1
            }
            _ => self.rust_name(at),
        }
    }

    /// Whether a definition may begin here: `impl` and `use` have other meanings within types.
    fn begins_item(&self, at: usize) -> bool {
        let first = self.first_of(at, MODIFIERS);
        first == 0 || matches!(self.tokens.mark(first - 1), b'{' | b'}' | b';' | b']')
    }

    fn rust_function(&mut self, at: usize) -> usize {
        let name = self.tokens.word(at + 1);
        let Some(body) = self.find(at + 2, b"{;") else { return at + 2 };
        let first = self.first_of(at, MODIFIERS);
        let last = self.tokens.past(body) - 1;
        if self.open(&Found { kind: SymbolKind::Function, name, owner: None, first, last }) {
            self.blocks.insert(body);
            if let Some(list) = self.find(at + 2, b"(").filter(|list| *list < body) {
                self.typed_list(list + 1, self.tokens.past(list) - 1, false);
            }
        }
        at + 2
    }

    fn rust_type(&mut self, at: usize) -> usize {
        let kind = match self.tokens.word(at) {
            "enum" => SymbolKind::Enum,
            "trait" => SymbolKind::Trait,
            _ => SymbolKind::Struct,
        };
        let Some(body) = self.find(at + 2, b"{;") else { return at + 2 };
        let (name, last) = (self.tokens.word(at + 1), self.tokens.past(body) - 1);
        let first = self.first_of(at, MODIFIERS);
        if !self.open(&Found { kind, name, owner: None, first, last }) {
            return at + 2;
        }
        self.blocks.insert(body);
        match kind {
            SymbolKind::Struct if self.tokens.mark(body) == b'{' => self.typed_list(body + 1, last, true),
            SymbolKind::Trait => self.rust_supertraits(at + 2, body),
            _ => {}
        }
        at + 2
    }

    fn rust_supertraits(&mut self, from: usize, body: usize) {
        let after =
            if self.tokens.mark(from) == b'<' { self.tokens.past_angles(from, 400) } else { Some(from) };
        let Some(colon) = after.filter(|after| self.tokens.mark(*after) == b':') else { return };
        let of = self.opened();
        let (mut first, mut depth) = (colon + 1, 0usize);
        for at in colon + 1..=body {
            let ends = at == body || self.tokens.word(at) == "where";
            match self.tokens.mark(at) {
                b'<' => depth += 1,
                b'>' => depth = depth.saturating_sub(1),
                b'+' if depth == 0 => {}
                _ if ends => {}
                _ => continue,
            }
            if ends || (self.tokens.mark(at) == b'+' && depth == 0) {
                let is_bound = at > first && self.tokens.is_word(first) && self.tokens.word(first) != "for";
                if is_bound && let Some(name) = type_path(self.tokens.span(first, at - 1)) {
                    self.add_ancestor(&of, name, false, first);
                }
                first = at + 1;
            }
            if ends {
                return;
            }
        }
    }

    fn rust_module(&mut self, at: usize) -> usize {
        let name = self.tokens.word(at + 1);
        let first = self.first_of(at, MODIFIERS);
        match self.tokens.mark(at + 2) {
            b'{' => {
                let last = self.tokens.past(at + 2) - 1;
                self.open(&Found { kind: SymbolKind::Module, name, owner: None, first, last });
            }
            b';' => self.child_module(name, first),
            _ => {}
        }
        at + 2
    }

    /// `impl Type { … }` and `impl Trait for Type { … }`.
    fn rust_impl(&mut self, at: usize) -> usize {
        let Some(body) = self.find(at + 1, b"{;").filter(|body| self.tokens.mark(*body) == b'{') else {
            return at + 1;
        };
        let from = match self.tokens.mark(at + 1) {
            b'<' => self.tokens.past_angles(at + 1, 400).unwrap_or(at + 1),
            _ => at + 1,
        };
        let (split, end) = self.rust_impl_parts(from, body);
        let typed = self.tokens.span(split.map_or(from, |split| split + 1), end.saturating_sub(1));
        let Some(own_type) = type_path(typed) else { return at + 1 };
        let name = own_type.rsplit("::").next().unwrap_or(&own_type).to_owned();
        let around = self.scopes.last().map_or("", |scope| &scope.prefix);
        let prefix = if around.is_empty() { name } else { format!("{around}::{name}") };
        if let Some(split) = split.filter(|split| *split > from)
            && let Some(ancestor) = type_path(self.tokens.span(from, split - 1).trim_start_matches('!'))
        {
            self.add_ancestor(&prefix, ancestor, true, self.first_of(at, MODIFIERS));
        }
        if self.scopes.len() < super::DEEPEST && prefix.len() <= crate::facts::LONGEST_NAME {
            let (until, definition, own_type) =
                (self.tokens.past(body) - 1, self.definition(), Some(prefix.clone()));
            let body = Body::Type;
            self.scopes.push(Scope { until, body, definition, prefix, own_type, ..Scope::default() });
        }
        body + 1
    }

    /// Where the `for` of an `impl` stands, and where its type ends.
    fn rust_impl_parts(&self, from: usize, body: usize) -> (Option<usize>, usize) {
        let (mut split, mut depth, mut at) = (None, 0usize, from);
        while at < body {
            match (self.tokens.mark(at), self.tokens.word(at)) {
                (b'<', _) => depth += 1,
                (b'>', _) => depth = depth.saturating_sub(1),
                (_, "for") if depth == 0 && self.tokens.mark(at + 1) != b'<' => split = Some(at),
                (_, "where") if depth == 0 => return (split, at),
                _ => {}
            }
            at = self.tokens.past(at);
        }
        (split, body)
    }

    fn rust_use(&mut self, at: usize) -> usize {
        let Some(end) = self.find(at + 1, b";") else { return at + 1 };
        let first = self.first_of(at, MODIFIERS);
        if end > at + 1 {
            self.import_rust(at + 1, end - 1, first < at);
        }
        end + 1
    }

    fn rust_let(&mut self, at: usize) -> usize {
        let name = at + 1 + usize::from(self.tokens.word(at + 1) == "mut");
        match self.tokens.mark(name + 1) {
            b':' => {
                if let Some(end) = self.find(name + 2, b"=;").filter(|end| *end > name + 2) {
                    self.remember_type(self.tokens.word(name), name + 2, end - 1, false);
                }
            }
            b'=' => {
                if let Some(found) = self.made_type(name + 2) {
                    self.remember(self.tokens.word(name), found, false);
                }
            }
            _ => {}
        }
        at + 1
    }

    /// A name that is no keyword of a definition.
    fn rust_name(&mut self, at: usize) -> usize {
        let (tokens, name) = (&self.tokens, self.tokens.word(at));
        if self.in_fields() {
            self.mention_type(at);
            return at + 1;
        }
        match tokens.mark(at + 1) {
            b'!' if matches!(tokens.mark(at + 2), b'(' | b'[' | b'{') => {
                if !OWN_MACROS.contains(&name) && !KEYWORDS.contains(&name) {
                    self.rust_macro(at);
                }
                return at + 2;
            }
            b'(' if !KEYWORDS.contains(&name) => {
                if !self.is_pattern(at, at + 1) {
                    self.call(at);
                }
                return at + 1;
            }
            mark::PATH if tokens.mark(at + 2) == b'<' => {
                let after = tokens.past_angles(at + 2, 64);
                if after.is_some_and(|after| tokens.mark(after) == b'(') && !KEYWORDS.contains(&name) {
                    self.call(at);
                }
                return at + 1;
            }
            b'{' if looks_like_type(name) && !self.blocks.contains(&(at + 1)) => {
                if !self.is_pattern(at, at + 1) {
                    self.construct(at);
                }
                return at + 1;
            }
            mark::PATH | b'!' => return at + 1,
            _ => {}
        }
        let is_variant =
            tokens.mark_before(at) == mark::PATH && at >= 2 && looks_like_type(tokens.word(at - 2));
        if !is_variant {
            self.mention_type(at);
        }
        at + 1
    }

    /// Whether this place stands directly among the fields of a structure or the variants of an enumeration.
    fn in_fields(&self) -> bool {
        let Some(scope) = self.scopes.last().filter(|scope| scope.body == Body::Type && scope.is_definition)
        else {
            return false;
        };
        let definition = scope.definition.and_then(|place| self.facts.definitions.get(place as usize));
        definition.is_some_and(|definition| matches!(definition.kind, SymbolKind::Struct | SymbolKind::Enum))
    }

    /// Whether what looks like a call or a value of a type is matched against one: `Some(x) =>`, `let Point { x } =`.
    fn is_pattern(&self, name: usize, open: usize) -> bool {
        if !looks_like_type(self.tokens.word(name)) {
            return false;
        }
        let after = self.tokens.past(open);
        matches!(self.tokens.mark(after), mark::FAT_ARROW | b'=' | b'|')
            || self.tokens.word_before(name) == "let"
    }

    fn rust_macro(&mut self, at: usize) {
        let name = self.tokens.word(at);
        if self.tokens.mark_before(at) != mark::PATH {
            return self.add_use(UseKind::Call, name, "", at);
        }
        if let Some(first) = self.path_before(at - 1).filter(|first| *first + 1 < at) {
            self.add_use(UseKind::PathCall, name, self.tokens.span(first, at - 2), at);
        }
    }
}
