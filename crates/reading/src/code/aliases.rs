//! Types that are defined by naming another type.

use super::{AHEAD, Body, Walk, define::Found, tokens::mark};
use crate::facts::SymbolKind;

impl Walk<'_> {
    /// Opens the definition of a type that is written up to its last token. What it names is read on.
    pub(super) fn open_alias(&mut self, name: usize, first: usize, last: usize) {
        let name = self.tokens.word(name);
        self.open(&Found { kind: SymbolKind::Type, name, owner: None, first, last });
    }

    /// `type Name = …;` outside of types, whose own ones are details of them.
    pub(super) fn rust_alias(&mut self, at: usize, first: usize) -> usize {
        if self.body() != Body::Type
            && let Some(last) = self.find(at + 2, b";")
        {
            self.open_alias(at + 1, first, last);
        }
        at + 2
    }

    /// `type Name = …`, with parameters or without, which may end with its line.
    pub(super) fn script_alias(&mut self, at: usize, first: usize) -> usize {
        let equals = match self.tokens.mark(at + 2) {
            b'<' => self.tokens.past_angles(at + 2, 200),
            _ => Some(at + 2),
        };
        if let Some(equals) = equals.filter(|equals| self.tokens.mark(*equals) == b'=') {
            let last = self.script_alias_end(equals + 1);
            self.open_alias(at + 1, first, last);
        }
        at + 2
    }

    /// The last token of a type that begins at this place.
    fn script_alias_end(&self, from: usize) -> usize {
        let mut at = from;
        for _ in 0..AHEAD {
            if at >= self.tokens.len() || matches!(self.tokens.mark(at), b'}' | b')' | b']') {
                break;
            }
            if self.tokens.mark(at) == b';' {
                return at;
            }
            if at > from && self.tokens.begins_line(at) && !self.goes_on(at) {
                break;
            }
            at = self.tokens.past(at);
        }
        at.saturating_sub(1).max(from)
    }

    /// Whether a type goes on with this token, which begins a line.
    fn goes_on(&self, at: usize) -> bool {
        let joins = |mark: u8| {
            matches!(
                mark,
                b'|' | b'&' | b'?' | b':' | b',' | b'.' | b'=' | b'<' | mark::FAT_ARROW | mark::OPERATOR
            )
        };
        let leads = ["extends", "keyof", "typeof", "readonly", "infer", "is", "unique"];
        joins(self.tokens.mark(at))
            || self.tokens.mark(at) == b'>'
            || joins(self.tokens.mark_before(at))
            || leads[..1].contains(&self.tokens.word(at))
            || leads.contains(&self.tokens.word_before(at))
    }
}
