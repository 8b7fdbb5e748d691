//! Definitions, imports, calls and ancestors of source code in ten languages.
//!
//! A text is cut into tokens, and the tokens are read once, from the first to the last, by the rules by which each
//! language writes definitions, imports and calls. Bodies are found by their brackets, by indentation in Python, and by
//! `end` in Ruby. No tree is made: parsers that make one (tree-sitter's were used here first) take several times longer
//! than everything else that is done with a text when it is added, and their grammars were a fifth of the program. A
//! token costs the same wherever it stands, and a text in which too much has to be looked at ahead is read no further, so
//! broken and hostile texts take no longer than others.

mod aliases;
mod c;
mod define;
mod evident;
mod go;
mod imports;
mod java;
mod lex;
mod python;
mod ruby;
mod rust;
mod script;
mod strings;
#[cfg(test)]
mod tests;
mod tokens;
mod uses;

use foldhash::{HashMap, HashSet};
use tokens::Tokens;

use crate::{
    extension_of,
    facts::{Facts, MOST_FACTS, UseKind, beginning},
};

pub use crate::facts::Language;

/// Bytes of a file that are read; what follows is left out. Tokens take about five times the memory of their text.
const READ_BYTES: usize = 4 << 20;
/// Tokens that are looked at to find where something ends, at most; brackets with all they hold count as one.
const AHEAD: usize = 1_000;
/// Scopes within scopes at most: deeper ones are read as part of the last.
const DEEPEST: usize = 500;

/// The language of a file, by its name and type.
pub fn language_of(path: &str, mime: &str) -> Option<Language> {
    let by_name = match extension_of(path).as_str() {
        ".rs" => Some(Language::Rust),
        ".py" | ".pyi" => Some(Language::Python),
        ".js" | ".jsx" | ".mjs" | ".cjs" => Some(Language::JavaScript),
        ".ts" | ".tsx" | ".mts" | ".cts" => Some(Language::TypeScript),
        ".go" => Some(Language::Go),
        ".java" => Some(Language::Java),
        ".c" => Some(Language::C),
        // Most headers of mixed projects are C++, whose grammar reads C as well.
        ".h" | ".cc" | ".cpp" | ".cxx" | ".hh" | ".hpp" | ".hxx" => Some(Language::Cpp),
        ".rb" | ".rake" => Some(Language::Ruby),
        ".cs" => Some(Language::CSharp),
        _ => None,
    };
    by_name.or(match mime.split(';').next().unwrap_or(mime).trim() {
        "text/x-rust" => Some(Language::Rust),
        "text/x-python" => Some(Language::Python),
        "text/javascript" | "application/javascript" => Some(Language::JavaScript),
        "text/x-typescript" => Some(Language::TypeScript),
        "text/x-go" => Some(Language::Go),
        "text/x-java" => Some(Language::Java),
        "text/x-c" => Some(Language::C),
        "text/x-c++" => Some(Language::Cpp),
        "text/x-ruby" => Some(Language::Ruby),
        "text/x-csharp" => Some(Language::CSharp),
        _ => None,
    })
}

/// Reads the facts of a file of code. Links and tags are not among them.
pub fn read(language: Language, text: &str) -> Facts {
    let whole = text.len() <= READ_BYTES;
    let cut = beginning(text, READ_BYTES);
    let shown = if whole { text } else { cut.rfind('\n').map_or(cut, |end| &cut[..=end]) };
    let mut walk = Walk::new(language, lex::tokens(language, shown));
    walk.run();
    walk.facts.is_cut |= !whole;
    walk.facts
}

/// What stands directly in a scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Body {
    /// Statements.
    #[default]
    Code,
    /// Members of a type.
    Type,
    /// Definitions.
    Module,
}

/// The end of a scope that is found only when it is reached.
const OPEN: usize = usize::MAX;

/// A part of the text within which names have a meaning: a definition, or the body of an `impl`.
#[derive(Default)]
struct Scope<'a> {
    /// Its last token, or [`OPEN`].
    until: usize,
    /// How far its first line is indented.
    column: u16,
    body: Body,
    /// The innermost definition.
    definition: Option<u32>,
    /// Whether that definition is the scope itself.
    is_definition: bool,
    /// What qualifies the names of definitions in it.
    prefix: String,
    /// The type whose methods stand in it.
    own_type: Option<String>,
    /// Types of variables, as far as they are evident.
    variables: HashMap<&'a str, String>,
}

type UseKey<'a> = (UseKind, Option<u32>, &'a str, &'a str);

struct Walk<'a> {
    language: Language,
    tokens: Tokens<'a>,
    facts: Facts,
    scopes: Vec<Scope<'a>>,
    /// Types of fields, by type and field.
    fields: HashMap<(String, &'a str), String>,
    known_uses: HashMap<UseKey<'a>, usize>,
    /// Braces that open the block of a statement, and not a value.
    blocks: HashSet<usize>,
    /// Everything up to this token stands in brackets (Python) or in a group of types (Go).
    inside_until: usize,
    /// The first decorator of the definition that comes next.
    decorated: Option<usize>,
    /// What `end` will close, innermost last: scopes and other blocks (Ruby).
    ends: Vec<ruby::Opened>,
}

impl<'a> Walk<'a> {
    fn new(language: Language, tokens: Tokens<'a>) -> Self {
        Self {
            language,
            tokens,
            facts: Facts { language: Some(language), ..Facts::default() },
            scopes: Vec::new(),
            fields: HashMap::default(),
            known_uses: HashMap::default(),
            blocks: HashSet::default(),
            inside_until: 0,
            decorated: None,
            ends: Vec::new(),
        }
    }

    fn run(&mut self) {
        let mut at = 0;
        while at < self.tokens.len() {
            if self.tokens.is_tiring() {
                self.facts.is_cut = true;
                break;
            }
            while self.scopes.last().is_some_and(|scope| scope.until < at) {
                self.scopes.pop();
            }
            let next = match self.language {
                Language::C | Language::Cpp => self.step_c(at),
                Language::CSharp | Language::Java => self.step_java(at),
                Language::Go => self.step_go(at),
                Language::JavaScript | Language::TypeScript => self.step_script(at),
                Language::Python => self.step_python(at),
                Language::Ruby => self.step_ruby(at),
                Language::Rust => self.step_rust(at),
            };
            at = next.max(at + 1);
        }
        while !self.scopes.is_empty() {
            self.close(self.tokens.len());
        }
    }

    /// Ends the innermost scope before this token.
    fn close(&mut self, at: usize) {
        let Some(scope) = self.scopes.pop() else { return };
        let Some(last) = at.checked_sub(1).and_then(|last| self.tokens.get(last)).copied() else { return };
        let definition = scope.definition.and_then(|place| self.facts.definitions.get_mut(place as usize));
        if let Some(definition) = definition
            && scope.until == OPEN
            && scope.is_definition
        {
            definition.bytes.end = last.end.max(definition.bytes.end);
            let breaks = memchr::memchr_iter(b'\n', self.tokens.text_of(&last).as_bytes()).count() as u32;
            definition.lines.1 = (last.line + breaks).max(definition.lines.1);
        }
    }

    fn body(&self) -> Body {
        self.scopes.last().map_or(Body::Module, |scope| scope.body)
    }

    fn definition(&self) -> Option<u32> {
        self.scopes.last().and_then(|scope| scope.definition)
    }

    fn own_type(&self) -> Option<&str> {
        self.scopes.iter().rev().find_map(|scope| scope.own_type.as_deref())
    }

    /// Whether another fact may join a list of this length.
    fn has_room(&mut self, length: usize) -> bool {
        let has_room = length < MOST_FACTS;
        self.facts.is_cut |= !has_room;
        has_room
    }

    /// The first of these marks from here on that stands in no bracket which begins here; `None` when a bracket around
    /// this place ends before, or when it is too far away.
    fn find(&self, from: usize, marks: &[u8]) -> Option<usize> {
        let mut at = from;
        for _ in 0..AHEAD {
            let mark = self.tokens.get(at)?.mark;
            if mark != 0 && marks.contains(&mark) {
                return Some(at);
            }
            if matches!(mark, b')' | b']' | b'}') {
                return None;
            }
            at = self.tokens.past(at);
        }
        None
    }

    /// The parts between commas from one token up to another one. Commas between angle brackets are parts of types.
    fn parts(&self, from: usize, until: usize) -> Vec<(usize, usize)> {
        let mut parts = Vec::new();
        let (mut first, mut at, mut depth) = (from, from, 0usize);
        while at < until && parts.len() < AHEAD {
            match self.tokens.mark(at) {
                b'<' => depth += 1,
                b'>' => depth = depth.saturating_sub(1),
                b',' if depth == 0 => {
                    if at > first {
                        parts.push((first, at - 1));
                    }
                    first = at + 1;
                }
                _ => {}
            }
            at = self.tokens.past(at);
        }
        if until > first {
            parts.push((first, until - 1));
        }
        parts
    }
}
