//! Java and C#.

use super::{AHEAD, Body, Language, Walk, define::Found, tokens::mark, uses::looks_like_type};
use crate::facts::{ImportKind, SymbolKind};

const MODIFIERS: &[&str] = &[
    "abstract",
    "async",
    "const",
    "default",
    "extern",
    "file",
    "final",
    "fixed",
    "internal",
    "native",
    "new",
    "non",
    "override",
    "partial",
    "private",
    "protected",
    "public",
    "readonly",
    "ref",
    "required",
    "sealed",
    "static",
    "strictfp",
    "synchronized",
    "transient",
    "unsafe",
    "virtual",
    "volatile",
];

/// Words before parentheses that call nothing, and before names that name no type.
const KEYWORDS: &[&str] = &[
    "assert",
    "await",
    "base",
    "break",
    "case",
    "catch",
    "checked",
    "default",
    "do",
    "else",
    "finally",
    "fixed",
    "for",
    "foreach",
    "from",
    "goto",
    "if",
    "in",
    "instanceof",
    "is",
    "lock",
    "new",
    "out",
    "ref",
    "return",
    "select",
    "sizeof",
    "super",
    "switch",
    "synchronized",
    "this",
    "throw",
    "try",
    "typeof",
    "unchecked",
    "using",
    "when",
    "where",
    "while",
    "yield",
    "and",
    "or",
    "not",
    "stackalloc",
    "with",
];

/// Types of the languages themselves, and words in the place of one.
const OWN_TYPES: &[&str] = &[
    "boolean", "bool", "byte", "char", "decimal", "double", "dynamic", "float", "int", "long", "object",
    "sbyte", "short", "string", "uint", "ulong", "ushort", "void",
];

impl Walk<'_> {
    pub(super) fn step_java(&mut self, at: usize) -> usize {
        match self.body() {
            Body::Code => self.java_code(at),
            Body::Type | Body::Module => self.java_member(at),
        }
    }

    /// A member of a type, or something at the top of the file.
    fn java_member(&mut self, at: usize) -> usize {
        let mut place = at;
        // Attributes and annotations.
        for _ in 0..64 {
            match self.tokens.mark(place) {
                b'[' if self.language == Language::CSharp => place = self.tokens.past(place),
                b'@' if self.tokens.word(place + 1) != "interface" => place = self.past_annotation(place),
                _ => break,
            }
        }
        let first = place;
        while MODIFIERS.contains(&self.tokens.word(place)) && place < first + 16 {
            // `new` hides a member, unless a value is made.
            place += 1;
        }
        // `record` and `file` are names as well.
        let is_named = self.tokens.is_word(place + 1);
        match self.tokens.word(place) {
            "package" if self.language == Language::Java => self.java_package(place),
            "import" if self.language == Language::Java => self.java_import(place),
            "using" | "global" if self.language == Language::CSharp => self.c_sharp_using(place),
            "namespace" if is_named => self.c_sharp_namespace(place),
            "class" if is_named => self.java_type(place, at, SymbolKind::Class),
            "interface" if is_named => self.java_type(place, at, SymbolKind::Interface),
            "enum" if is_named => self.java_type(place, at, SymbolKind::Enum),
            "struct" if is_named => self.java_type(place, at, SymbolKind::Struct),
            "record" if is_named && self.is_record(place) => self.java_type(place, at, SymbolKind::Class),
            _ if self.tokens.mark(place) == b'@' => self.java_type(place + 1, at, SymbolKind::Interface),
            _ => self.java_declaration(place, at),
        }
    }

    /// The place after `@Name` or `@Name(…)`.
    fn past_annotation(&self, at: usize) -> usize {
        let end = self.path_end(at + 1) + 1;
        if self.tokens.mark(end) == b'(' { self.tokens.past(end) } else { end }
    }

    fn is_record(&self, at: usize) -> bool {
        let is_kind = matches!(self.tokens.word(at + 1), "struct" | "class") && self.tokens.is_word(at + 2);
        is_kind || matches!(self.tokens.mark(at + 2), b'(' | b'<' | b'{' | b':')
    }

    fn java_package(&mut self, at: usize) -> usize {
        let end = self.path_end(at + 1);
        self.facts.package = self.tokens.span(at + 1, end).split_whitespace().collect();
        end + 2
    }

    fn java_import(&mut self, at: usize) -> usize {
        let begin = at + 1 + usize::from(self.tokens.word(at + 1) == "static");
        let end = self.path_end(begin);
        let path: String = self.tokens.span(begin, end).split_whitespace().collect();
        if self.tokens.mark(end + 1) == b'.' && self.tokens.mark(end + 2) == b'*' {
            self.add_import(ImportKind::All, &path, "", "", at);
            return end + 4;
        }
        match path.rsplit_once('.') {
            Some((module, item)) => self.add_import(ImportKind::Named, module, item, item, at),
            None => self.add_import(ImportKind::Named, &path, "", &path, at),
        }
        end + 2
    }

    fn c_sharp_using(&mut self, at: usize) -> usize {
        let begin =
            (at..at + 3).find(|place| !matches!(self.tokens.word(*place), "global" | "using" | "static"));
        let begin = begin.unwrap_or(at + 1);
        let Some(end) = self.find(begin, b";") else { return at + 1 };
        if self.tokens.mark(begin + 1) == b'=' {
            let path: String = self.tokens.span(begin + 2, end - 1).split_whitespace().collect();
            let (module, item) = path.rsplit_once('.').unwrap_or((&path, ""));
            self.add_import(ImportKind::Named, module, item, self.tokens.word(begin), at);
        } else if self.tokens.is_word(begin) && end > begin {
            let path: String = self.tokens.span(begin, end - 1).split_whitespace().collect();
            self.add_import(ImportKind::All, &path, "", "", at);
        }
        end + 1
    }

    fn c_sharp_namespace(&mut self, at: usize) -> usize {
        let end = self.path_end(at + 1);
        let name = self.tokens.span(at + 1, end);
        if self.tokens.mark(end + 1) == b'{' {
            let last = self.tokens.past(end + 1) - 1;
            self.open(&Found { kind: SymbolKind::Module, name, owner: None, first: at, last });
        } else if self.facts.package.is_empty() {
            self.facts.package = name.split_whitespace().collect();
        }
        end + 2
    }

    fn java_type(&mut self, at: usize, first: usize, kind: SymbolKind) -> usize {
        let name = at + 1 + usize::from(matches!(self.tokens.word(at + 1), "struct" | "class"));
        let kind = if self.tokens.word(at + 1) == "struct" { SymbolKind::Struct } else { kind };
        let Some(body) = self.find(name + 1, b"{;") else { return at + 1 };
        let last = self.tokens.past(body) - 1;
        if !self.open(&Found { kind, name: self.tokens.word(name), owner: None, first, last }) {
            return name + 1;
        }
        self.java_ancestors(name + 1, body, kind);
        if let Some(list) = self.find(name + 1, b"(").filter(|list| *list < body) {
            // A record's fields are written like parameters.
            self.java_parameters(list + 1, self.tokens.past(list) - 1, true);
        }
        if self.tokens.mark(body) == b';' {
            return body + 1;
        }
        if kind == SymbolKind::Enum && self.language == Language::Java {
            return self.java_constants(body + 1, last);
        }
        if kind == SymbolKind::Enum { last } else { body + 1 }
    }

    /// The members of an enumeration of Java come after its constants.
    fn java_constants(&mut self, from: usize, last: usize) -> usize {
        let end = self.find(from, b";").filter(|end| *end < last);
        end.map_or(last, |end| end + 1)
    }

    fn java_ancestors(&mut self, from: usize, body: usize, kind: SymbolKind) {
        let of = self.opened();
        let is_c_sharp = self.language == Language::CSharp;
        let is_clause = |place: usize| {
            matches!(self.tokens.word(place), "extends" | "implements" | "permits" | "where")
                || (is_c_sharp && self.tokens.mark(place) == b':')
        };
        let mut clauses = Vec::new();
        let mut at = from;
        while at < body {
            if is_clause(at) {
                clauses.push(at);
            }
            at = match self.tokens.mark(at) {
                b'<' => self.tokens.past_angles(at, 200).unwrap_or(at + 1),
                _ => self.tokens.past(at),
            };
        }
        for (place, clause) in clauses.iter().enumerate() {
            let end = clauses.get(place + 1).copied().unwrap_or(body);
            let word = self.tokens.word(*clause);
            if matches!(word, "permits" | "where") {
                break;
            }
            // By convention the names of interfaces begin with an I and another capital.
            let is_interface_name = |name: &str| {
                let mut letters = name.rsplit('.').next().unwrap_or(name).chars();
                letters.next() == Some('I') && letters.next().is_some_and(char::is_uppercase)
            };
            let is_interface = kind == SymbolKind::Interface;
            self.ancestors(&of, clause + 1, end, |name| {
                word == "implements" || (is_c_sharp && !is_interface && is_interface_name(name))
            });
        }
    }

    /// A method, a field or a property.
    fn java_declaration(&mut self, at: usize, first: usize) -> usize {
        match self.tokens.mark(at) {
            b'{' => {
                // An initialiser.
                self.open_plain(self.tokens.past(at) - 1, Body::Code);
                return at + 1;
            }
            b'}' | b';' => return at + 1,
            _ => {}
        }
        // Type parameters before the type.
        let begin = if self.tokens.mark(at) == b'<' {
            self.tokens.past_angles(at, 200).unwrap_or(at + 1)
        } else {
            at
        };
        let Some(sign) = self.java_sign(begin) else { return at + 1 };
        match self.tokens.mark(sign) {
            b'(' if sign > begin => self.java_method(begin, sign, first),
            b'{' if self.language == Language::CSharp && sign > begin => {
                // A property: its accessors are code.
                self.remember_declared(begin, sign - 1, true);
                self.open_plain(self.tokens.past(sign) - 1, Body::Code);
                sign + 1
            }
            b'=' | mark::FAT_ARROW | b';' if sign > begin => {
                self.remember_declared(begin, sign - 1, true);
                let end = self.find(sign, b";").unwrap_or(sign);
                if end > sign {
                    self.open_plain(end, Body::Code);
                }
                sign + 1
            }
            b'{' => {
                self.open_plain(self.tokens.past(sign) - 1, Body::Code);
                sign + 1
            }
            _ => sign + 1,
        }
    }

    /// The mark that tells what a declaration is; types with their arguments are passed.
    fn java_sign(&self, from: usize) -> Option<usize> {
        let mut at = from;
        for _ in 0..AHEAD {
            match self.tokens.get(at)?.mark {
                b'(' if self.tokens.is_word(at.wrapping_sub(1)) || self.tokens.mark(at - 1) == b'>' => {
                    return Some(at);
                }
                b'=' | b'{' | b';' | b'}' | mark::FAT_ARROW => return Some(at),
                b'<' => at = self.tokens.past_angles(at, 200).unwrap_or(at + 1),
                b')' | b']' => return None,
                _ => at = self.tokens.past(at),
            }
        }
        None
    }

    fn java_method(&mut self, begin: usize, list: usize, first: usize) -> usize {
        let name = self.generic_name(list);
        let close = self.tokens.past(list) - 1;
        let is_typed = name > begin
            && self.tokens.mark(name - 1) != b'.'
            && !KEYWORDS.contains(&self.tokens.word_before(name));
        let is_constructor =
            name == begin && self.own_type().is_some_and(|own| own.ends_with(self.tokens.word(name)));
        if !is_typed && !is_constructor {
            // A statement at the top of a file, or a macro that we do not know.
            let end = self.find(list, b";{").unwrap_or(list);
            self.open_plain(self.tokens.past(end) - 1, Body::Code);
            return begin;
        }
        let Some(sign) = self.find(close + 1, &[b'{', b';', mark::FAT_ARROW, b'=']) else { return list + 1 };
        let last = match self.tokens.mark(sign) {
            b'{' => self.tokens.past(sign) - 1,
            b';' => sign,
            _ => self.find(sign + 1, b";").unwrap_or(sign),
        };
        if self.tokens.mark_before(name) == b'~' {
            return sign;
        }
        let found =
            Found { kind: SymbolKind::Method, name: self.tokens.word(name), owner: None, first, last };
        if !self.open(&found) {
            return list + 1;
        }
        self.java_parameters(list + 1, close, false);
        if self.language == Language::Java {
            (begin..name).chain(list..close).for_each(|place| self.java_mention(place));
        }
        close + 1
    }

    /// The name before parentheses, with type parameters between them or not.
    fn generic_name(&self, list: usize) -> usize {
        let mut at = list - 1;
        let mut depth = 0usize;
        for _ in 0..64 {
            match self.tokens.mark(at) {
                b'>' => depth += 1,
                b'<' => depth = depth.saturating_sub(1),
                _ if depth == 0 => return at,
                _ => {}
            }
            if at == 0 {
                break;
            }
            at -= 1;
        }
        list - 1
    }

    fn java_parameters(&mut self, from: usize, until: usize, is_field: bool) {
        for (first, last) in self.parts(from, until) {
            let value = (first..=last).find(|place| self.tokens.mark(*place) == b'=');
            let last = value.filter(|value| *value > first).map_or(last, |value| value - 1);
            self.remember_declared(first, last, is_field);
        }
    }

    /// `Type name`, from one token to another one, perhaps with modifiers and annotations before it.
    fn remember_declared(&mut self, first: usize, last: usize, is_field: bool) {
        let mut begin = first;
        for _ in 0..16 {
            let is_modifier = MODIFIERS.contains(&self.tokens.word(begin))
                || matches!(self.tokens.word(begin), "in" | "out" | "this" | "params" | "scoped" | "event");
            match self.tokens.mark(begin) {
                _ if is_modifier => begin += 1,
                b'[' => begin = self.tokens.past(begin),
                b'@' => begin = self.past_annotation(begin),
                _ => break,
            }
        }
        let is_typed = begin < last && self.tokens.is_word(begin) && self.tokens.is_word(last);
        if is_typed && self.tokens.mark(last - 1) != b'.' {
            self.remember_type(self.tokens.word(last), begin, last - 1, is_field);
            if self.language == Language::Java {
                (begin..last).for_each(|place| self.java_mention(place));
            }
        }
    }

    fn java_mention(&mut self, at: usize) {
        let is_other = matches!(self.tokens.mark(at + 1), b'.' | b'(') || self.tokens.mark_before(at) == b'@';
        if !is_other && self.tokens.word(at).starts_with(char::is_uppercase) {
            self.mention(at);
        }
    }

    fn java_code(&mut self, at: usize) -> usize {
        let name = self.tokens.word(at);
        match name {
            "" => {
                match self.tokens.mark(at) {
                    b'{' if self.blocks.contains(&at) => {
                        self.open_plain(self.tokens.past(at) - 1, Body::Type)
                    }
                    b'@' if self.tokens.is_word(at + 1) => return self.past_annotation(at),
                    _ => {}
                }
                return at + 1;
            }
            "new" if self.tokens.is_word(at + 1) => return self.java_new(at),
            "class" | "interface" | "enum" | "record" if self.begins_local_type(at) => {
                let kind = match name {
                    "interface" => SymbolKind::Interface,
                    "enum" => SymbolKind::Enum,
                    _ => SymbolKind::Class,
                };
                return self.java_type(at, at, kind);
            }
            _ => {}
        }
        let is_keyword = self.tokens.mark_before(at) != b'.' && KEYWORDS.contains(&name);
        let list = match self.tokens.mark(at + 1) {
            b'(' => Some(at + 1),
            b'<' if self.language == Language::CSharp => {
                self.tokens.past_angles(at + 1, 64).filter(|after| self.tokens.mark(*after) == b'(')
            }
            _ => None,
        };
        if let Some(list) = list.filter(|_| !is_keyword) {
            if self.is_local_function(at, list) {
                let close = self.tokens.past(list) - 1;
                let begin = at.saturating_sub(1);
                let sign = self.find(close + 1, &[b'{', b';', mark::FAT_ARROW]).unwrap_or(close);
                let last = match self.tokens.mark(sign) {
                    mark::FAT_ARROW => self.find(sign, b";").unwrap_or(sign),
                    _ => self.tokens.past(sign) - 1,
                };
                let found = Found { kind: SymbolKind::Function, name, owner: None, first: begin, last };
                if self.open(&found) {
                    self.java_parameters(list + 1, close, false);
                }
                return close + 1;
            }
            self.call(at);
            return at + 1;
        }
        if !is_keyword && self.begins_statement(at) {
            self.java_local(at);
        }
        if self.language == Language::Java && looks_like_type(name) {
            self.java_mention(at);
        }
        at + 1
    }

    fn begins_local_type(&self, at: usize) -> bool {
        let first = self.first_of(at, MODIFIERS);
        self.tokens.is_word(at + 1)
            && matches!(self.tokens.mark_before(first), b'{' | b'}' | b';')
            && matches!(self.tokens.mark(at + 2), b'{' | b'<' | b'(' | 0)
    }

    fn begins_statement(&self, at: usize) -> bool {
        let before = self.tokens.mark_before(at);
        matches!(before, b'{' | b'}' | b';' | b'(')
            || matches!(self.tokens.word_before(at), "final" | "using" | "const")
    }

    /// `int Sum(int x) { … }` within a method: a function of C#, or a method of a class without a name.
    fn is_local_function(&self, at: usize, list: usize) -> bool {
        let before = self.tokens.word_before(at);
        let is_typed = !before.is_empty() && !KEYWORDS.contains(&before)
            || matches!(self.tokens.mark_before(at), b'>' | b']' | b'?');
        let after = self.tokens.past(list);
        is_typed && at > 1 && matches!(self.tokens.mark(after), b'{' | mark::FAT_ARROW)
    }

    fn java_new(&mut self, at: usize) -> usize {
        let last = self.path_end(at + 1);
        let is_own = OWN_TYPES.contains(&self.tokens.word(last));
        if !is_own && self.tokens.mark(last + 1) != b'[' {
            self.construct(last);
        }
        let list = match self.tokens.mark(last + 1) {
            b'<' => self.tokens.past_angles(last + 1, 64).unwrap_or(last + 1),
            _ => last + 1,
        };
        let body = self.tokens.past(list);
        if self.language == Language::Java && self.tokens.mark(list) == b'(' && self.tokens.mark(body) == b'{'
        {
            // A class without a name.
            self.blocks.insert(body);
        }
        last + 1
    }

    /// `Type name = …`, `var name = new Type(…)`.
    fn java_local(&mut self, at: usize) {
        let mut end = self.path_end(at);
        for _ in 0..4 {
            match self.tokens.mark(end + 1) {
                b'<' => end = self.tokens.past_angles(end + 1, 64).map_or(end, |after| after - 1),
                b'[' if self.tokens.mark(end + 2) == b']' => end += 2,
                b'?' => end += 1,
                _ => break,
            }
        }
        let name = end + 1;
        let follows = self.tokens.mark(name + 1);
        let is_declared = self.tokens.is_word(name)
            && (matches!(follows, b'=' | b';' | b':' | b',' | b')') || self.tokens.word(name + 1) == "in");
        if !is_declared || KEYWORDS.contains(&self.tokens.word(name)) {
            return;
        }
        if self.tokens.word(at) == "var" {
            if let Some(found) = self.made_type(name + 2) {
                self.remember(self.tokens.word(name), found, false);
            }
        } else {
            self.remember_type(self.tokens.word(name), at, end, false);
        }
    }
}
