//! Calls, constructions and types that are mentioned.

use super::{
    Language, Walk,
    evident::type_path,
    tokens::{Kind, mark},
};
use crate::facts::{Use, UseKind};

/// Bytes of what stands before a called name at most; longer expressions say nothing about it.
const LONGEST_RECEIVER: usize = 120;
/// Names in a path at most.
const LONGEST_CHAIN: usize = 32;

impl<'a> Walk<'a> {
    /// The first token of the path of names that ends before this separator; `None` for any other expression.
    pub(super) fn path_before(&self, separator: usize) -> Option<usize> {
        let mut first = separator;
        for _ in 0..LONGEST_CHAIN {
            let before = first.checked_sub(1)?;
            if self.tokens.is_word(before) || self.is_tuple_field(before) {
                first = before;
            } else if self.tokens.mark(before) == b'>' && self.tokens.mark(separator) == mark::PATH {
                first = self.angles_before(before)?;
                if self.tokens.mark_before(first) == mark::PATH {
                    first -= 1;
                }
                continue;
            } else {
                return None;
            }
            match self.tokens.mark_before(first) {
                mark::ARROW if !self.has_arrows() => return Some(first),
                b'.' | mark::PATH | mark::ARROW => {
                    first -= 1;
                    if self.tokens.mark(first) == mark::PATH
                        && !first
                            .checked_sub(1)
                            .is_some_and(|name| self.tokens.is_word(name) || self.tokens.mark(name) == b'>')
                    {
                        return Some(first + 1);
                    }
                }
                _ => return Some(first),
            }
        }
        None
    }

    /// Whether `->` stands before members; in other languages it stands before results and bodies.
    const fn has_arrows(&self) -> bool {
        matches!(self.language, Language::C | Language::Cpp)
    }

    /// `self.0` is a field of a tuple.
    fn is_tuple_field(&self, at: usize) -> bool {
        let is_number = self.tokens.get(at).is_some_and(|token| token.kind == Kind::Number);
        is_number && self.language == Language::Rust && self.tokens.mark_before(at) == b'.'
    }

    /// The mark that opens the types which end here.
    fn angles_before(&self, close: usize) -> Option<usize> {
        let (mut depth, mut at) = (0usize, close);
        for _ in 0..LONGEST_CHAIN {
            match self.tokens.mark(at) {
                b'>' => depth += 1,
                b'<' => depth -= 1,
                b';' | b'{' | b'}' => return None,
                _ => {}
            }
            if depth == 0 {
                return Some(at);
            }
            at = at.checked_sub(1)?;
        }
        None
    }

    /// A call of the name at this place.
    pub(super) fn call(&mut self, at: usize) {
        let name = self.tokens.word(at);
        match self.tokens.mark_before(at) {
            b'.' => self.member_call(at),
            mark::ARROW if self.has_arrows() => self.member_call(at),
            mark::PATH if self.language == Language::Ruby => self.member_call(at),
            mark::PATH => {
                let Some(first) = self.path_before(at - 1) else { return };
                if at >= 2 && first < at - 1 {
                    self.add_use(UseKind::PathCall, name, self.tokens.span(first, at - 2), at);
                }
            }
            _ => {
                let is_type = self.language == Language::Python && name.starts_with(char::is_uppercase);
                self.add_use(if is_type { UseKind::Construct } else { UseKind::Call }, name, "", at);
            }
        }
    }

    fn member_call(&mut self, at: usize) {
        let separator = at - 1;
        let receiver = match self.path_before(separator) {
            Some(first) if first < separator => simple(self.tokens.span(first, separator - 1)),
            _ => "",
        };
        // `end.join` is called on what a block of Ruby gives.
        let receiver = match receiver {
            "end" if self.language == Language::Ruby => "",
            receiver => receiver,
        };
        self.add_use(UseKind::MemberCall, self.tokens.word(at), receiver, at);
    }

    /// The last name of the path that begins at this place.
    pub(super) fn path_end(&self, at: usize) -> usize {
        let mut last = at;
        for _ in 0..LONGEST_CHAIN {
            let is_joined = matches!(self.tokens.mark(last + 1), b'.' | mark::PATH);
            if !is_joined || !self.tokens.is_word(last + 2) {
                break;
            }
            last += 2;
        }
        last
    }

    /// A value of the type is made whose path ends with this name.
    pub(super) fn construct(&mut self, at: usize) {
        let name = self.tokens.word(at);
        if name == "Self" {
            return;
        }
        self.add_use(UseKind::Construct, name, "", at);
    }

    /// A type that is named. What is defined, constructed or inherited from is told elsewhere.
    pub(super) fn mention(&mut self, at: usize) {
        const EVERYWHERE: [&str; 9] =
            ["Self", "String", "Option", "Result", "Vec", "Some", "None", "Ok", "Err"];
        let name = self.tokens.word(at);
        if name.len() > 1 && !EVERYWHERE.contains(&name) {
            self.add_use(UseKind::Mention, name, "", at);
        }
    }

    /// Mentions the type whose path ends with a name that looks like one of a type.
    pub(super) fn mention_type(&mut self, at: usize) {
        if looks_like_type(self.tokens.word(at)) {
            self.mention(at);
        }
    }

    pub(super) fn add_use(&mut self, kind: UseKind, name: &'a str, receiver: &'a str, at: usize) {
        let is_name = name.chars().next().is_some_and(|first| first.is_alphabetic() || "_$".contains(first));
        if !is_name || name.len() > LONGEST_RECEIVER || receiver.len() > LONGEST_RECEIVER {
            return;
        }
        let from = self.definition();
        let key = (kind, from, name, receiver);
        if let Some(known) = self.known_uses.get(&key) {
            let count = &mut self.facts.uses[*known].count;
            *count = count.saturating_add(1);
            return;
        }
        if !self.has_room(self.facts.uses.len()) {
            return;
        }
        let (receiver, receiver_type) = match kind {
            UseKind::MemberCall if !receiver.is_empty() => {
                (receiver.to_owned(), self.receiver_type(receiver))
            }
            UseKind::PathCall => {
                let Some(receiver) = type_path(receiver) else { return };
                let own = if receiver == "Self" { self.receiver_type("Self") } else { String::new() };
                (receiver, own)
            }
            _ => (receiver.to_owned(), String::new()),
        };
        self.known_uses.insert(key, self.facts.uses.len());
        let line = self.tokens.line(at);
        self.facts.uses.push(Use {
            kind,
            from,
            name: name.to_owned(),
            receiver,
            receiver_type,
            line,
            count: 1,
        });
    }
}

/// Whether a name begins with a capital and is not written in capitals only, as constants are.
pub(super) fn looks_like_type(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(char::is_uppercase) && (name.len() == 1 || letters.any(char::is_lowercase))
}

/// What stands before a name, if it is a path of names; empty for any other expression.
fn simple(receiver: &str) -> &str {
    let is_path = |letter: char| letter.is_alphanumeric() || "_.:$@>-?#&".contains(letter);
    let fits = receiver.len() <= LONGEST_RECEIVER && receiver.chars().all(is_path);
    if fits { receiver } else { "" }
}
