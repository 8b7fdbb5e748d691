//! Keys of the index of mentions: what a document is known by, and what it says of others.
//!
//! A key is a hash of a word and its sort. Two things may have one key, so whoever finds a document by a key compares
//! its facts; a key only has to be the same for both sides.

use shelf_base::Digest;
use shelf_reading::facts::{Facts, ImportKind, LinkKind, UseKind};

use super::paths;

/// Keys of one document at most. What is beyond is not found from the other side.
const MOST_KEYS: usize = 200_000;

/// Something that a document is known by or mentions.
#[derive(Clone, Copy)]
pub(crate) enum Key<'a> {
    /// It has this path.
    Path(&'a str),
    /// It has this name without its extension, or is the main file of a folder with this name.
    Stem(&'a str),
    /// It stands in a folder with this name.
    Folder(&'a str),
    /// It has this title.
    Title(&'a str),
    /// It has this content.
    Content(&'a str),
    /// It belongs to this package, or declares it.
    Package(&'a str),
    /// It defines this name.
    Defines(&'a str),
    /// It links to a document with this stem or title.
    Links(&'a str),
    /// It imports a module or item with this name.
    Imports(&'a str),
    /// It calls or mentions this name.
    Uses(&'a str),
    /// A type in it descends from one with this name.
    Descends(&'a str),
    /// It cites this resource.
    Cites(&'a str),
    /// Its text gives it this tag.
    Tagged(&'a str),
    /// It refers to this address outside the library.
    Refers(&'a str),
}

impl Key<'_> {
    /// The hash. It is part of what is on disk: another one needs another version of the facts.
    pub(crate) fn hash(self) -> u32 {
        let (sort, word) = match self {
            Self::Path(word) => (1, word),
            Self::Stem(word) => (2, word),
            Self::Folder(word) => (3, word),
            Self::Title(word) => (4, word),
            Self::Content(word) => (5, word),
            Self::Package(word) => (6, word),
            Self::Defines(word) => (7, word),
            Self::Links(word) => (8, word),
            Self::Imports(word) => (9, word),
            Self::Uses(word) => (10, word),
            Self::Descends(word) => (11, word),
            Self::Cites(word) => (12, word),
            Self::Tagged(word) => (13, word),
            Self::Refers(word) => (14, word),
        };
        let start = 0xcbf2_9ce4_8422_2325u64 ^ (sort * 0x9E37_79B9);
        let all = word
            .bytes()
            .fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        finish(all)
    }
}

/// The key of a band of a sketch.
pub(crate) const fn band(value: u64) -> u32 {
    finish(value ^ 0x5bd1_e995_5bd1_e995)
}

const fn finish(value: u64) -> u32 {
    let value = (value ^ (value >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    ((value ^ (value >> 33)) >> 16) as u32
}

/// The keys of a document.
pub(crate) fn of(path: &str, title: &str, hash: &Digest, facts: &Facts) -> Vec<u32> {
    let mut keys = Vec::new();
    let mut add = |key: Key<'_>| {
        if keys.len() < MOST_KEYS {
            keys.push(key.hash());
        }
    };
    add(Key::Path(path));
    add(Key::Content(&hash.to_string()));
    for stem in paths::stems(path) {
        add(Key::Stem(&stem));
    }
    add(Key::Folder(&paths::fold(paths::last(paths::folder(path)))));
    add(Key::Title(&paths::fold(title)));
    if !facts.package.is_empty() {
        add(Key::Package(&paths::fold(&facts.package)));
    }
    for definition in &facts.definitions {
        add(Key::Defines(&definition.name));
    }
    for import in &facts.imports {
        for word in import_words(import.kind, &import.module, &import.item) {
            add(Key::Imports(&word));
        }
        let language = facts.language.map_or("", |language| language.name());
        add(Key::Refers(&super::modules::outside_name(language, &import.module)));
    }
    for one in &facts.uses {
        add(Key::Uses(&one.name));
    }
    for one in facts.uses.iter().filter(|one| one.kind == UseKind::PathCall) {
        add(Key::Uses(paths::last_name(&one.receiver)));
    }
    for one in facts.uses.iter().filter(|one| !one.receiver_type.is_empty()) {
        add(Key::Uses(paths::last_name(&one.receiver_type)));
    }
    for ancestor in &facts.ancestors {
        add(Key::Descends(paths::last_name(&ancestor.name)));
    }
    for link in &facts.links {
        if link.kind == LinkKind::Citation {
            if let Some(resource) = paths::resource_of(&link.target) {
                add(Key::Cites(&resource));
            }
            continue;
        }
        let target = paths::Target::of(&link.target, link.kind);
        match target {
            paths::Target::Outside => add(Key::Refers(&link.target)),
            paths::Target::Inside { path, .. } if !path.is_empty() => {
                add(Key::Links(&paths::fold(paths::stem(path.trim_end_matches('/')))));
                // What cannot be found is a reference by its own words.
                add(Key::Refers(&link.target));
            }
            paths::Target::Inside { .. } => {}
        }
    }
    for tag in &facts.tags {
        add(Key::Tagged(tag));
    }
    if let Some(sketch) = &facts.sketch {
        keys.extend(sketch.bands().map(band));
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The words by which an import can be found from the file it means.
pub(super) fn import_words(kind: ImportKind, module: &str, item: &str) -> Vec<String> {
    let last = match kind {
        ImportKind::File | ImportKind::SystemFile => paths::stem(module),
        _ => paths::last_name(module.trim_end_matches(['.', '/'])),
    };
    let last = if last.is_empty() { module } else { last };
    // A module's file may be written with its extension: `./shelf.js`.
    let plain = paths::stem(last);
    let mut words = vec![paths::fold(plain), paths::fold(last), paths::fold(item)];
    // An item may come from any part of a longer path: `crate::index` for `crate::index::View`.
    if matches!(last, "crate" | "self" | "super" | "." | "..") {
        words.push(last.to_owned());
    }
    words.retain(|word| !word.is_empty());
    words.sort_unstable();
    words.dedup();
    words
}
