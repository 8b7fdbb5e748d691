//! Documents as a snapshot has them.

use std::rc::Rc;

use foldhash::{HashMap, HashSet};
use shelf_base::{CallContext, Digest};
use shelf_catalog::Snapshot;
use shelf_index::{DerivedKey, Filter, View};
use shelf_reading::facts::{FACTS_VERSION, Facts};

use super::{
    Graph,
    docs::{Doc, Docs, Other},
    keys::{self, Key},
};
use crate::{Caller, Library, Result, readings::Origin};

/// Bytes of an old version that are read for its facts.
const MOST_BYTES: u64 = 8 << 20;

/// The path of a document within a snapshot; `None` when it is outside its root.
pub(super) fn relative<'p>(root: &str, path: &'p str) -> Option<&'p str> {
    let root = root.trim_end_matches('/');
    if root.is_empty() {
        return Some(path);
    }
    path.strip_prefix(root)?.strip_prefix('/').or_else(|| (path == root).then(|| super::paths::last(path)))
}

impl Graph<'_> {
    /// The documents of a snapshot that are still there, with the content that they had.
    pub(super) fn in_snapshot(&self, snapshot: &Snapshot) -> Result<HashMap<Doc, Digest>> {
        documents_of(self.library, &self.docs, snapshot, self.call)
    }
}

fn documents_of(
    library: &Library,
    docs: &Docs<'_>,
    snapshot: &Snapshot,
    call: &CallContext,
) -> Result<HashMap<Doc, Digest>> {
    let listing = library.listing(snapshot, call)?;
    let root = snapshot.draft.root.trim_end_matches('/');
    let mut found = HashMap::default();
    for entry in listing.files() {
        call.check()?;
        // A single file is its own root.
        let joined = if root.is_empty() { entry.path.clone() } else { format!("{root}/{}", entry.path) };
        for path in [joined.as_str(), root] {
            let same = docs.with_hash(Key::Path(path).hash(), 64).into_iter().find(|doc| {
                let known = docs.linked().known(*doc);
                known.path == path && known.collection == snapshot.collection
            });
            if let Some(doc) = same {
                found.insert(doc, entry.hash);
                break;
            }
        }
    }
    Ok(found)
}

impl Library {
    /// The documents of a caller, as they are now or as a snapshot has them.
    pub(super) fn graph_docs<'a>(
        &'a self,
        caller: &'a Caller,
        view: &'a View,
        filter: &Filter,
        snapshot: Option<&Snapshot>,
        call: &CallContext,
    ) -> Result<Docs<'a>> {
        let scope = caller.pass.scope();
        let docs = Docs::new(self, scope, view.linked(filter), HashMap::default());
        let Some(snapshot) = snapshot else { return Ok(docs) };
        let held = documents_of(self, &docs, snapshot, call)?;
        let mut others = HashMap::default();
        for (doc, hash) in &held {
            if docs.hash(*doc) != *hash {
                call.check()?;
                others.insert(*doc, self.as_it_was(&docs, *doc, hash, call)?);
            }
        }
        let numbers = held.keys().map(|doc| docs.number(*doc) as usize).collect();
        let narrowed = Filter { numbers: Some(numbers), ..filter.clone() };
        Ok(Docs::new(self, scope, view.linked(&narrowed), others))
    }

    /// A document with the content of an older version.
    fn as_it_was(&self, docs: &Docs<'_>, doc: Doc, hash: &Digest, call: &CallContext) -> Result<Other> {
        let row = docs.row(doc);
        let (path, title, mime, is_text) = match &row {
            Some(row) => (row.path.as_str(), row.title.as_str(), row.mime.as_str(), row.is_text),
            None => (docs.path(doc), "", "text/plain", true),
        };
        let facts = self.facts_of(&Origin { hash: *hash, path, mime, is_text }, call)?;
        let keys: HashSet<u32> = keys::of(path, title, hash, &facts).into_iter().collect();
        Ok(Other { hash: *hash, facts: Rc::new(facts), keys })
    }

    /// The facts of a content that the index does not hold, kept as derived data.
    fn facts_of(&self, origin: &Origin<'_>, call: &CallContext) -> Result<Facts> {
        if !origin.may_have_text() {
            return Ok(Facts::default());
        }
        let key = facts_key(origin);
        if let Some(known) = self.blobs.readings.record(&key).and_then(|record| Facts::decode(&record)) {
            return Ok(known);
        }
        let bytes = self.blobs.read_range(call, &origin.hash, 0..MOST_BYTES)?;
        let text = self.blobs.readings.text(origin, &bytes).map(|(text, _)| text);
        let facts = text.map_or_else(Facts::default, |text| {
            shelf_reading::facts::facts(origin.path, origin.mime, &text, Some(&bytes))
        });
        self.blobs.readings.keep(&key, &facts.encode());
        Ok(facts)
    }
}

fn facts_key(origin: &Origin<'_>) -> DerivedKey {
    let described =
        format!("facts {FACTS_VERSION} {} {}", origin.mime, shelf_reading::extension_of(origin.path));
    let hash = blake3::hash(described.as_bytes());
    let variant = hash.as_bytes().first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    DerivedKey { content: origin.hash, variant }
}
