//! C and C++.

use super::{
    AHEAD, Body, Language, Walk,
    define::Found,
    evident::type_path,
    tokens::{Kind, mark},
};
use crate::facts::{ImportKind, SymbolKind};

/// Words before parentheses that call nothing, and before names that name no type.
const KEYWORDS: &[&str] = &[
    "alignas",
    "alignof",
    "asm",
    "break",
    "case",
    "catch",
    "co_await",
    "co_return",
    "co_yield",
    "const_cast",
    "continue",
    "decltype",
    "default",
    "defined",
    "delete",
    "do",
    "dynamic_cast",
    "else",
    "for",
    "goto",
    "if",
    "new",
    "noexcept",
    "not",
    "operator",
    "reinterpret_cast",
    "requires",
    "return",
    "sizeof",
    "static_assert",
    "static_cast",
    "switch",
    "this",
    "throw",
    "try",
    "typeid",
    "typeof",
    "using",
    "while",
    "__asm__",
    "__asm",
    "offsetof",
    "_Static_assert",
    "__attribute__",
    "__declspec",
];

/// Words that may stand before the type of a declaration.
const QUALIFIERS: &[&str] = &[
    "const",
    "constexpr",
    "explicit",
    "extern",
    "friend",
    "inline",
    "mutable",
    "register",
    "static",
    "struct",
    "thread_local",
    "typedef",
    "typename",
    "union",
    "virtual",
    "volatile",
    "enum",
    "class",
    "consteval",
    "constinit",
];

/// Types of the languages themselves.
const OWN_TYPES: &[&str] = &[
    "auto", "bool", "char", "double", "float", "int", "long", "short", "signed", "size_t", "unsigned",
    "void", "wchar_t",
];

impl<'a> Walk<'a> {
    pub(super) fn step_c(&mut self, at: usize) -> usize {
        if self.tokens.get(at).is_some_and(|token| token.kind == Kind::Directive) {
            self.c_directive(at);
            return at + 1;
        }
        match self.body() {
            Body::Code => self.c_code(at),
            Body::Type | Body::Module => self.c_member(at),
        }
    }

    fn c_directive(&mut self, at: usize) {
        let line = self.tokens.text(at).trim_start_matches(['#', ' ', '\t']);
        if let Some(path) = line.strip_prefix("include") {
            let path = path.trim();
            let (kind, close) =
                if path.starts_with('<') { (ImportKind::SystemFile, '>') } else { (ImportKind::File, '"') };
            let named = path.get(1..).and_then(|path| path.split_once(close));
            if let Some((path, _)) = named {
                self.add_import(kind, path, "", "", at);
            }
        } else if let Some(macro_text) = line.strip_prefix("define") {
            // Only a macro with parameters is a function; its body is no code yet.
            let macro_text = macro_text.trim_start();
            let length = macro_text.find(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
            if let Some(length) = length.filter(|length| macro_text[*length..].starts_with('(')) {
                let name = &macro_text[..length];
                self.open(&Found { kind: SymbolKind::Function, name, owner: None, first: at, last: at });
            }
        }
    }

    /// Something at the top of a file or in the body of a class.
    fn c_member(&mut self, at: usize) -> usize {
        let mut place = at;
        for _ in 0..8 {
            let next = match (self.tokens.word(place), self.tokens.mark(place + 1)) {
                ("template", b'<') => self.tokens.past_angles(place + 1, AHEAD),
                ("typedef" | "inline" | "static" | "constexpr" | "const", _) => Some(place + 1),
                _ if self.tokens.mark(place) == b'[' && self.tokens.mark(place + 1) == b'[' => {
                    Some(self.tokens.past(place))
                }
                _ => None,
            };
            match next {
                Some(next) => place = next,
                None => break,
            }
        }
        match self.tokens.word(place) {
            "extern" if self.tokens.is_text(place + 1) && self.tokens.mark(place + 2) == b'{' => {
                self.open_plain(self.tokens.past(place + 2) - 1, Body::Module);
                place + 3
            }
            "namespace" => self.c_namespace(place, at),
            "using" | "static_assert" | "_Static_assert" => {
                self.find(place, b";").map_or(place + 1, |end| end + 1)
            }
            "public" | "private" | "protected" if self.tokens.mark(place + 1) == b':' => place + 2,
            "struct" | "class" | "union" | "enum" => match self.c_type(place, at) {
                Some(next) => next,
                None => self.c_declaration(place, at),
            },
            "" if matches!(self.tokens.mark(place), b';' | b'}' | b')') => place + 1,
            "" if self.tokens.mark(place) == b'{' => {
                self.open_plain(self.tokens.past(place) - 1, Body::Code);
                place + 1
            }
            _ => self.c_declaration(place, at),
        }
    }

    fn c_namespace(&mut self, at: usize, first: usize) -> usize {
        let Some(open) = self.find(at + 1, b"{;").filter(|open| self.tokens.mark(*open) == b'{') else {
            return self.find(at, b";").map_or(at + 1, |end| end + 1);
        };
        let last = self.tokens.past(open) - 1;
        let name =
            if self.tokens.is_word(at + 1) { self.tokens.span(at + 1, self.path_end(at + 1)) } else { "" };
        if !self.open(&Found { kind: SymbolKind::Module, name, owner: None, first, last }) {
            self.open_plain(last, Body::Module);
        }
        open + 1
    }

    /// A structure, class, union or enumeration with a body; `None` when it is only named.
    fn c_type(&mut self, at: usize, first: usize) -> Option<usize> {
        let kind = match self.tokens.word(at) {
            "class" => SymbolKind::Class,
            "enum" => SymbolKind::Enum,
            _ => SymbolKind::Struct,
        };
        let (mut name, mut place) = (None, at + 1);
        let open = loop {
            match (self.tokens.mark(place), self.tokens.word(place)) {
                (b'{', _) => break place,
                (b':', _) => {
                    break self.find(place + 1, b"{;").filter(|open| self.tokens.mark(*open) == b'{')?;
                }
                (b'[', _) | (b'(', _) => place = self.tokens.past(place),
                (b'<', _) => place = self.tokens.past_angles(place, 200)?,
                (mark::PATH, _) => place += 1,
                (_, "class" | "struct" | "final" | "alignas" | "__attribute__" | "__declspec") => place += 1,
                (_, "") => return None,
                _ => {
                    name = Some(place);
                    place += 1;
                }
            }
            if place > at + 40 {
                return None;
            }
        };
        let close = self.tokens.past(open) - 1;
        let is_alias = self.tokens.word(first) == "typedef";
        let after = (is_alias && self.tokens.is_word(close + 1)).then_some(close + 1);
        let last = after.map_or(close, |name| name + usize::from(self.tokens.mark(name + 1) == b';'));
        let named = name.or(after).map_or("", |name| self.tokens.word(name));
        if !self.open(&Found { kind, name: named, owner: None, first, last }) {
            let body = if kind == SymbolKind::Enum { Body::Code } else { Body::Type };
            self.open_plain(close, body);
            return Some(open + 1);
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.until = close;
        }
        if self.tokens.mark(place) == b':' && kind != SymbolKind::Enum {
            let of = self.opened();
            for (begin, end) in self.parts(place + 1, open) {
                let begin = (begin..=end).find(|base| {
                    !matches!(self.tokens.word(*base), "public" | "private" | "protected" | "virtual")
                });
                let base = begin.and_then(|begin| type_path(self.tokens.span(begin, end)));
                if let Some(base) = base {
                    self.add_ancestor(&of, base, false, begin.unwrap_or(end));
                }
            }
        }
        Some(if kind == SymbolKind::Enum { close } else { open + 1 })
    }

    /// A function, a variable or a field.
    fn c_declaration(&mut self, at: usize, first: usize) -> usize {
        let Some(sign) = self.c_sign(at) else { return at + 1 };
        match self.tokens.mark(sign) {
            b'(' if sign > first => self.c_function(at, sign, first),
            b'=' | b'[' | b',' => {
                self.c_remember(at, sign, self.body() == Body::Type);
                let end = self.find(sign, b";").unwrap_or(sign);
                if end > sign {
                    self.open_plain(end, Body::Code);
                }
                sign + 1
            }
            b';' => {
                self.c_remember(at, sign, self.body() == Body::Type);
                sign + 1
            }
            b':' => sign + 1,
            _ => {
                self.open_plain(self.tokens.past(sign) - 1, Body::Code);
                sign + 1
            }
        }
    }

    /// The mark that tells what a declaration is.
    fn c_sign(&self, from: usize) -> Option<usize> {
        let mut at = from;
        for _ in 0..AHEAD {
            let token = self.tokens.get(at)?;
            if token.kind == Kind::Directive {
                return None;
            }
            if self.tokens.word(at) == "operator" {
                return (at + 1..at + 6).find(|place| self.tokens.mark(*place) == b'(');
            }
            match token.mark {
                b'(' => {
                    let before = self.tokens.word_before(at);
                    if matches!(before, "__attribute__" | "__declspec" | "alignas" | "decltype" | "explicit")
                    {
                        at = self.tokens.past(at);
                        continue;
                    }
                    return Some(at);
                }
                b'=' | b';' | b'{' | b'}' | b',' => return Some(at),
                b'[' if at > from && self.tokens.is_word(at - 1) => return Some(at),
                b':' => return Some(at),
                b'<' if self.language == Language::Cpp && at > from && self.tokens.is_word(at - 1) => {
                    at = self.tokens.past_angles(at, 200).unwrap_or(at + 1);
                }
                b')' | b']' => return None,
                _ => at = self.tokens.past(at),
            }
        }
        None
    }

    fn c_function(&mut self, at: usize, sign: usize, first: usize) -> usize {
        let mut list = sign;
        // `operator()(…)`, and macros before the name: `EXPORT(int) name(…)`.
        for _ in 0..4 {
            let after = self.tokens.past(list);
            let is_macro = self.tokens.is_word(after)
                && self.tokens.mark(after + 1) == b'('
                && self.tokens.is_word(list - 1)
                && is_trailing(self.tokens.word(list - 1));
            let is_operator = self.tokens.word_before(list) == "operator" && self.tokens.mark(after) == b'(';
            if is_operator {
                list = after;
            } else if is_macro {
                list = after + 1;
            } else {
                break;
            }
        }
        let close = self.tokens.past(list) - 1;
        let Some(body) = self.c_body(close + 1) else {
            if let Some(end) = self.c_default(close + 1)
                && let Some((name, owner)) = self.c_name(at, list)
            {
                let kind = SymbolKind::Function;
                self.open(&Found { kind, name, owner: owner.as_deref(), first, last: end });
                return end + 1;
            }
            // A declaration without a body, or a macro.
            if list == at + 1 {
                self.call(at);
            }
            for place in at..close {
                self.c_mention(place, place + 1);
            }
            let is_macro = self.tokens.is_word(close + 1) && self.tokens.begins_line(close + 1);
            if is_macro || self.tokens.get(close + 1).is_some_and(|token| token.kind == Kind::Directive) {
                return close + 1;
            }
            return self.find(close, b";").map_or(close + 1, |end| end + 1);
        };
        let Some((name, owner)) = self.c_name(at, list) else {
            self.open_plain(self.tokens.past(body) - 1, Body::Code);
            return body + 1;
        };
        let (kind, last) = (SymbolKind::Function, self.tokens.past(body) - 1);
        if !self.open(&Found { kind, name, owner: owner.as_deref(), first, last }) {
            return body + 1;
        }
        for (begin, end) in self.parts(list + 1, close) {
            self.c_remember(begin, end + 1, false);
        }
        for place in at..list.saturating_sub(1) {
            self.c_mention(place, place + 1);
        }
        let Some(colon) = self.find(close + 1, b":").filter(|colon| *colon < body) else { return body + 1 };
        // What a constructor gives its fields is no call of them.
        let mut place = colon;
        while place < body {
            if self.tokens.mark(place) == b'(' {
                self.blocks.insert(place);
            }
            place = self.tokens.past(place);
        }
        colon + 1
    }

    /// The brace of a function, after its parameters.
    fn c_body(&self, from: usize) -> Option<usize> {
        let (mut at, mut has_arrow) = (from, self.tokens.mark(from) == mark::ARROW);
        for _ in 0..64 {
            match self.tokens.mark(at) {
                b'{' => return Some(at),
                b':' => return self.c_initialisers(at + 1),
                b'(' | b'[' => at = self.tokens.past(at),
                b'<' => at = self.tokens.past_angles(at, 200)?,
                b'&' | b'*' | mark::ARROW | mark::PATH => at += 1,
                0 if self.tokens.is_word(at) && (has_arrow || is_trailing(self.tokens.word(at))) => at += 1,
                _ => return None,
            }
            has_arrow |= self.tokens.mark(at) == mark::ARROW;
        }
        None
    }

    /// The end of `= default;` or `= delete;`.
    fn c_default(&self, from: usize) -> Option<usize> {
        let equals = self.find(from, b"={;,").filter(|equals| *equals < from + 8)?;
        let is_default = matches!(self.tokens.word(equals + 1), "default" | "delete");
        (is_default && self.tokens.mark(equals + 2) == b';').then_some(equals + 2)
    }

    /// The brace after the initialisers of a constructor: `: a(1), b{2} { … }`.
    fn c_initialisers(&self, from: usize) -> Option<usize> {
        let mut at = from;
        for _ in 0..AHEAD {
            while self.tokens.is_word(at) || self.tokens.mark(at) == mark::PATH {
                at += 1;
            }
            if self.tokens.mark(at) == b'<' {
                at = self.tokens.past_angles(at, 200)?;
            }
            if !matches!(self.tokens.mark(at), b'(' | b'{') {
                return None;
            }
            at = self.tokens.past(at);
            match self.tokens.mark(at) {
                b',' => at += 1,
                b'{' => return Some(at),
                _ => return None,
            }
        }
        None
    }

    /// The name of a function before its parameters, and the class that it belongs to.
    fn c_name(&self, at: usize, list: usize) -> Option<(&'a str, Option<String>)> {
        let operator =
            (at.max(list.saturating_sub(5))..list).find(|place| self.tokens.word(*place) == "operator");
        let name = match operator {
            Some(operator) => operator,
            None if self.tokens.is_word(list - 1) => list - 1,
            None => return None,
        };
        let begin = if self.tokens.mark_before(name) == b'~' { name - 1 } else { name };
        let text = match operator {
            Some(operator) => self.tokens.span(operator, list - 1),
            None => self.tokens.span(begin, name),
        };
        if KEYWORDS.contains(&text) {
            return None;
        }
        if self.tokens.mark_before(begin) != mark::PATH {
            return Some((text, None));
        }
        let first = self.path_before(begin - 1)?;
        let owner = without_arguments(self.tokens.span(first, begin.saturating_sub(2)));
        Some((text, Some(owner)))
    }

    /// `Type name` before a mark, with what stands around it.
    fn c_remember(&mut self, from: usize, end: usize, is_field: bool) {
        let mut begin = from;
        while QUALIFIERS.contains(&self.tokens.word(begin)) && begin < end {
            begin += 1;
        }
        let value = (begin..end).find(|place| self.tokens.mark(*place) == b'=').unwrap_or(end);
        let name = (begin..value).rev().find(|place| self.tokens.is_word(*place));
        let Some(name) = name.filter(|name| *name > begin && self.tokens.is_word(begin)) else {
            self.c_mention(begin, end);
            return;
        };
        self.remember_type(self.tokens.word(name), begin, name - 1, is_field);
        for place in begin..name {
            self.c_mention(place, end);
        }
    }

    /// Mentions the type at this place, when it is the last name of its path.
    fn c_mention(&mut self, at: usize, end: usize) {
        let name = self.tokens.word(at);
        let is_type = !name.is_empty()
            && at < end
            && !QUALIFIERS.contains(&name)
            && !OWN_TYPES.contains(&name)
            && !KEYWORDS.contains(&name)
            && !matches!(self.tokens.mark(at + 1), mark::PATH | b'(' | b',' | b')' | b'=' | b'[' | b';');
        if is_type {
            self.mention(at);
        }
    }

    fn c_code(&mut self, at: usize) -> usize {
        let name = self.tokens.word(at);
        match name {
            "" => return at + 1,
            "struct" | "union" | "enum" | "class" => {
                if let Some(next) = self.c_type(at, self.first_of(at, &["typedef"])) {
                    return next;
                }
            }
            "new" if self.tokens.is_word(at + 1) => {
                let begin = at + 1 + usize::from(self.tokens.word(at + 1) == "const");
                let last = self.path_end(begin);
                if !OWN_TYPES.contains(&self.tokens.word(last)) {
                    self.construct(last);
                }
                return last + 1;
            }
            _ => {}
        }
        if KEYWORDS.contains(&name) {
            return at + 1;
        }
        let list = match self.tokens.mark(at + 1) {
            b'(' => !self.blocks.contains(&(at + 1)),
            b'<' if self.language == Language::Cpp => {
                self.tokens.past_angles(at + 1, 48).is_some_and(|after| self.tokens.mark(after) == b'(')
            }
            _ => false,
        };
        let before = self.tokens.word_before(at);
        let is_declared = !before.is_empty() && !KEYWORDS.contains(&before) && !self.tokens.begins_line(at);
        if list && !is_declared && !OWN_TYPES.contains(&name) {
            self.call(at);
        } else if !list && self.begins_c_statement(at) {
            self.c_local(at);
        } else if !list && self.language == Language::Cpp && self.tokens.mark(at + 1) != mark::PATH {
            self.mention_type(at);
        }
        at + 1
    }

    fn begins_c_statement(&self, at: usize) -> bool {
        matches!(self.tokens.mark_before(at), b'{' | b'}' | b';' | b'(')
            || matches!(self.tokens.word_before(at), "const" | "static" | "constexpr" | "struct" | "union")
            || self.tokens.get(at.wrapping_sub(1)).is_some_and(|token| token.kind == Kind::Directive)
    }

    /// `Type name = …` within a function.
    fn c_local(&mut self, at: usize) {
        let mut end = self.path_end(at);
        if self.tokens.mark(end + 1) == b'<' {
            end = self.tokens.past_angles(end + 1, 48).map_or(end, |after| after - 1);
        }
        let mut name = end + 1;
        while matches!(self.tokens.mark(name), b'*' | b'&') || self.tokens.word(name) == "const" {
            name += 1;
        }
        let follows = matches!(self.tokens.mark(name + 1), b'=' | b';' | b',' | b'[' | b':' | b'{' | b')');
        let is_type =
            !OWN_TYPES.contains(&self.tokens.word(at)) && !QUALIFIERS.contains(&self.tokens.word(at));
        if self.tokens.is_word(name) && follows && is_type {
            self.remember_type(self.tokens.word(name), at, end, false);
            self.mention(self.path_end(at));
        } else if self.tokens.is_word(name)
            && is_type
            && self.tokens.mark(name + 1) == b'('
            && name == end + 1
        {
            self.remember_type(self.tokens.word(name), at, end, false);
        }
    }
}

/// Whether a word may stand between the parameters and the body of a function: a keyword, or a macro.
fn is_trailing(word: &str) -> bool {
    matches!(
        word,
        "const" | "noexcept" | "override" | "final" | "volatile" | "mutable" | "try" | "throw" | "requires"
    ) || word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        || word.starts_with("__")
}

/// A path without the arguments of its templates.
fn without_arguments(path: &str) -> String {
    let mut depth = 0usize;
    let kept = path.chars().filter(|letter| {
        match letter {
            '<' => depth += 1,
            '>' => {
                depth = depth.saturating_sub(1);
                return false;
            }
            _ => {}
        }
        depth == 0 && !letter.is_whitespace()
    });
    kept.collect()
}
