//! JavaScript and TypeScript.

use super::{AHEAD, Body, Language, Walk, define::Found, evident::type_path, tokens::mark};
use crate::facts::{ImportKind, SymbolKind};

const MODIFIERS: &[&str] = &[
    "abstract",
    "async",
    "const",
    "declare",
    "default",
    "export",
    "get",
    "let",
    "override",
    "private",
    "protected",
    "public",
    "readonly",
    "set",
    "static",
    "var",
];

/// Words before parentheses that call nothing.
const KEYWORDS: &[&str] = &[
    "async",
    "await",
    "case",
    "catch",
    "delete",
    "do",
    "else",
    "for",
    "function",
    "if",
    "import",
    "in",
    "instanceof",
    "new",
    "of",
    "return",
    "super",
    "switch",
    "throw",
    "typeof",
    "void",
    "while",
    "with",
    "yield",
];

impl<'a> Walk<'a> {
    pub(super) fn step_script(&mut self, at: usize) -> usize {
        let tokens = &self.tokens;
        let is_member = tokens.mark_before(at) == b'.';
        let is_named = tokens.is_word(at + 1);
        let is_typed = self.language == Language::TypeScript;
        match tokens.word(at) {
            "" => at + 1,
            _ if is_member => self.script_name(at),
            "function" => self.script_function(at),
            "class" if is_named || tokens.mark(at + 1) == b'{' => self.script_type(at, SymbolKind::Class),
            "interface" if is_typed && is_named => self.script_type(at, SymbolKind::Interface),
            "enum" if is_typed && is_named => self.script_type(at, SymbolKind::Enum),
            "type" if is_typed && is_named => self.script_alias(at, self.first_of(at, MODIFIERS)),
            "namespace" | "module" if is_typed && (is_named || tokens.is_text(at + 1)) => {
                self.script_namespace(at)
            }
            "import" => self.script_import(at),
            "export" => self.script_export(at),
            "const" | "let" | "var" => self.script_variable(at),
            "new" => self.script_new(at),
            _ => self.script_name(at),
        }
    }

    fn script_function(&mut self, at: usize) -> usize {
        let name = at + 1 + usize::from(self.tokens.mark(at + 1) == b'*');
        let list = self.script_list(name);
        if let (true, Some(list)) = (self.tokens.is_word(name), list)
            && let Some(body) = self.script_body(self.tokens.past(list))
        {
            let (first, last) = (self.first_of(at, MODIFIERS), self.tokens.past(body) - 1);
            let (kind, word) = (SymbolKind::Function, self.tokens.word(name));
            if self.open(&Found { kind, name: word, owner: None, first, last }) {
                self.typed_list(list + 1, self.tokens.past(list) - 1, false);
            }
            return list;
        }
        at + 1
    }

    /// The parentheses after a name and its type parameters.
    fn script_list(&self, name: usize) -> Option<usize> {
        let list = match self.tokens.mark(name + 1) {
            b'<' if self.language == Language::TypeScript => self.tokens.past_angles(name + 1, 200)?,
            _ => name + 1,
        };
        (self.tokens.mark(list) == b'(').then_some(list)
    }

    /// The brace of a function, after its parameters and the type of its result.
    fn script_body(&self, after: usize) -> Option<usize> {
        if self.tokens.mark(after) == b'{' {
            return Some(after);
        }
        if self.tokens.mark(after) != b':' || self.language != Language::TypeScript {
            return None;
        }
        let mut at = after + 1;
        for _ in 0..200 {
            let is_type = matches!(self.tokens.mark(at - 1), b':' | b'|' | b'&' | b'<' | b',');
            match self.tokens.mark(at) {
                b'{' if !is_type => return Some(at),
                b';' | b'=' | b')' | b']' | b'}' | mark::FAT_ARROW => return None,
                _ => at = self.tokens.past(at),
            }
        }
        None
    }

    fn script_type(&mut self, at: usize, kind: SymbolKind) -> usize {
        let Some(body) = self.script_type_body(at + 1) else { return at + 1 };
        let is_named = self.tokens.is_word(at + 1) && self.tokens.word(at + 1) != "extends";
        let name = match (is_named, self.tokens.mark_before(at)) {
            (true, _) => self.tokens.word(at + 1),
            // `const Name = class { … }`
            (false, b'=') if at > 1 => self.tokens.word(at - 2),
            _ => "",
        };
        let (first, last) = (self.first_of(at, MODIFIERS), self.tokens.past(body) - 1);
        if !self.open(&Found { kind, name, owner: None, first, last }) {
            self.open_plain(last, Body::Type);
            return body + 1;
        }
        let of = self.opened();
        let mut place = at + 2;
        if self.tokens.mark(place) == b'<' {
            place = self.tokens.past_angles(place, 200).unwrap_or(place);
        }
        while place < body {
            let word = self.tokens.word(place);
            if !matches!(word, "extends" | "implements") {
                place = self.tokens.past(place);
                continue;
            }
            let end = (place + 1..body).find(|end| self.tokens.word(*end) == "implements").unwrap_or(body);
            let implements = word == "implements";
            self.ancestors(&of, place + 1, end, |_| implements);
            place = end;
        }
        if kind == SymbolKind::Enum { last } else { body + 1 }
    }

    /// The brace of a type; those of its type arguments are passed.
    fn script_type_body(&self, from: usize) -> Option<usize> {
        let mut at = from;
        for _ in 0..AHEAD {
            match self.tokens.mark(at) {
                b'{' => return Some(at),
                b'<' => at = self.tokens.past_angles(at, 200).unwrap_or(at + 1),
                b';' | b')' | b'}' | b'=' => return None,
                _ => at = self.tokens.past(at),
            }
        }
        None
    }

    fn script_namespace(&mut self, at: usize) -> usize {
        let end = self.path_end(at + 1);
        if self.tokens.mark(end + 1) != b'{' {
            return at + 1;
        }
        let (first, last) = (self.first_of(at, MODIFIERS), self.tokens.past(end + 1) - 1);
        let name = self.tokens.span(at + 1, end);
        self.open(&Found { kind: SymbolKind::Module, name, owner: None, first, last });
        end + 2
    }

    /// `import a, { b as c } from "x"`, `import * as a from "x"`, `import "x"`, `import("x")`.
    fn script_import(&mut self, at: usize) -> usize {
        if self.tokens.mark(at + 1) == b'(' {
            self.add_import(ImportKind::Named, self.quoted(at + 2), "", "", at);
            return at + 2;
        }
        if self.tokens.is_text(at + 1) {
            self.add_import(ImportKind::Named, self.quoted(at + 1), "", "", at);
            return at + 2;
        }
        let Some(from) = self.script_source(at + 1) else { return at + 1 };
        let source = self.quoted(from + 1);
        let begin =
            at + 1 + usize::from(self.tokens.word(at + 1) == "type" && self.tokens.word(at + 2) != "from");
        for (first, last) in self.parts(begin, from) {
            match self.tokens.mark(first) {
                b'{' => self.script_names(first, source, ImportKind::Named, at),
                b'*' => self.add_import(ImportKind::Named, source, "", self.tokens.word(last), at),
                _ => self.add_import(ImportKind::Named, source, "default", self.tokens.word(first), at),
            }
        }
        from + 2
    }

    /// The word `from` before the name of a module.
    fn script_source(&self, begin: usize) -> Option<usize> {
        let mut at = begin;
        for _ in 0..64 {
            if self.tokens.word(at) == "from" && self.tokens.is_text(at + 1) {
                return Some(at);
            }
            let goes_on = self.tokens.is_word(at) || matches!(self.tokens.mark(at), b'{' | b'*' | b',');
            if !goes_on {
                return None;
            }
            at = self.tokens.past(at);
        }
        None
    }

    fn script_names(&mut self, open: usize, source: &str, kind: ImportKind, at: usize) {
        for (first, last) in self.parts(open + 1, self.tokens.past(open) - 1) {
            let is_type =
                self.tokens.word(first) == "type" && self.tokens.word(first + 1) != "as" && first < last;
            let name = first + usize::from(is_type);
            let item = self.tokens.word(name);
            let local = if self.tokens.word(name + 1) == "as" { self.tokens.word(last) } else { item };
            if !item.is_empty() {
                self.add_import(kind, source, item, local, at);
            }
        }
    }

    /// `export { a } from "x"`, `export * from "x"`; anything else that is exported is read as usual.
    fn script_export(&mut self, at: usize) -> usize {
        let begin = at + 1 + usize::from(self.tokens.word(at + 1) == "type");
        if !matches!(self.tokens.mark(begin), b'{' | b'*') {
            return at + 1;
        }
        let Some(from) = self.script_source(begin) else { return at + 1 };
        let source = self.quoted(from + 1);
        match (self.tokens.mark(begin), self.tokens.word(begin + 1)) {
            (b'{', _) => self.script_names(begin, source, ImportKind::Reexport, at),
            (_, "as") => self.add_import(ImportKind::Reexport, source, "", self.tokens.word(begin + 2), at),
            _ => self.add_import(ImportKind::ReexportAll, source, "", "", at),
        }
        from + 2
    }

    /// `const name = …`: a function, a module that is required, or a value whose type may be evident.
    fn script_variable(&mut self, at: usize) -> usize {
        let name = at + 1;
        let after = self.tokens.past(name);
        let equals = match self.tokens.mark(after) {
            b':' | b'!' => self.find(after, b"=;"),
            _ => Some(after),
        };
        let Some(equals) = equals.filter(|equals| self.tokens.mark(*equals) == b'=') else { return at + 1 };
        if self.tokens.word(equals + 1) == "require" && self.tokens.is_text(equals + 3) {
            self.script_require(name, equals + 3);
        }
        if !self.tokens.is_word(name) {
            return at + 1;
        }
        self.script_value(name, equals, self.first_of(name, MODIFIERS), false);
        if self.scopes.last().is_some_and(|scope| scope.until >= name && scope.until != super::OPEN) {
            return equals + 1;
        }
        at + 2
    }

    /// A name with a value: a function is a definition, and anything else may have an evident type.
    fn script_value(&mut self, name: usize, equals: usize, first: usize, is_field: bool) {
        let word = self.tokens.word(name);
        if let Some((list, last)) = self.script_function_value(equals + 1) {
            let last = last + usize::from(self.tokens.mark(last + 1) == b';');
            let kind = SymbolKind::Function;
            if self.open(&Found { kind, name: word, owner: None, first, last })
                && self.tokens.mark(list) == b'('
            {
                self.typed_list(list + 1, self.tokens.past(list) - 1, false);
            }
            return;
        }
        let said = (equals > name + 2).then(|| type_path(self.tokens.span(name + 2, equals - 1))).flatten();
        if let Some(found) = said.or_else(|| self.made_type(equals + 1)) {
            self.remember(word, found, is_field);
        }
    }

    /// The parameters and the last token of a function that is a value.
    fn script_function_value(&self, from: usize) -> Option<(usize, usize)> {
        let begin = from + usize::from(self.tokens.word(from) == "async");
        if self.tokens.word(begin) == "function" {
            let list = self.find(begin + 1, b"(")?;
            let body = self.script_body(self.tokens.past(list))?;
            return Some((list, self.tokens.past(body) - 1));
        }
        let list = match self.tokens.mark(begin) {
            b'<' => self.tokens.past_angles(begin, 64)?,
            _ => begin,
        };
        let after = self.tokens.past(list);
        let arrow = match self.tokens.mark(after) {
            mark::FAT_ARROW if self.tokens.is_word(list) || self.tokens.mark(list) == b'(' => after,
            b':' if self.tokens.mark(list) == b'(' => self.find_arrow(after + 1)?,
            _ => return None,
        };
        Some((list, self.script_arrow_end(arrow + 1)))
    }

    fn find_arrow(&self, from: usize) -> Option<usize> {
        let mut at = from;
        for _ in 0..64 {
            match self.tokens.mark(at) {
                mark::FAT_ARROW => return Some(at),
                b';' | b'=' | b')' | b']' | b'}' => return None,
                _ => at = self.tokens.past(at),
            }
        }
        None
    }

    /// The last token of what stands after an arrow.
    fn script_arrow_end(&self, from: usize) -> usize {
        if self.tokens.mark(from) == b'{' {
            return self.tokens.past(from) - 1;
        }
        let mut at = from;
        for _ in 0..AHEAD {
            let ends =
                at >= self.tokens.len() || matches!(self.tokens.mark(at), b',' | b';' | b')' | b']' | b'}');
            let begins_statement = at > from
                && self.tokens.begins_line(at)
                && self.tokens.is_word(at)
                && (self.tokens.is_word(at - 1)
                    || matches!(self.tokens.mark(at - 1), b')' | b']' | b'}' | 0));
            if ends || begins_statement {
                break;
            }
            at = self.tokens.past(at);
        }
        at.saturating_sub(1).max(from)
    }

    fn script_require(&mut self, name: usize, source: usize) {
        let module = self.quoted(source);
        if self.tokens.mark(name) != b'{' {
            return self.add_import(ImportKind::Named, module, "", self.tokens.word(name), source);
        }
        for (first, last) in self.parts(name + 1, self.tokens.past(name) - 1) {
            let item = self.tokens.word(first);
            let local = if self.tokens.mark(first + 1) == b':' { self.tokens.word(last) } else { item };
            self.add_import(ImportKind::Named, module, item, local, source);
        }
    }

    fn script_new(&mut self, at: usize) -> usize {
        if !self.tokens.is_word(at + 1) {
            return at + 1;
        }
        let last = self.path_end(at + 1);
        self.construct(last);
        last + 1
    }

    /// A name that is no keyword of a definition: a method, a field, a call, or nothing.
    fn script_name(&mut self, at: usize) -> usize {
        let name = self.tokens.word(at);
        let before = self.tokens.mark_before(at);
        let in_type = self.body() == Body::Type;
        if before != b'.' && !KEYWORDS.contains(&name) {
            let is_member = in_type && self.begins_member(at);
            if let Some(next) = self.script_method(at, is_member) {
                return next;
            }
            if let Some(next) = self.script_field(at, is_member) {
                return next;
            }
        }
        let is_keyword = before != b'.' && KEYWORDS.contains(&name);
        let list = if is_keyword { None } else { self.script_list(at) };
        match list {
            Some(list) => {
                if name == "require" && self.tokens.is_text(list + 1) && before != b'.' {
                    let is_told = self.tokens.mark_before(at) == b'=' && self.is_declared(at - 1);
                    if !is_told {
                        self.add_import(ImportKind::Named, self.quoted(list + 1), "", "", at);
                    }
                }
                self.call(at);
            }
            None if self.language == Language::TypeScript => {
                let is_value = before == b'.' || matches!(self.tokens.mark(at + 1), b'.' | b'(' | b'=');
                if !is_value {
                    self.mention_type(at);
                }
            }
            None => {}
        }
        at + 1
    }

    /// Whether the mark `=` at this place belongs to a declaration that has been read.
    fn is_declared(&self, equals: usize) -> bool {
        let name = match equals.checked_sub(1) {
            Some(name) => self.tokens.mate(name).unwrap_or(name),
            None => return false,
        };
        matches!(self.tokens.word_before(name), "const" | "let" | "var")
    }

    /// Whether a member of a type may begin here.
    fn begins_member(&self, at: usize) -> bool {
        let first = self.first_of(at, MODIFIERS);
        let before = self.tokens.mark_before(first);
        let is_after_line =
            self.tokens.begins_line(first) && !matches!(before, b'.' | b'=' | b'(' | b'+' | b'?' | b':');
        matches!(before, b'{' | b'}' | b';' | b',' | b'*') || is_after_line
    }

    fn script_method(&mut self, at: usize, is_member: bool) -> Option<usize> {
        let list = self.script_list(at)?;
        let close = self.tokens.past(list) - 1;
        let before = self.tokens.mark_before(at);
        let may_be_typed = is_member
            || matches!(before, b'{' | b',')
            || matches!(self.tokens.word_before(at), "get" | "set" | "async");
        let body = match self.tokens.mark(close + 1) {
            b'{' => Some(close + 1),
            b':' if may_be_typed => self.script_body(close + 1),
            _ => None,
        };
        let is_signature = is_member && self.language == Language::TypeScript;
        if body.is_none() && !is_signature {
            return None;
        }
        let last = match body {
            Some(body) => self.tokens.past(body) - 1,
            None => self.script_line_end(close + 1),
        };
        let first = self.first_of(at, MODIFIERS);
        let found = Found { kind: SymbolKind::Method, name: self.tokens.word(at), owner: None, first, last };
        if self.open(&found) {
            self.typed_list(list + 1, close, false);
            self.script_properties(list + 1, close);
        }
        Some(list)
    }

    /// Parameters of a constructor that are fields: `private shelf: Shelf`.
    fn script_properties(&mut self, from: usize, until: usize) {
        for (first, last) in self.parts(from, until) {
            let is_field = matches!(self.tokens.word(first), "private" | "public" | "protected" | "readonly");
            let colon = (first..=last.min(first + 4)).find(|place| self.tokens.mark(*place) == b':');
            if let (true, Some(colon)) = (is_field, colon.filter(|colon| *colon < last)) {
                self.remember_type(self.tokens.word(colon - 1), colon + 1, last, true);
            }
        }
    }

    /// The last token of a member without a body.
    fn script_line_end(&self, from: usize) -> usize {
        let mut at = from;
        for _ in 0..AHEAD {
            let ends =
                at >= self.tokens.len() || matches!(self.tokens.mark(at), b';' | b'}' | b',' | b')' | b'=');
            if ends || (at > from && self.tokens.begins_line(at)) {
                break;
            }
            at = self.tokens.past(at);
        }
        if self.tokens.mark(at) == b';' { at } else { at.saturating_sub(1) }
    }

    /// Whether `name: (…) => …` is an entry of an object with a function, and not a member of a type.
    fn is_function_entry(&self, at: usize, last: usize) -> bool {
        if self.tokens.mark(last) == b'}' {
            return true;
        }
        let is_listed = self.tokens.mark_before(at) == b',' || self.tokens.mark(last + 1) == b',';
        let arrow = (at..last).rev().find(|place| self.tokens.mark(*place) == mark::FAT_ARROW);
        let result = arrow.map_or("", |arrow| self.tokens.word(arrow + 1));
        let is_type = matches!(
            result,
            "void" | "string" | "number" | "boolean" | "any" | "unknown" | "never" | "Promise"
        );
        is_listed && !is_type
    }

    /// A field of a class, or an entry of an object, whose value may be a function.
    fn script_field(&mut self, at: usize, is_member: bool) -> Option<usize> {
        let mut sign = at + 1;
        if is_member && matches!(self.tokens.mark(sign), b'?' | b'!') {
            sign += 1;
        }
        match self.tokens.mark(sign) {
            b':' if is_member => {
                let end = self.script_line_end(sign + 1);
                let last = end - usize::from(self.tokens.mark(end) == b';');
                if last > sign {
                    self.remember_type(self.tokens.word(at), sign + 1, last, true);
                }
                if self.tokens.mark(last + 1) == b'=' && self.script_function_value(last + 2).is_some() {
                    self.script_value(at, last + 1, self.first_of(at, MODIFIERS), true);
                }
                Some(sign + 1)
            }
            b'=' if is_member => {
                self.script_value(at, sign, self.first_of(at, MODIFIERS), true);
                Some(sign + 1)
            }
            b':' if matches!(self.tokens.mark_before(at), b'{' | b',') => {
                let (list, last) = self.script_function_value(sign + 1)?;
                if self.language == Language::TypeScript && !self.is_function_entry(at, last) {
                    return None;
                }
                let (kind, name) = (SymbolKind::Function, self.tokens.word(at));
                self.open(&Found { kind, name, owner: None, first: at, last });
                Some(list)
            }
            _ => None,
        }
    }
}
