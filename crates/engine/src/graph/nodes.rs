//! Nodes and relations of the graph, their keys and numbers.

use std::rc::Rc;

use shelf_base::{Moment, ids::CollectionId};
use shelf_reading::facts::SymbolKind;

use super::docs::Doc;

/// How two nodes are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Relation {
    /// A collection holds a document, a document a heading, a type a method.
    Contains,
    /// A document has a version.
    HasVersion,
    /// A document links to another, or to a heading.
    LinksTo,
    /// A file imports another, or a module outside the library.
    Imports,
    /// A function calls another, or makes a value of a type.
    Calls,
    /// A file defines a symbol.
    Defines,
    /// A type inherits from another.
    Inherits,
    /// A type implements an interface or trait.
    Implements,
    /// A definition names a type; a document refers to an address outside the library.
    References,
    /// A document has a tag.
    Tagged,
    /// A document is in a snapshot.
    InSnapshot,
    /// Two documents have the same content.
    DuplicateOf,
    /// Two documents have nearly the same words or meaning.
    SimilarTo,
    /// A document cites a place in another.
    Cites,
}

impl Relation {
    /// Every relation.
    pub const ALL: [Self; 14] = [
        Self::Contains,
        Self::HasVersion,
        Self::LinksTo,
        Self::Imports,
        Self::Calls,
        Self::Defines,
        Self::Inherits,
        Self::Implements,
        Self::References,
        Self::Tagged,
        Self::InSnapshot,
        Self::DuplicateOf,
        Self::SimilarTo,
        Self::Cites,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Contains => "CONTAINS",
            Self::HasVersion => "HAS_VERSION",
            Self::LinksTo => "LINKS_TO",
            Self::Imports => "IMPORTS",
            Self::Calls => "CALLS",
            Self::Defines => "DEFINES",
            Self::Inherits => "INHERITS",
            Self::Implements => "IMPLEMENTS",
            Self::References => "REFERENCES",
            Self::Tagged => "TAGGED",
            Self::InSnapshot => "IN_SNAPSHOT",
            Self::DuplicateOf => "DUPLICATE_OF",
            Self::SimilarTo => "SIMILAR_TO",
            Self::Cites => "CITES",
        }
    }

    /// The relation with a name, whatever its case.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.trim().replace('-', "_");
        Self::ALL.into_iter().find(|relation| relation.name().eq_ignore_ascii_case(&name))
    }

    /// Whether a walk follows it without being asked to.
    pub const fn is_usual(self) -> bool {
        !matches!(
            self,
            Self::Contains
                | Self::HasVersion
                | Self::InSnapshot
                | Self::Tagged
                | Self::SimilarTo
                | Self::DuplicateOf
        )
    }
}

/// A node, in the terms of one view.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Node {
    Document(Doc),
    Symbol(Doc, Rc<str>),
    Heading(Doc, Rc<str>),
    Version(Doc, u32),
    Tag(Rc<str>),
    Collection(CollectionId),
    Snapshot(Moment),
    Reference(Rc<str>),
}

impl Node {
    /// The document that it belongs to.
    pub(super) const fn doc(&self) -> Option<Doc> {
        match self {
            Self::Document(doc) | Self::Symbol(doc, _) | Self::Heading(doc, _) | Self::Version(doc, _) => {
                Some(*doc)
            }
            Self::Tag(_) | Self::Collection(_) | Self::Snapshot(_) | Self::Reference(_) => None,
        }
    }
}

/// The types of nodes that can be listed.
pub const NODE_TYPES: [&str; 16] = [
    "document",
    "version",
    "collection",
    "tag",
    "snapshot",
    "heading",
    "reference",
    "function",
    "method",
    "class",
    "struct",
    "enum",
    "trait",
    "interface",
    "module",
    "type",
];

/// The kind of symbol with a name.
pub(super) fn symbol_kind(name: &str) -> Option<SymbolKind> {
    SymbolKind::ALL.into_iter().find(|kind| kind.name() == name)
}

/// Bits of a node's number that tell its document from others.
const DOCUMENT_BITS: u32 = 29;
/// Bits that tell it from others of its document.
const LOCAL_BITS: u32 = 23;
const DOCUMENT_MASK: u64 = (1 << DOCUMENT_BITS) - 1;
const LOCAL_MASK: u64 = (1 << LOCAL_BITS) - 1;
/// Set for nodes that belong to no document.
const SHARED: u64 = 1 << (DOCUMENT_BITS + LOCAL_BITS);

/// Numbers of nodes: at most 53 bits, the same in every process and after every rebuild.
///
/// The number of a document is its number in the catalog, turned into another one by a secret of the library and the
/// account, so that nobody learns from it how much others store, and turned back to find the document. The number of
/// what belongs to a document adds a hash of its key. All others are hashes of the account and the key.
pub(super) struct Numbers {
    key: [u8; 32],
}

impl Numbers {
    pub(super) fn new(secret: &[u8; 32], account: &[u8]) -> Self {
        Self { key: *blake3::keyed_hash(secret, account).as_bytes() }
    }

    /// A round of the permutation: some bits of a half, changed by the other half.
    fn round(&self, round: u8, half: u64, bits: u32) -> u64 {
        let mut input = [0; 9];
        input[..8].copy_from_slice(&half.to_le_bytes());
        input[8] = round;
        let hash = blake3::keyed_hash(&self.key, &input);
        let value = hash.as_bytes().first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        value & ((1 << bits) - 1)
    }

    /// The hidden number of a document; `None` for the far future.
    fn hidden(&self, number: i64) -> Option<u64> {
        let number = u64::try_from(number).ok().filter(|number| *number <= DOCUMENT_MASK)?;
        let (mut high, mut low) = (number >> 14, number & 0x3FFF);
        for round in 0..4 {
            high ^= self.round(2 * round, low, 15);
            low ^= self.round(2 * round + 1, high, 14);
        }
        Some(high << 14 | low)
    }

    fn shown(&self, hidden: u64) -> i64 {
        let (mut high, mut low) = (hidden >> 14, hidden & 0x3FFF);
        for round in (0..4).rev() {
            low ^= self.round(2 * round + 1, high, 14);
            high ^= self.round(2 * round, low, 15);
        }
        (high << 14 | low) as i64
    }

    /// The number of a document.
    pub(super) fn document(&self, number: i64) -> u64 {
        self.hidden(number).map_or(0, |hidden| hidden << LOCAL_BITS)
    }

    /// What a key within a document adds to its number; never 0.
    pub(super) fn local(&self, key: &str) -> u64 {
        let hash = blake3::keyed_hash(&self.key, key.as_bytes());
        let value = hash.as_bytes().first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        1 + value % LOCAL_MASK
    }

    /// The number of a node that belongs to no document.
    pub(super) fn shared(&self, key: &str) -> u64 {
        let hash = blake3::keyed_hash(&self.key, key.as_bytes());
        let value = hash.as_bytes().first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        SHARED | value & (SHARED - 1)
    }

    /// The document and the local part of a number; `None` when it belongs to no document.
    pub(super) fn parts(&self, number: u64) -> Option<(i64, u64)> {
        (number < SHARED).then(|| (self.shown(number >> LOCAL_BITS), number & LOCAL_MASK))
    }
}

/// The local parts of all keys of a document: the hash of each, and the next free number where two are equal.
pub(super) fn local_numbers<'k>(
    numbers: &Numbers,
    keys: impl Iterator<Item = &'k str>,
) -> Vec<(u64, &'k str)> {
    let mut keys: Vec<&str> = keys.collect();
    keys.sort_unstable();
    keys.dedup();
    let mut taken = std::collections::HashSet::new();
    keys.into_iter()
        .map(|key| {
            let mut local = numbers.local(key);
            while !taken.insert(local) {
                local = local % LOCAL_MASK + 1;
            }
            (local, key)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_documents_can_be_turned_back_and_tell_nothing() {
        let numbers = Numbers::new(&[7; 32], b"account");
        let other = Numbers::new(&[7; 32], b"another");
        let mut seen = std::collections::HashSet::new();
        for number in (0..5_000).chain([1 << 20, (1 << 29) - 1]) {
            let shown = numbers.document(number);
            assert!(shown < 1 << 53 && seen.insert(shown));
            assert_eq!(numbers.parts(shown | 5), Some((number, 5)));
            assert_ne!(shown, other.document(number));
        }
        assert!(numbers.shared("tag:x") >= SHARED && numbers.shared("tag:x") < 1 << 53);
        assert_eq!(numbers.parts(numbers.shared("tag:x")), None);
    }

    #[test]
    fn keys_of_one_document_have_different_numbers() {
        let numbers = Numbers::new(&[7; 32], b"account");
        let keys: Vec<String> = (0..20_000).map(|at| format!("sym{at}")).collect();
        let locals = local_numbers(&numbers, keys.iter().map(String::as_str));
        let different: std::collections::HashSet<u64> = locals.iter().map(|(local, _)| *local).collect();
        assert_eq!(different.len(), keys.len());
        assert!(locals.iter().all(|(local, _)| (1..=LOCAL_MASK).contains(local)));
    }
}
