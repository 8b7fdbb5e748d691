//! The tokens of a text, with the brackets that belong together.

use std::cell::Cell;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name or keyword.
    Word,
    /// A number.
    Number,
    /// A string, or a part of one around code.
    Text,
    /// A mark; see [`Token::mark`].
    Mark,
    /// A whole line of the preprocessor.
    Directive,
}

/// Codes of marks that have more than one character. Others are their character.
pub(super) mod mark {
    /// `::`
    pub const PATH: u8 = 1;
    /// `->`
    pub const ARROW: u8 = 2;
    /// `=>`
    pub const FAT_ARROW: u8 = 3;
    /// `:=`
    pub const ASSIGN: u8 = 4;
    /// Anything else: `==`, `+=`, `..`
    pub const OPERATOR: u8 = 5;
}

/// A piece of the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) start: u32,
    pub(super) end: u32,
    /// From 1.
    pub(super) line: u32,
    /// Bytes between the beginning of the line and the token.
    pub(super) column: u16,
    pub(super) kind: Kind,
    /// The character or code of a mark; 0 for anything else.
    pub(super) mark: u8,
}

const NONE: u32 = u32::MAX;
/// Open brackets that a closing one of another kind may leave open.
const FORGIVEN: usize = 8;

/// All tokens of a text.
pub(super) struct Tokens<'a> {
    pub(super) text: &'a str,
    list: Vec<Token>,
    /// For each bracket the other one.
    mates: Vec<u32>,
    open: Vec<u32>,
    /// Tokens before which the line goes on, though a new one has begun.
    joined: Vec<u32>,
    /// Tokens that were looked at to find where something ends.
    passed: Cell<u64>,
}

/// Tokens that may be looked at ahead for each token of a text, and for a text at all.
const PASSED_PER_TOKEN: u64 = 128;
const LEAST_PASSED: u64 = 1 << 20;

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let list = Vec::with_capacity(text.len() / 5);
        Self { text, list, mates: Vec::new(), open: Vec::new(), joined: Vec::new(), passed: Cell::new(0) }
    }

    pub(super) fn push(&mut self, token: Token) {
        let place = self.list.len() as u32;
        self.list.push(token);
        self.mates.push(NONE);
        match token.mark {
            b'(' | b'[' | b'{' => self.open.push(place),
            b')' | b']' | b'}' => self.close(place, token.mark),
            _ => {}
        }
    }

    fn close(&mut self, place: u32, mark: u8) {
        let opening = match mark {
            b')' => b'(',
            b']' => b'[',
            _ => b'{',
        };
        let found = self.open.iter().rev().take(FORGIVEN);
        let above = found.into_iter().position(|open| self.list[*open as usize].mark == opening);
        if let Some(above) = above {
            self.open.truncate(self.open.len() - above);
            if let Some(open) = self.open.pop() {
                self.mates[open as usize] = place;
                self.mates[place as usize] = open;
            }
        }
    }

    /// The next token belongs to the present line.
    pub(super) fn continued(&mut self) {
        self.joined.push(self.list.len() as u32);
    }

    /// What is needed only while tokens are added is given back.
    pub(super) fn finish(mut self) -> Self {
        self.open = Vec::new();
        self
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn last(&self) -> Option<&Token> {
        self.list.last()
    }

    pub(super) fn get(&self, at: usize) -> Option<&Token> {
        self.list.get(at)
    }

    pub(super) fn text_of(&self, token: &Token) -> &'a str {
        self.text.get(token.start as usize..token.end as usize).unwrap_or_default()
    }

    /// The text of a token; empty past the end.
    pub(super) fn text(&self, at: usize) -> &'a str {
        self.list.get(at).map_or("", |token| self.text_of(token))
    }

    /// The text from one token to another one, both with it.
    pub(super) fn span(&self, first: usize, last: usize) -> &'a str {
        match (self.list.get(first), self.list.get(last)) {
            (Some(first), Some(last)) => {
                self.text.get(first.start as usize..last.end as usize).unwrap_or_default()
            }
            _ => "",
        }
    }

    /// The name or keyword at this place; empty for anything else.
    pub(super) fn word(&self, at: usize) -> &'a str {
        match self.list.get(at) {
            Some(token) if token.kind == Kind::Word => self.text_of(token),
            _ => "",
        }
    }

    pub(super) fn is_word(&self, at: usize) -> bool {
        self.list.get(at).is_some_and(|token| token.kind == Kind::Word)
    }

    pub(super) fn is_text(&self, at: usize) -> bool {
        self.list.get(at).is_some_and(|token| token.kind == Kind::Text)
    }

    /// The mark at this place; 0 for anything else.
    pub(super) fn mark(&self, at: usize) -> u8 {
        self.list.get(at).map_or(0, |token| token.mark)
    }

    /// The mark before this place; 0 for anything else.
    pub(super) fn mark_before(&self, at: usize) -> u8 {
        if at == 0 { 0 } else { self.mark(at - 1) }
    }

    /// The word before this place; empty for anything else.
    pub(super) fn word_before(&self, at: usize) -> &'a str {
        if at == 0 { "" } else { self.word(at - 1) }
    }

    pub(super) fn line(&self, at: usize) -> u32 {
        self.list.get(at).or(self.list.last()).map_or(1, |token| token.line)
    }

    pub(super) fn column(&self, at: usize) -> u16 {
        self.list.get(at).map_or(0, |token| token.column)
    }

    /// The bracket that belongs to the one at this place.
    pub(super) fn mate(&self, at: usize) -> Option<usize> {
        self.mates.get(at).copied().filter(|mate| *mate != NONE).map(|mate| mate as usize)
    }

    /// The place after a bracket and all that stands within it, or after the token itself.
    pub(super) fn past(&self, at: usize) -> usize {
        self.passed.set(self.passed.get() + 1);
        self.mate(at).filter(|mate| *mate > at).unwrap_or(at) + 1
    }

    /// Whether so much was looked at ahead that the text is made to take long: each search ends soon, but one from every
    /// token adds up.
    pub(super) fn is_tiring(&self) -> bool {
        self.passed.get() > LEAST_PASSED + PASSED_PER_TOKEN * self.list.len() as u64
    }

    /// Whether a line begins with this token.
    pub(super) fn begins_line(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1) else { return true };
        self.line(before) < self.line(at) && self.joined.binary_search(&(at as u32)).is_err()
    }

    /// The place after `<…>`, if the mark at this place opens types.
    pub(super) fn past_angles(&self, at: usize, most: usize) -> Option<usize> {
        let (mut depth, mut place) = (0usize, at);
        for _ in 0..most {
            self.passed.set(self.passed.get() + 1);
            let token = self.list.get(place)?;
            match (token.kind, token.mark) {
                (_, b'<') => depth += 1,
                (_, b'>') => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(place + 1);
                    }
                }
                (Kind::Mark, b'(' | b'[') => {
                    place = self.past(place);
                    continue;
                }
                (Kind::Word | Kind::Number | Kind::Text, _) => {}
                (_, mark::PATH | mark::ARROW | mark::FAT_ARROW) => {}
                (_, b',' | b'.' | b'*' | b'&' | b'?' | b':' | b'=' | b'|' | b'+' | b'\'') => {}
                (_, b'{') if depth > 0 => {
                    place = self.past(place);
                    continue;
                }
                _ => return None,
            }
            place += 1;
        }
        None
    }
}
