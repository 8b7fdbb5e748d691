//! Definitions, imports, calls and ancestors of source code in ten languages.
//!
//! A text is parsed by tree-sitter, which makes a tree of any input, and the tree is walked once, without recursion.
//! What a node means is a matter of the tables in `kinds`. Parsing has a budget that depends on the length of the text
//! only, so that the same text gives the same facts on every machine; a limit on time stands behind it.

mod define;
mod evident;
mod imports;
mod kinds;
#[cfg(test)]
mod tests;
mod uses;

use std::{
    collections::HashMap,
    ops::ControlFlow,
    time::{Duration, Instant},
};

use kinds::{Action, Grammar};
use tree_sitter::{Node, ParseOptions, Parser, Tree};

use crate::{
    extension_of,
    facts::{Facts, LONGEST_NAME, MOST_FACTS, UseKind, beginning},
};

pub use crate::facts::Language;

/// Bytes of a file that are parsed; what follows is left out. A tree takes about fifteen times the memory of its text.
const PARSED_BYTES: usize = 2 << 20;
/// A text that takes longer than this has no facts.
const LONGEST_PARSE: Duration = Duration::from_secs(20);
/// Brackets within brackets, at most: no program that somebody wrote comes near it, and parsers are slow beyond.
const DEEPEST: usize = 2_000;

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
pub fn read(language: Language, path: &str, text: &str) -> Facts {
    let whole = text.len() <= PARSED_BYTES;
    let cut = beginning(text, PARSED_BYTES);
    let parsed = if whole { text } else { cut.rfind('\n').map_or(cut, |end| &cut[..=end]) };
    let with_markup = extension_of(path).ends_with('x');
    let grammar = kinds::grammar(language, with_markup);
    let tree = if is_too_deep(parsed) { None } else { parse(grammar, parsed) };
    let mut walk = Walk::new(language, grammar, parsed);
    match &tree {
        Some(tree) => walk.run(tree),
        None => walk.facts.is_cut = true,
    }
    walk.facts.is_cut |= !whole;
    walk.facts
}

fn parse(grammar: &Grammar, text: &str) -> Option<Tree> {
    thread_local! {
        static PARSER: std::cell::RefCell<Parser> = std::cell::RefCell::new(Parser::new());
    }
    // Reports come after every hundred steps; ordinary code takes about one step for four bytes.
    let (mut reports, most) = (0usize, 1_000 + text.len() / 40);
    let begun = Instant::now();
    let mut go_on = |_: &tree_sitter::ParseState| {
        reports += 1;
        let too_long = reports.is_multiple_of(64) && begun.elapsed() > LONGEST_PARSE;
        if reports > most || too_long { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    PARSER.with_borrow_mut(|parser| {
        parser.set_language(&grammar.grammar).ok()?;
        let bytes = text.as_bytes();
        let options = ParseOptions::new().progress_callback(&mut go_on);
        let tree = parser.parse_with_options(&mut |at, _| &bytes[at.min(bytes.len())..], None, Some(options));
        parser.reset();
        tree
    })
}

/// Whether brackets are nested too deeply. Those in strings and comments count, so the bound is a generous one.
fn is_too_deep(text: &str) -> bool {
    let mut depth = 0usize;
    text.bytes().any(|byte| {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > DEEPEST
    })
}

/// A part of the tree within which names have a meaning: a definition, or the body of an `impl`.
#[derive(Default)]
struct Scope<'a> {
    /// How deep in the tree it was opened; it ends with the next node that is no deeper.
    depth: u32,
    /// The innermost definition.
    definition: Option<u32>,
    /// What qualifies the names of definitions in it.
    prefix: String,
    /// The type whose methods stand in it.
    own_type: Option<String>,
    /// Types of variables, as far as they are evident.
    variables: HashMap<&'a str, String>,
}

type UseKey<'a> = (UseKind, Option<u32>, &'a str, String);

struct Walk<'a> {
    language: Language,
    grammar: &'static Grammar,
    text: &'a str,
    facts: Facts,
    scopes: Vec<Scope<'a>>,
    /// Types of fields, by type and field.
    fields: HashMap<(String, &'a str), String>,
    known_uses: HashMap<UseKey<'a>, usize>,
    depth: u32,
    /// The nodes around the present one, outermost first: asking a node for its parent takes a walk from the root.
    around: Vec<Node<'a>>,
}

impl<'a> Walk<'a> {
    fn new(language: Language, grammar: &'static Grammar, text: &'a str) -> Self {
        Self {
            language,
            grammar,
            text,
            facts: Facts { language: Some(language), ..Facts::default() },
            scopes: Vec::new(),
            fields: HashMap::new(),
            known_uses: HashMap::new(),
            depth: 0,
            around: Vec::new(),
        }
    }

    fn run(&mut self, tree: &'a Tree) {
        let mut cursor = tree.walk();
        loop {
            let node = cursor.node();
            while self.scopes.last().is_some_and(|scope| scope.depth >= self.depth) {
                self.scopes.pop();
            }
            let action = self.grammar.action(node.kind_id());
            if action != Action::Pass {
                self.enter(action, node);
            }
            if action != Action::Skip && cursor.goto_first_child() {
                self.depth += 1;
                self.around.push(node);
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return;
                }
                self.depth -= 1;
                self.around.pop();
            }
        }
    }

    fn enter(&mut self, action: Action, node: Node<'a>) {
        match action {
            Action::Define(kind) => self.define(kind, node),
            Action::Impl => self.open_impl(node),
            Action::Module => self.module(node),
            Action::Package => self.package(node),
            Action::Import => self.import(node),
            Action::Variable => self.variable(node),
            Action::Typed => self.typed(node),
            Action::Call => self.call(node),
            Action::Construct => self.construct(node),
            Action::Macro => self.use_macro(node),
            Action::Mention => self.mention(node),
            Action::Pass | Action::Skip => {}
        }
    }

    /// The text of a node; empty when it is too long to be a name.
    fn text(&self, node: Node<'a>) -> &'a str {
        let text = self.text.get(node.byte_range()).unwrap_or_default();
        if text.len() <= LONGEST_NAME { text } else { "" }
    }

    fn field(&self, node: Node<'a>, name: &str) -> Option<Node<'a>> {
        node.child_by_field_name(name)
    }

    fn field_text(&self, node: Node<'a>, name: &str) -> &'a str {
        self.field(node, name).map_or("", |field| self.text(field))
    }

    /// The node around the present one.
    fn parent(&self) -> Option<Node<'a>> {
        self.around.last().copied()
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
}

fn line_of(node: Node<'_>) -> u32 {
    u32::try_from(node.start_position().row).unwrap_or(u32::MAX - 1) + 1
}

fn end_line_of(node: Node<'_>) -> u32 {
    let end = node.end_position();
    // A node that ends before the first character of a line ends with the line above.
    let row = if end.column == 0 && end.row > node.start_position().row { end.row - 1 } else { end.row };
    u32::try_from(row).unwrap_or(u32::MAX - 1) + 1
}

fn children<'a>(node: Node<'a>) -> Vec<Node<'a>> {
    let mut cursor = node.walk();
    // A node of generated code may have a million children; none of those that are asked for here means anything then.
    node.named_children(&mut cursor).take(4_096).collect()
}
