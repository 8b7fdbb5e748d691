//! Ruby.

use super::{
    Body, OPEN, Scope, Walk,
    define::Found,
    evident::type_path,
    tokens::{Kind, mark},
};
use crate::facts::{ImportKind, SymbolKind, UseKind};

/// What an `end` closes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Opened {
    /// The innermost scope.
    Scope,
    /// A block of statements.
    Block,
    /// A loop, whose `do` opens nothing further while it stands on this line.
    Loop(u32),
}

/// Blocks within blocks at most.
const DEEPEST_BLOCKS: usize = 10_000;

const KEYWORDS: &[&str] = &[
    "alias",
    "and",
    "begin",
    "break",
    "case",
    "class",
    "def",
    "defined?",
    "do",
    "else",
    "elsif",
    "end",
    "ensure",
    "false",
    "for",
    "if",
    "in",
    "module",
    "next",
    "nil",
    "not",
    "or",
    "redo",
    "rescue",
    "retry",
    "return",
    "self",
    "super",
    "then",
    "true",
    "undef",
    "unless",
    "until",
    "when",
    "while",
    "yield",
    "__FILE__",
    "__dir__",
    "private",
    "public",
    "protected",
];

impl Walk<'_> {
    pub(super) fn step_ruby(&mut self, at: usize) -> usize {
        if self.tokens.mark(at) == b'=' {
            self.ruby_assignment(at);
            return at + 1;
        }
        let name = self.tokens.word(at);
        if name.is_empty() || self.is_symbol(at) {
            return at + 1;
        }
        if self.tokens.mark_before(at) == b'.' {
            self.ruby_member(at);
            return at + 1;
        }
        match name {
            "class" | "module" => self.ruby_type(at),
            "def" => self.ruby_method(at),
            "begin" | "case" => self.ruby_block(at, Opened::Block),
            "do" => {
                let is_of_loop = self.ends.last() == Some(&Opened::Loop(self.tokens.line(at)));
                if is_of_loop {
                    self.ends.pop();
                }
                self.ruby_block(at, Opened::Block)
            }
            "while" | "until" | "for" if self.begins_ruby_statement(at) => {
                self.ruby_block(at, Opened::Loop(self.tokens.line(at)))
            }
            "if" | "unless" if self.begins_ruby_statement(at) => self.ruby_block(at, Opened::Block),
            "end" => {
                if self.ends.pop() == Some(Opened::Scope) {
                    self.close(at + 1);
                }
                at + 1
            }
            _ if KEYWORDS.contains(&name) => at + 1,
            _ => self.ruby_name(at),
        }
    }

    fn ruby_block(&mut self, at: usize, opened: Opened) -> usize {
        if self.ends.len() < DEEPEST_BLOCKS {
            self.ends.push(opened);
        }
        at + 1
    }

    /// `:name` and `name:` are no names of things.
    fn is_symbol(&self, at: usize) -> bool {
        let Some(token) = self.tokens.get(at) else { return false };
        let touches = |place: usize, is_end: bool| {
            self.tokens.get(place).is_some_and(|other| {
                other.mark == b':' && if is_end { other.end == token.start } else { other.start == token.end }
            })
        };
        // In `a ? b : c` the colon touches nothing.
        (at > 0 && touches(at - 1, true)) || (touches(at + 1, false) && self.tokens.mark_before(at) != b'?')
    }

    /// Whether a statement begins here; `if` and `while` after one belong to it.
    fn begins_ruby_statement(&self, at: usize) -> bool {
        if self.tokens.begins_line(at) {
            return true;
        }
        let before = self.tokens.get(at.wrapping_sub(1));
        match before.map(|token| (token.kind, token.mark)) {
            Some((Kind::Mark, mark)) => !matches!(mark, b')' | b']' | b'}'),
            Some((Kind::Word, _)) => {
                matches!(
                    self.tokens.word(at - 1),
                    "then" | "else" | "do" | "begin" | "and" | "or" | "not" | "ensure"
                )
            }
            _ => false,
        }
    }

    fn ruby_type(&mut self, at: usize) -> usize {
        if self.tokens.mark(at + 1) == b'<' && self.tokens.mark(at + 2) == b'<' {
            // `class << self`: its methods are those of the type around it.
            let definition = self.definition();
            let prefix = self.opened();
            let own_type = self.own_type().map(str::to_owned);
            self.ruby_block(at, Opened::Scope);
            self.scopes.push(Scope {
                until: OPEN,
                body: Body::Type,
                definition,
                prefix,
                own_type,
                ..Scope::default()
            });
            return at + 4;
        }
        let name = at + 1 + usize::from(self.tokens.mark(at + 1) == mark::PATH);
        let end = self.path_end(name);
        if !self.tokens.is_word(name) {
            return at + 1;
        }
        let is_class = self.tokens.word(at) == "class";
        let kind = if is_class { SymbolKind::Class } else { SymbolKind::Module };
        let found = Found { kind, name: self.tokens.span(name, end), owner: None, first: at, last: OPEN };
        if !self.open(&found) {
            return self.ruby_block(end, Opened::Block);
        }
        self.ruby_block(at, Opened::Scope);
        let parent = end + 2 + usize::from(self.tokens.mark(end + 2) == mark::PATH);
        if is_class && self.tokens.mark(end + 1) == b'<' && self.tokens.is_word(parent) {
            let last = self.path_end(parent);
            let (of, ancestor) = (self.opened(), self.tokens.span(parent, last).to_owned());
            self.add_ancestor(&of, ancestor, false, at);
            return last + 1;
        }
        end + 1
    }

    fn ruby_method(&mut self, at: usize) -> usize {
        let mut name = at + 1;
        if self.tokens.mark(name + 1) == b'.' && self.tokens.is_word(name) {
            name += 2;
        }
        let (mut text, mut after) = (self.tokens.text(name), name + 1);
        let touches = |place: usize| {
            self.tokens
                .get(place)
                .zip(self.tokens.get(place + 1))
                .is_some_and(|(one, other)| one.end == other.start)
        };
        if self.tokens.is_word(name) && self.tokens.mark(after) == b'=' && touches(name) {
            // `def name=(value)`
            text = self.tokens.span(name, after);
            after += 1;
        } else if matches!(self.tokens.mark(name), mark::OPERATOR | b'<' | b'>' | b'=' | b'!') {
            while touches(after - 1)
                && matches!(self.tokens.mark(after), b'<' | b'>' | b'=' | b'~' | mark::OPERATOR)
            {
                after += 1;
            }
            text = self.tokens.span(name, after - 1);
        } else if self.tokens.mark(name) == b'[' {
            after = self.tokens.past(name);
            after += usize::from(self.tokens.mark(after) == b'=' && touches(after - 1));
            text = self.tokens.span(name, after - 1);
        }
        let list = after;
        if self.tokens.mark(list) == b'(' {
            after = self.tokens.past(list);
        }
        // `def name(…) = value` has no end.
        let is_short = self.tokens.mark(after) == b'=';
        let last = if is_short { self.ruby_line_end(after) } else { OPEN };
        let is_open =
            self.open(&Found { kind: SymbolKind::Method, name: text, owner: None, first: at, last });
        if !is_short {
            self.ruby_block(at, if is_open { Opened::Scope } else { Opened::Block });
        }
        list
    }

    fn ruby_line_end(&self, from: usize) -> usize {
        let mut at = from + 1;
        for _ in 0..super::AHEAD {
            if at >= self.tokens.len() || self.tokens.begins_line(at) {
                break;
            }
            at = self.tokens.past(at);
        }
        at.saturating_sub(1)
    }

    /// `name = Type.new(…)`, `@name = Type.new`.
    fn ruby_assignment(&mut self, at: usize) {
        let Some(name) = at.checked_sub(1).filter(|name| self.tokens.is_word(*name)) else { return };
        if let Some(found) = self.made_type(at + 1) {
            self.remember_receiver(self.tokens.word(name), found);
        }
    }

    /// `receiver.name`, with arguments or without.
    fn ruby_member(&mut self, at: usize) {
        if self.tokens.word(at) == "new"
            && let Some(first) = self.path_before(at - 1).filter(|first| *first < at - 1)
            && type_path(self.tokens.span(first, at - 2)).is_some()
        {
            return self.add_use(UseKind::Construct, self.tokens.word(at - 2), "", at);
        }
        self.call(at);
    }

    fn ruby_name(&mut self, at: usize) -> usize {
        let name = self.tokens.word(at);
        let is_command = self.is_command(at);
        let is_call = self.tokens.mark(at + 1) == b'(' && !self.has_space_after(at);
        if !is_command && !is_call {
            return at + 1;
        }
        let argument = at + 1 + usize::from(is_call);
        match name {
            "require" | "require_relative" | "load" | "autoload" => {
                let path = (argument..argument + 4).find(|place| self.tokens.is_text(*place));
                // A name that is put together at run time cannot be known.
                if let Some(path) = path.filter(|path| !self.tokens.text(*path).ends_with("#{")) {
                    let is_relative = name == "require_relative";
                    let kind = if is_relative { ImportKind::File } else { ImportKind::Named };
                    self.add_import(kind, self.quoted(path), "", "", at);
                }
                at + 1
            }
            "include" | "extend" | "prepend" if self.body() == Body::Type => {
                let of = self.own_type().unwrap_or_default().to_owned();
                let mut place = argument;
                while self.tokens.word(place).starts_with(char::is_uppercase) {
                    let last = self.path_end(place);
                    self.add_ancestor(&of, self.tokens.span(place, last).to_owned(), true, at);
                    place = last + 1;
                    if self.tokens.mark(place) != b',' {
                        break;
                    }
                    place += 1;
                }
                place.max(at + 1)
            }
            _ => {
                self.call(at);
                at + 1
            }
        }
    }

    fn has_space_after(&self, at: usize) -> bool {
        self.tokens.get(at).zip(self.tokens.get(at + 1)).is_some_and(|(one, next)| one.end < next.start)
    }

    /// Whether a method is called without parentheses: `puts "text"`, `attr_reader :name`.
    fn is_command(&self, at: usize) -> bool {
        let name = self.tokens.word(at);
        let is_name = name.starts_with(|first: char| first.is_lowercase() || first == '_');
        let next = at + 1;
        if !is_name || self.tokens.begins_line(next) || !self.has_space_after(at) {
            return false;
        }
        match self.tokens.get(next).map(|token| (token.kind, token.mark)) {
            Some((Kind::Text, _)) => true,
            Some((Kind::Word, _)) => {
                let word = self.tokens.word(next);
                !KEYWORDS.contains(&word)
                    || matches!(word, "self" | "nil" | "true" | "false" | "super" | "not")
            }
            Some((_, b':')) => self.tokens.is_word(next + 1) && !self.has_space_after(next),
            Some((_, mark::PATH)) => self.tokens.is_word(next + 1) && !self.has_space_after(next),
            _ => false,
        }
    }
}
