//! What a document says of itself and of others: the things it defines, imports, calls and links to.
//!
//! Facts are names as they are written, never decisions: which document a link or a name means depends on the library
//! at the moment of a question, so it is resolved then. [`facts`] reads them from a text, [`Facts::encode`] makes a
//! compact record of them, and [`Facts::decode`] reads it back.
//!
//! Texts are untrusted. Every list is bounded, no function recurses on the structure of the input, and what was left out
//! for a bound is said by [`Facts::is_cut`].

mod encoding;
mod package;
mod sketch;

use std::ops::Range;

pub use sketch::{BANDS, Sketch};

use crate::{Text, code, links};

/// Changes whenever other facts are read from the same text: what was kept of older readings is not used then.
pub const FACTS_VERSION: u32 = 4;

/// Definitions, calls, links and so on of one document at most, of each.
pub const MOST_FACTS: usize = 100_000;
/// Bytes of a name, path or link at most; longer ones are left out.
pub const LONGEST_NAME: usize = 1_024;
/// Bytes of the text of a link or heading that are kept.
pub const SHOWN_TEXT: usize = 160;

/// A programming language whose definitions are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    /// C.
    C,
    /// C++.
    Cpp,
    /// C#.
    CSharp,
    /// Go.
    Go,
    /// Java.
    Java,
    /// JavaScript.
    JavaScript,
    /// Python.
    Python,
    /// Ruby.
    Ruby,
    /// Rust.
    Rust,
    /// TypeScript.
    TypeScript,
}

impl Language {
    /// Every language, in the order of its number in records.
    pub const ALL: [Self; 10] = [
        Self::C,
        Self::Cpp,
        Self::CSharp,
        Self::Go,
        Self::Java,
        Self::JavaScript,
        Self::Python,
        Self::Ruby,
        Self::Rust,
        Self::TypeScript,
    ];

    /// Its name in replies.
    pub const fn name(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Cpp => "cpp",
            Self::CSharp => "csharp",
            Self::Go => "go",
            Self::Java => "java",
            Self::JavaScript => "javascript",
            Self::Python => "python",
            Self::Ruby => "ruby",
            Self::Rust => "rust",
            Self::TypeScript => "typescript",
        }
    }

    /// What stands between the parts of a qualified name.
    pub const fn separator(self) -> &'static str {
        match self {
            Self::Rust | Self::Cpp | Self::C | Self::Ruby => "::",
            _ => ".",
        }
    }
}

/// What kind of thing is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SymbolKind {
    /// A function that belongs to no type, or a macro.
    Function,
    /// A function of a type.
    Method,
    /// A class or record.
    Class,
    /// A structure or union.
    Struct,
    /// An enumeration.
    Enum,
    /// A trait.
    Trait,
    /// An interface.
    Interface,
    /// A module or namespace.
    Module,
    /// A type that is defined by naming another one.
    Type,
}

impl SymbolKind {
    /// Every kind, in the order of its number in records.
    pub const ALL: [Self; 9] = [
        Self::Function,
        Self::Method,
        Self::Class,
        Self::Struct,
        Self::Enum,
        Self::Trait,
        Self::Interface,
        Self::Module,
        Self::Type,
    ];

    /// Its name in replies.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Method => "method",
            Self::Class => "class",
            Self::Struct => "struct",
            Self::Enum => "enum",
            Self::Trait => "trait",
            Self::Interface => "interface",
            Self::Module => "module",
            Self::Type => "type",
        }
    }

    /// Whether it is a type, which may have methods and ancestors.
    pub const fn is_type(self) -> bool {
        matches!(self, Self::Class | Self::Struct | Self::Enum | Self::Trait | Self::Interface | Self::Type)
    }
}

/// Something that a file of code defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// What it is.
    pub kind: SymbolKind,
    /// Its own name.
    pub name: String,
    /// Its name within the file, with those of what contains it: `Shelf::open`, `Reader.next`.
    pub qualified: String,
    /// The definition around it, by its place in the list; always an earlier one.
    pub parent: Option<u32>,
    /// Where it stands, in bytes of the text.
    pub bytes: Range<u32>,
    /// Its first and last line, from 1.
    pub lines: (u32, u32),
}

/// How an import is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ImportKind {
    /// A module, or one thing of it.
    Named,
    /// Everything in a module.
    All,
    /// The same as [`Named`](Self::Named), offered to others under the file's own name.
    Reexport,
    /// Everything in a module, offered to others.
    ReexportAll,
    /// A module that is part of this one: `mod name;`.
    Child,
    /// A file by its name: `#include "name"`.
    File,
    /// A file of the system: `#include <name>`.
    SystemFile,
}

/// An import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// How it is written.
    pub kind: ImportKind,
    /// The module as it is written: `crate::index::view`, `../util`, `os.path`.
    pub module: String,
    /// The one thing that is taken from the module; empty for the module itself.
    pub item: String,
    /// What it is called in this file; empty when nothing can be called by it.
    pub local: String,
    /// Its line.
    pub line: u32,
}

/// How a called or mentioned name is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UseKind {
    /// `name(…)`.
    Call,
    /// `path::name(…)`: the receiver is a module or type.
    PathCall,
    /// `receiver.name(…)`: the receiver may be anything.
    MemberCall,
    /// `new Name(…)`, or another way to make a value of a type.
    Construct,
    /// A type that is named in a signature or a field.
    Mention,
}

/// A use of a name: a call, or a type that is mentioned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// How it is written.
    pub kind: UseKind,
    /// The definition that it stands in.
    pub from: Option<u32>,
    /// The name.
    pub name: String,
    /// What stands before the name, without its last separator; empty for none.
    pub receiver: String,
    /// The type of the receiver, when the file says it close by.
    pub receiver_type: String,
    /// The line of the first such use in that definition.
    pub line: u32,
    /// How many there are.
    pub count: u32,
}

/// What a type descends from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ancestor {
    /// The type, by its qualified name in this file. It may be defined elsewhere.
    pub of: String,
    /// The ancestor as it is written.
    pub name: String,
    /// Whether an interface is implemented; otherwise it is inherited from.
    pub implements: bool,
    /// Its line.
    pub line: u32,
}

/// How a link is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkKind {
    /// `[text](target)`, `<a href>`, `:doc:`, `xref:`.
    Inline,
    /// `[text][name]` with a definition elsewhere.
    Reference,
    /// `[[Name]]`.
    Wiki,
    /// An image.
    Image,
    /// A footnote of the same document.
    Footnote,
    /// A file that is included where the link stands.
    Include,
    /// A citation address in the text: `doc://textbook#pages=3`.
    Citation,
}

impl LinkKind {
    /// Its name in replies.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Reference => "reference",
            Self::Wiki => "wiki",
            Self::Image => "image",
            Self::Footnote => "footnote",
            Self::Include => "include",
            Self::Citation => "citation",
        }
    }
}

/// A link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// How it is written.
    pub kind: LinkKind,
    /// Where it leads, as it is written.
    pub target: String,
    /// What a reader sees of it.
    pub text: String,
    /// Its title; mostly empty.
    pub title: String,
    /// Its line.
    pub line: u32,
}

/// A heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    /// 1 for the highest.
    pub level: u8,
    /// Its text.
    pub text: String,
    /// What links within the document call it; unique in the document.
    pub anchor: String,
    /// Its line.
    pub line: u32,
    /// Where its section begins: the offset of its line.
    pub start: u32,
}

/// Everything that was read from one document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The language, if it is code.
    pub language: Option<Language>,
    /// The package or namespace that the whole file belongs to; empty when it names none.
    pub package: String,
    /// What it defines, in the order of the text.
    pub definitions: Vec<Definition>,
    /// What it imports.
    pub imports: Vec<Import>,
    /// What it calls and mentions.
    pub uses: Vec<Use>,
    /// What its types descend from.
    pub ancestors: Vec<Ancestor>,
    /// Its headings.
    pub headings: Vec<Heading>,
    /// Anchors that it defines without a heading.
    pub anchors: Vec<String>,
    /// Its links.
    pub links: Vec<Link>,
    /// Tags that its text gives it.
    pub tags: Vec<String>,
    /// A sketch of its words, by which documents that are nearly the same are found; `None` for short texts.
    pub sketch: Option<Sketch>,
    /// Whether something was left out, because there was too much of it.
    pub is_cut: bool,
}

impl Facts {
    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        *self == Self { is_cut: self.is_cut, language: self.language, ..Self::default() }
    }
}

/// Reads the facts of a document. `page` is the source of an HTML page, whose links its text does not have.
pub fn facts(path: &str, mime: &str, text: &Text<'_>, page: Option<&[u8]>) -> Facts {
    let mut facts = match code::language_of(path, mime) {
        Some(language) => code::read(language, &text.text),
        None => links::read(path, mime, text, page),
    };
    if let Some(package) = package::name(path, &text.text) {
        facts.package = package;
    }
    links::citations(&text.text, &mut facts);
    facts.sketch = Sketch::of(&text.text);
    facts
}

/// The beginning of a text that ends between two characters.
pub(crate) fn beginning(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// Line numbers of offsets that mostly ascend.
pub(crate) struct LineCounter<'a> {
    bytes: &'a [u8],
    at: usize,
    line: u32,
}

impl<'a> LineCounter<'a> {
    pub(crate) const fn new(text: &'a str) -> Self {
        Self { bytes: text.as_bytes(), at: 0, line: 1 }
    }

    /// The line of an offset, from 1.
    pub(crate) fn line(&mut self, offset: usize) -> u32 {
        let offset = offset.min(self.bytes.len());
        let count = |range: Range<usize>| memchr::memchr_iter(b'\n', &self.bytes[range]).count() as u32;
        self.line = if offset >= self.at {
            self.line + count(self.at..offset)
        } else {
            self.line - count(offset..self.at)
        };
        self.at = offset;
        self.line
    }
}
