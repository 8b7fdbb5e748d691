//! Go.

use super::{AHEAD, Walk, define::Found, evident::type_path, tokens::mark};
use crate::facts::{ImportKind, SymbolKind};

/// Words before parentheses or braces that call and make nothing.
const KEYWORDS: &[&str] = &[
    "break",
    "case",
    "chan",
    "const",
    "continue",
    "default",
    "defer",
    "else",
    "fallthrough",
    "for",
    "func",
    "go",
    "goto",
    "if",
    "import",
    "interface",
    "map",
    "package",
    "range",
    "return",
    "select",
    "struct",
    "switch",
    "type",
    "var",
];

/// Types that belong to the language.
const OWN_TYPES: &[&str] = &[
    "any", "bool", "byte", "error", "float32", "float64", "int", "int16", "int32", "int64", "int8", "rune",
    "string", "uint", "uint16", "uint32", "uint64", "uint8", "uintptr",
];

impl<'a> Walk<'a> {
    pub(super) fn step_go(&mut self, at: usize) -> usize {
        if at < self.inside_until
            && self.tokens.begins_line(at)
            && self.tokens.is_word(at)
            && self.scopes.is_empty()
        {
            return self.go_type(at, at);
        }
        if self.tokens.mark(at) == mark::ASSIGN {
            self.go_assignment(at);
            return at + 1;
        }
        match self.tokens.word(at) {
            "" => at + 1,
            "package" if self.facts.package.is_empty() && self.tokens.is_word(at + 1) => {
                self.facts.package = self.tokens.word(at + 1).to_owned();
                at + 2
            }
            "import" => self.go_imports(at),
            "func" => self.go_function(at),
            "type" if self.tokens.mark(at + 1) == b'(' => {
                self.inside_until = self.tokens.past(at + 1) - 1;
                at + 2
            }
            "type" if self.tokens.is_word(at + 1) => self.go_type(at + 1, at),
            "var" if self.tokens.is_word(at + 1) => self.go_variable(at),
            "if" | "for" | "switch" | "select" => {
                if let Some(block) = self.find(at + 1, b"{") {
                    self.blocks.insert(block);
                }
                at + 1
            }
            name => {
                match self.tokens.mark(at + 1) {
                    b'(' if !KEYWORDS.contains(&name) && self.tokens.mark_before(at) != b']' => self.call(at),
                    b'{' if !KEYWORDS.contains(&name)
                        && !OWN_TYPES.contains(&name)
                        && !self.blocks.contains(&(at + 1)) =>
                    {
                        self.construct(at);
                    }
                    _ => {}
                }
                at + 1
            }
        }
    }

    fn go_imports(&mut self, at: usize) -> usize {
        let is_group = self.tokens.mark(at + 1) == b'(';
        let end = if is_group { self.tokens.past(at + 1) } else { (at + 4).min(self.tokens.len()) };
        for place in at + 1..end {
            let path = self.quoted(place);
            if path.is_empty() {
                continue;
            }
            let before = place - 1;
            let is_same_line = self.tokens.line(before) == self.tokens.line(place);
            let named = match self.tokens.mark(before) {
                b'.' if is_same_line => ".",
                _ if is_same_line && before > at => self.tokens.word(before),
                _ => "",
            };
            let local = if named.is_empty() { path.rsplit('/').next().unwrap_or(path) } else { named };
            let kind = if named == "." { ImportKind::All } else { ImportKind::Named };
            self.add_import(kind, path, "", local, place);
            if !is_group {
                return place + 1;
            }
        }
        end
    }

    fn go_function(&mut self, at: usize) -> usize {
        let is_method =
            self.scopes.is_empty() && self.tokens.mark(at + 1) == b'(' && self.tokens.begins_line(at);
        let name = if is_method { self.tokens.past(at + 1) } else { at + 1 };
        let list = match self.tokens.mark(name + 1) {
            b'[' => self.tokens.past(name + 1),
            _ => name + 1,
        };
        let is_named = self.tokens.is_word(name) && !KEYWORDS.contains(&self.tokens.word(name));
        if !is_named || self.tokens.mark(list) != b'(' {
            // A function without a name.
            if let Some(body) = self.go_body(self.tokens.past(at + 1)) {
                self.blocks.insert(body);
            }
            return at + 1;
        }
        let after = self.tokens.past(list);
        let body = self.go_body(after);
        let last = body.map_or(after - 1, |body| self.tokens.past(body) - 1);
        let receiver = is_method.then(|| self.tokens.span(at + 2, name.saturating_sub(2)));
        let owner = receiver.and_then(|receiver| {
            type_path(receiver.split_once(char::is_whitespace).map_or(receiver, |(_, typed)| typed))
        });
        let kind = if is_method { SymbolKind::Method } else { SymbolKind::Function };
        let found = Found { kind, name: self.tokens.word(name), owner: owner.as_deref(), first: at, last };
        if !self.open(&found) {
            return name + 1;
        }
        if is_method {
            self.go_typed(at + 2, name - 1, false);
        }
        self.go_typed(list + 1, after - 1, false);
        if let Some(body) = body {
            self.blocks.insert(body);
            (after..body).for_each(|place| self.go_mention(place));
        }
        body.map_or(after, |body| body + 1)
    }

    /// The brace of a function, after its parameters and the types of its results.
    fn go_body(&self, from: usize) -> Option<usize> {
        let mut at = from;
        for _ in 0..64 {
            match self.tokens.word(at) {
                "interface" | "struct" if self.tokens.mark(at + 1) == b'{' => {
                    at = self.tokens.past(at + 1);
                    continue;
                }
                _ => {}
            }
            if self.tokens.mark(at) == b'{' {
                return Some(at);
            }
            let goes_on = self.tokens.is_word(at)
                || matches!(
                    self.tokens.mark(at),
                    b'(' | b'[' | b']' | b'*' | b'.' | b'<' | b'-' | mark::ARROW
                );
            if !goes_on || self.tokens.begins_line(at) {
                return None;
            }
            at = self.tokens.past(at);
        }
        None
    }

    /// Parameters and fields that are written `a, b Type`, up to a token.
    fn go_typed(&mut self, from: usize, until: usize, is_field: bool) {
        let mut names: Vec<&'a str> = Vec::new();
        for (first, last) in self.parts(from, until) {
            let is_named = self.tokens.is_word(first) && first < last && self.tokens.mark(first + 1) != b'.';
            if !is_named {
                if self.tokens.is_word(first) && first == last {
                    names.push(self.tokens.word(first));
                }
                continue;
            }
            names.push(self.tokens.word(first));
            for name in names.drain(..) {
                self.remember_type(name, first + 1, last, is_field);
            }
            (first + 1..=last).for_each(|place| self.go_mention(place));
        }
    }

    fn go_mention(&mut self, at: usize) {
        let name = self.tokens.word(at);
        let is_package = self.tokens.mark(at + 1) == b'.';
        if !name.is_empty() && !is_package && !OWN_TYPES.contains(&name) && !KEYWORDS.contains(&name) {
            self.mention(at);
        }
    }

    /// `Name struct { … }` or `Name Type`, with or without the word `type` before it.
    fn go_type(&mut self, name: usize, first: usize) -> usize {
        let word = match self.tokens.mark(name + 1) {
            b'[' => self.tokens.past(name + 1),
            _ => name + 1,
        };
        let kind = match self.tokens.word(word) {
            "struct" => SymbolKind::Struct,
            "interface" => SymbolKind::Interface,
            _ => return self.go_alias(name, first),
        };
        let last = self.tokens.past(word + 1) - 1;
        let found = Found { kind, name: self.tokens.word(name), owner: None, first, last };
        if self.tokens.mark(word + 1) != b'{' || !self.open(&found) {
            return name + 1;
        }
        let of = self.opened();
        let mut at = word + 2;
        while at < last {
            let end = self.go_line_end(at, last);
            let held = if self.tokens.mark(at) == b'*' { at + 1 } else { at };
            let path = self.path_end(held);
            let rest = path + 1 + usize::from(self.tokens.is_text(path + 1));
            if self.tokens.is_word(held) && rest >= end {
                if let Some(name) = type_path(self.tokens.span(held, path)) {
                    self.add_ancestor(&of, name, false, held);
                }
            } else if kind == SymbolKind::Struct {
                self.go_typed(at, end - usize::from(self.tokens.is_text(end - 1)), true);
            }
            at = end.max(at + 1);
        }
        last
    }

    fn go_alias(&mut self, name: usize, first: usize) -> usize {
        let end = self.go_line_end(name + 1, self.tokens.len());
        if end > name + 1 && !self.tokens.begins_line(name + 1) {
            self.open_alias(name, first, end - 1);
        }
        name + 1
    }

    fn go_line_end(&self, from: usize, most: usize) -> usize {
        let mut at = self.tokens.past(from);
        for _ in 0..AHEAD {
            if at >= most || self.tokens.begins_line(at) || self.tokens.mark(at) == b';' {
                break;
            }
            at = self.tokens.past(at);
        }
        at.min(most)
    }

    /// `name := Type{ … }`, `name, err := NewType(…)`.
    fn go_assignment(&mut self, at: usize) {
        let mut name = at.saturating_sub(1);
        while name >= 2 && self.tokens.mark(name - 1) == b',' && self.tokens.is_word(name - 2) {
            name -= 2;
        }
        if let Some(found) = self.made_type(at + 1) {
            self.remember(self.tokens.word(name), found, false);
        }
    }

    fn go_variable(&mut self, at: usize) -> usize {
        let name = self.tokens.word(at + 1);
        match self.tokens.mark(at + 2) {
            b'=' => {
                if let Some(found) = self.made_type(at + 3) {
                    self.remember(name, found, false);
                }
            }
            b',' => {}
            _ => {
                let end = self.go_line_end(at + 2, self.tokens.len());
                let typed = (at + 2..end).take_while(|place| self.tokens.mark(*place) != b'=').last();
                if let Some(last) = typed {
                    self.remember_type(name, at + 2, last, false);
                    (at + 2..=last).for_each(|place| self.go_mention(place));
                }
            }
        }
        at + 2
    }
}
