//! Python.

use super::{AHEAD, OPEN, Walk, define::Found, evident::type_path};
use crate::facts::{ImportKind, SymbolKind};

/// Words before parentheses that call nothing.
const KEYWORDS: &[&str] = &[
    "and", "as", "assert", "async", "await", "class", "def", "del", "elif", "else", "except", "for", "from",
    "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "raise", "return", "while",
    "with", "yield",
];

impl Walk<'_> {
    pub(super) fn step_python(&mut self, at: usize) -> usize {
        let is_inside = self.inside_until > 0 && at <= self.inside_until;
        let begins_line = !is_inside && self.tokens.begins_line(at);
        if begins_line {
            let column = self.tokens.column(at);
            while self.scopes.last().is_some_and(|scope| scope.column >= column) {
                self.close(at);
            }
        }
        match self.tokens.mark(at) {
            b'(' | b'[' | b'{' => {
                self.inside_until = self.inside_until.max(self.tokens.past(at) - 1);
                return at + 1;
            }
            b'@' if begins_line => {
                self.decorated.get_or_insert(at);
                return at + 1;
            }
            b'=' if !is_inside => {
                self.python_assignment(at);
                return at + 1;
            }
            _ => {}
        }
        let begins_statement =
            begins_line || (!is_inside && matches!(self.tokens.mark_before(at), b';' | b':'));
        match self.tokens.word(at) {
            "" => at + 1,
            "def" | "class" if self.tokens.is_word(at + 1) && !is_inside => self.python_definition(at),
            "import" if begins_statement => self.python_import(at),
            "from" if begins_statement => self.python_from(at),
            name => {
                if self.tokens.mark(at + 1) == b'(' && !KEYWORDS.contains(&name) {
                    self.call(at);
                }
                at + 1
            }
        }
    }

    fn python_definition(&mut self, at: usize) -> usize {
        let (name, is_class) = (self.tokens.word(at + 1), self.tokens.word(at) == "class");
        let kind = if is_class { SymbolKind::Class } else { SymbolKind::Function };
        let keyword = self.first_of(at, &["async"]);
        let column = self.tokens.column(keyword);
        let first = self.decorated.take().unwrap_or(keyword);
        if !self.open(&Found { kind, name, owner: None, first, last: OPEN }) {
            return at + 2;
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.column = column;
        }
        let list = if self.tokens.mark(at + 2) == b'[' { self.tokens.past(at + 2) } else { at + 2 };
        let close = self.tokens.past(list) - 1;
        if self.tokens.mark(list) == b'(' && is_class {
            self.python_bases(list + 1, close);
        } else if self.tokens.mark(list) == b'(' {
            self.typed_list(list + 1, close, false);
        }
        at + 2
    }

    fn python_bases(&mut self, from: usize, until: usize) {
        let of = self.opened();
        for (first, last) in self.parts(from, until) {
            let is_keyword = self.tokens.mark(first + 1) == b'=' || !self.tokens.is_word(first);
            if !is_keyword && let Some(name) = type_path(self.tokens.span(first, last)) {
                self.add_ancestor(&of, name, false, first);
            }
        }
    }

    /// `name = Type(…)`, `self.name = Type(…)`.
    fn python_assignment(&mut self, at: usize) {
        let Some(first) = self.path_before(at) else { return };
        let begins = self.tokens.begins_line(first) || self.tokens.mark_before(first) == b';';
        if begins && let Some(found) = self.made_type(at + 1) {
            self.remember_receiver(self.tokens.span(first, at - 1), found);
        }
    }

    /// The token after the last one of this logical line.
    fn python_line_end(&self, from: usize) -> usize {
        let mut at = from;
        for _ in 0..AHEAD {
            if at >= self.tokens.len() || self.tokens.begins_line(at) || self.tokens.mark(at) == b';' {
                break;
            }
            at = self.tokens.past(at);
        }
        at.min(self.tokens.len())
    }

    /// `import a.b as c, d`
    fn python_import(&mut self, at: usize) -> usize {
        let end = self.python_line_end(at + 1);
        for (first, last) in self.parts(at + 1, end) {
            let name = self.path_end(first);
            let path = self.tokens.span(first, name);
            let local = if name + 2 == last { self.tokens.word(last) } else { path };
            self.add_import(ImportKind::Named, path, "", local, at);
        }
        end
    }

    /// `from .a import b as c, d` and `from a import *`
    fn python_from(&mut self, at: usize) -> usize {
        let end = self.python_line_end(at + 1);
        let Some(import) = (at + 1..end.min(at + 64)).find(|place| self.tokens.word(*place) == "import")
        else {
            return at + 1;
        };
        if import == at + 1 {
            return at + 1;
        }
        let module: String = self.tokens.span(at + 1, import - 1).split_whitespace().collect();
        let (mut from, mut until) = (import + 1, end);
        if self.tokens.mark(from) == b'*' {
            self.add_import(ImportKind::All, &module, "", "", at);
            return end;
        }
        if self.tokens.mark(from) == b'(' {
            until = self.tokens.past(from) - 1;
            from += 1;
        }
        for (first, last) in self.parts(from, until) {
            let item = self.tokens.word(first);
            let local = if self.tokens.word(first + 1) == "as" { self.tokens.word(last) } else { item };
            if !item.is_empty() {
                self.add_import(ImportKind::Named, &module, item, local, at);
            }
        }
        end
    }
}
