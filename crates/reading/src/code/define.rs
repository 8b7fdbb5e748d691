//! Definitions and what they descend from.

use super::{Body, DEEPEST, Language, OPEN, Scope, Walk, evident::type_path};
use crate::facts::{Ancestor, Definition, LONGEST_NAME, SymbolKind};

/// A definition that has been found.
pub(super) struct Found<'a, 'o> {
    pub(super) kind: SymbolKind,
    pub(super) name: &'a str,
    /// The type that a method belongs to, when that is not around it.
    pub(super) owner: Option<&'o str>,
    /// Its first token.
    pub(super) first: usize,
    /// Its last token, or [`OPEN`].
    pub(super) last: usize,
}

impl<'a> Walk<'a> {
    /// Adds a definition and opens its scope; says whether it did.
    pub(super) fn open(&mut self, found: &Found<'a, '_>) -> bool {
        let name = found.name.trim_matches(['"', '\'', '`']);
        if name.is_empty()
            || name.len() > LONGEST_NAME
            || self.scopes.len() >= DEEPEST
            || !self.has_room(self.facts.definitions.len())
        {
            self.facts.is_cut |= self.scopes.len() >= DEEPEST;
            return false;
        }
        let separator = self.language.separator();
        let around = self.scopes.last().map_or("", |scope| &scope.prefix);
        let names = [around, found.owner.unwrap_or_default(), name];
        let qualified = names.into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>().join(separator);
        // Names that grow with the depth of nesting would take the square of the text.
        if qualified.len() > LONGEST_NAME {
            self.facts.is_cut = true;
            return false;
        }
        let in_type =
            found.owner.is_some() || self.scopes.last().is_some_and(|scope| scope.body == Body::Type);
        let kind = match found.kind {
            SymbolKind::Function if in_type => SymbolKind::Method,
            SymbolKind::Method if !in_type => SymbolKind::Function,
            kind => kind,
        };
        let (parent, place) = (self.definition(), self.facts.definitions.len() as u32);
        let last = if found.last == OPEN { found.first } else { found.last };
        let (start, end) = (self.tokens.get(found.first), self.tokens.get(last));
        let (Some(start), Some(end)) = (start.copied(), end.copied()) else { return false };
        self.facts.definitions.push(Definition {
            kind,
            name: name.to_owned(),
            qualified: qualified.clone(),
            parent,
            bytes: start.start..end.end,
            lines: (start.line, end.line),
        });
        let is_mixin = kind == SymbolKind::Module && self.language == Language::Ruby;
        let holds_members = (kind.is_type() && kind != SymbolKind::Type) || is_mixin;
        let own_type = match found.owner {
            Some(owner) => Some(owner.to_owned()),
            None => holds_members.then(|| qualified.clone()),
        };
        let body = match kind {
            _ if holds_members => Body::Type,
            SymbolKind::Module => Body::Module,
            _ => Body::Code,
        };
        self.scopes.push(Scope {
            until: found.last,
            column: start.column,
            body,
            definition: Some(place),
            is_definition: true,
            prefix: qualified,
            own_type,
            ..Scope::default()
        });
        true
    }

    /// Opens a scope that is no definition of its own.
    pub(super) fn open_plain(&mut self, until: usize, body: Body) {
        if self.scopes.len() >= DEEPEST {
            self.facts.is_cut = true;
            return;
        }
        let prefix = self.scopes.last().map(|scope| scope.prefix.clone()).unwrap_or_default();
        let definition = self.definition();
        self.scopes.push(Scope { until, body, definition, prefix, ..Scope::default() });
    }

    /// The qualified name of the definition that was opened last.
    pub(super) fn opened(&self) -> String {
        self.scopes.last().map(|scope| scope.prefix.clone()).unwrap_or_default()
    }

    /// The types that are named between commas from one token up to another one.
    pub(super) fn ancestors(
        &mut self,
        of: &str,
        from: usize,
        until: usize,
        implements: impl Fn(&str) -> bool,
    ) {
        for (first, last) in self.parts(from, until) {
            if let Some(name) = type_path(self.tokens.span(first, last)) {
                let implements = implements(&name);
                self.add_ancestor(of, name, implements, first);
            }
        }
    }

    pub(super) fn add_ancestor(&mut self, of: &str, name: String, implements: bool, at: usize) {
        if name.is_empty() || of.is_empty() || !self.has_room(self.facts.ancestors.len()) {
            return;
        }
        let line = self.tokens.line(at);
        self.facts.ancestors.push(Ancestor { of: of.to_owned(), name, implements, line });
    }

    /// The first of the words before this place that belong to a definition.
    pub(super) fn first_of(&self, at: usize, modifiers: &[&str]) -> usize {
        let mut first = at;
        for _ in 0..16 {
            let Some(before) = first.checked_sub(1) else { break };
            if modifiers.contains(&self.tokens.word(before)) {
                first = before;
            } else if self.tokens.mark(before) == b')'
                && let Some(open) = self.tokens.mate(before).filter(|open| *open > 0)
                && modifiers.contains(&self.tokens.word(open - 1))
            {
                // `pub(crate)`
                first = open - 1;
            } else if self.tokens.is_text(before) && before > 0 && self.tokens.word(before - 1) == "extern" {
                first = before - 1;
            } else {
                break;
            }
        }
        first
    }
}
