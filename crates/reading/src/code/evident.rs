//! Types of variables and fields, as far as the text says them close by: `let shelf: Shelf`, `x = Shelf(…)`.

use super::{Language, Walk, tokens::mark};

/// Types whose methods are mostly those of what they hold.
const WRAPPERS: &[&str] = &["Arc", "Box", "Rc", "unique_ptr", "shared_ptr", "Option", "Optional"];
/// Bytes of a path of names at most.
const LONGEST_PATH: usize = 160;

impl<'a> Walk<'a> {
    /// Parameters or fields that are written `name: Type`, between one token and another one.
    pub(super) fn typed_list(&mut self, from: usize, until: usize, is_field: bool) {
        for (first, last) in self.parts(from, until) {
            let mut at = first;
            while at <= last && self.tokens.mark(at) != b':' {
                at = self.tokens.past(at);
            }
            if at > first && at < last {
                // `name?: Type`
                let name = if self.tokens.mark(at - 1) == b'?' { at.saturating_sub(2) } else { at - 1 };
                self.remember_type(self.tokens.word(name), at + 1, last, is_field);
            }
        }
    }

    /// Remembers the type that stands from one token to another one as that of a variable or field.
    pub(super) fn remember_type(&mut self, name: &'a str, first: usize, last: usize, is_field: bool) {
        if let Some(found) = type_path(self.tokens.span(first, last)) {
            self.remember(name, found, is_field);
        }
    }

    /// The type of the value that begins here, if that is evident: `Type::new(…)`, `new Type(…)`, `Type { … }`.
    pub(super) fn made_type(&self, at: usize) -> Option<String> {
        let mut first = at;
        for _ in 0..4 {
            let is_passed = matches!(self.tokens.mark(first), b'&' | b'*' | b'(')
                || matches!(self.tokens.word(first), "mut" | "await" | "box");
            if !is_passed {
                break;
            }
            first += 1;
        }
        if self.tokens.word(first) == "new" {
            let last = self.path_end(first + 1);
            return type_path(self.tokens.span(first + 1, last));
        }
        if !self.tokens.is_word(first) {
            return None;
        }
        let last = self.path_end(first);
        let path = self.tokens.span(first, last);
        match (self.language, self.tokens.mark(last + 1)) {
            (Language::Rust | Language::Go, b'{') if !self.blocks.contains(&(last + 1)) => {
                type_path(path).filter(|path| self.language == Language::Go || is_type_name(path))
            }
            (Language::Rust, b'(') => {
                let owner = type_path(path.rsplit_once("::")?.0)?;
                if WRAPPERS.contains(&owner.as_str()) {
                    return self.made_type_within(last + 2);
                }
                if owner == "Self" { self.own_type().map(str::to_owned) } else { some_type(owner) }
            }
            // `Type::<T>::new(…)`
            (Language::Rust, mark::PATH | b'<') => type_path(path).and_then(some_type),
            (Language::Python, b'(') => type_path(path).and_then(some_type),
            (Language::Ruby, _) => {
                let owner = path.strip_suffix(".new")?;
                type_path(owner)
            }
            (Language::Go, b'(') => {
                let (package, name) = path.rsplit_once('.').unwrap_or(("", path));
                let name = name.strip_prefix("New").filter(|name| is_type_name(name))?;
                Some(if package.is_empty() { name.to_owned() } else { format!("{package}.{name}") })
            }
            _ => None,
        }
    }

    /// The type of what a wrapper holds: `Arc::new(Shelf::open())`.
    fn made_type_within(&self, at: usize) -> Option<String> {
        let last = self.path_end(at);
        let owner = type_path(self.tokens.span(at, last).rsplit_once("::")?.0)?;
        if WRAPPERS.contains(&owner.as_str()) { None } else { some_type(owner) }
    }

    /// A variable, or a field of the object itself: `self.shelf = …`, `@shelf = …`.
    pub(super) fn remember_receiver(&mut self, left: &'a str, found: String) {
        match left
            .strip_prefix("self.")
            .or_else(|| left.strip_prefix("this."))
            .or_else(|| left.strip_prefix('@'))
        {
            Some(field) => self.remember(field, found, true),
            None => self.remember(left, found, false),
        }
    }

    pub(super) fn remember(&mut self, name: &'a str, found: String, is_field: bool) {
        if name.is_empty() || name.len() > LONGEST_PATH || self.fields.len() > crate::facts::MOST_FACTS {
            return;
        }
        if is_field {
            if let Some(own) = self.own_type().map(str::to_owned) {
                self.fields.insert((own, name), found);
            }
        } else if let Some(scope) = self.scopes.last_mut() {
            scope.variables.insert(name, found);
        }
    }

    /// The type of what stands before the dot of a call; empty when it is not evident.
    pub(super) fn receiver_type(&self, receiver: &str) -> String {
        if matches!(receiver, "self" | "this" | "Self" | "cls") {
            return self.own_type().unwrap_or_default().to_owned();
        }
        let own_field =
            ["self.", "this.", "this->", "@"].into_iter().find_map(|own| receiver.strip_prefix(own));
        if let Some(field) = own_field {
            let own = self.own_type().unwrap_or_default().to_owned();
            return self.fields.get(&(own, field)).cloned().unwrap_or_default();
        }
        let known = self.scopes.iter().rev().find_map(|scope| scope.variables.get(receiver));
        known.cloned().unwrap_or_else(|| {
            // Java, C# and C++ write fields without a word before them.
            let own = self.own_type().unwrap_or_default().to_owned();
            self.fields.get(&(own, receiver)).cloned().unwrap_or_default()
        })
    }
}

/// The name of a type as it is written, without references, type arguments, arrays and wrappers.
pub(super) fn type_path(text: &str) -> Option<String> {
    let mut rest = text.trim().trim_start_matches(':').trim_start();
    loop {
        let before = rest;
        rest = rest.trim_start_matches(['&', '*', '?', '(', '[', ']', '"', '\'']).trim_start();
        for word in ["mut ", "const ", "dyn ", "impl ", "struct ", "enum ", "class ", "readonly "] {
            rest = rest.strip_prefix(word).unwrap_or(rest);
        }
        // A lifetime stands after the reference, without its mark by now.
        if before.trim_start().starts_with("&'") {
            rest = rest.split_once(' ').map_or(rest, |(_, rest)| rest);
        }
        if rest == before {
            break;
        }
    }
    let end = rest
        .find(|letter: char| !(letter.is_alphanumeric() || "_.:$".contains(letter)))
        .unwrap_or(rest.len());
    let (path, after) = rest.split_at(end);
    let path = path.trim_matches([':', '.']);
    let last = path.rsplit([':', '.']).next().unwrap_or(path);
    if WRAPPERS.contains(&last)
        && let Some(inner) = after.strip_prefix('<')
    {
        return type_path(inner).filter(|inner| !WRAPPERS.contains(&inner.as_str()));
    }
    (!path.is_empty() && path.len() <= LONGEST_PATH).then(|| path.to_owned())
}

fn some_type(path: String) -> Option<String> {
    is_type_name(&path).then_some(path)
}

fn is_type_name(path: &str) -> bool {
    let last = path.rsplit([':', '.']).next().unwrap_or(path);
    last.chars().next().is_some_and(char::is_uppercase)
}
