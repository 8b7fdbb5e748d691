//! `list_collections`: the caller's collections.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::first_that_fit;
use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "list_collections",
    title: "List collections",
    description: "List available collections with their numbers of documents, bytes and snapshots, and their times. Use list \
                  with collection for the documents of one.",
    family: Family::Store,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: "{}",
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let Arguments { limit, cursor } = arguments::read(arguments)?;
        let place = |summary: &shelf_engine::CollectionSummary| {
            (summary.collection.name.clone(), summary.collection.id.to_string())
        };
        let (found, total) = context.library.collections_after(context.caller, place, cursor.as_deref())?;
        let view = |summary: &shelf_engine::CollectionSummary| CollectionView {
            name: summary.collection.name.clone(),
            collection_id: summary.collection.id.to_string(),
            kind: summary.collection.kind.word().into(),
            model: summary.collection.model.clone(),
            document_count: summary.documents,
            bytes: summary.bytes,
            snapshot_count: summary.snapshots,
            created_at: summary.collection.created_at.to_string(),
            updated_at: summary.updated_at.map(|at| at.to_string()),
        };
        let shown = first_that_fit(found.iter().map(view), limit, context.page_chars);
        let next_cursor = match found.get(shown.len().wrapping_sub(1)) {
            Some(last) if shown.len() < found.len() => {
                Some(context.library.cursor_after_collection(context.caller, &place(last))?)
            }
            _ => None,
        };
        reply(&Reply { collections: shown, total, next_cursor })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Maximum number of collections on this page
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// next_cursor of the previous page
    cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// The collections on this page, by name
    collections: Vec<CollectionView>,
    /// Total number of collections
    total: u64,
    /// Cursor of the next page; null on the last page
    #[schemars(extend("x-or-null" = true))]
    next_cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct CollectionView {
    /// Name
    name: String,
    /// Collection UUID
    collection_id: String,
    /// plain or book
    kind: String,
    /// Embedding model it is searched with; absent for the built-in one
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// Number of documents
    document_count: u64,
    /// Total size of the documents in bytes
    bytes: u64,
    /// Number of snapshots
    snapshot_count: u64,
    /// When it was created
    created_at: String,
    /// When a document in it was last stored
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_at: Option<String>,
}
