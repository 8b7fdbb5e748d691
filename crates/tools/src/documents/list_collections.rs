//! `list_collections_tool`: the caller's collections.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_engine::CollectionSummary;

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply_part,
    schema,
    store::first_that_fit,
};

pub(crate) const TOOL: Tool = Tool {
    name: "list_collections_tool",
    title: "List collections",
    description: "List user's collections, newest first. Use get_collection_tool for details of one, and list_collections to see bytes and snapshots too.",
    family: Family::Documents,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Vec<CollectionView>>,
    run: |context, arguments| {
        let Arguments { limit, cursor } = arguments::read(arguments)?;
        // Newest first: the negated time sorts newer collections before older ones.
        let place = |summary: &CollectionSummary| {
            (-summary.collection.created_at.micros(), summary.collection.id.to_string())
        };
        let (found, total) = context.library.collections_after(context.caller, place, cursor.as_deref())?;
        let shown = first_that_fit(found.iter().map(view), limit, context.page_chars);
        let next_cursor = match found.get(shown.len().wrapping_sub(1)) {
            Some(last) if shown.len() < found.len() => {
                Some(context.library.cursor_after_collection(context.caller, &place(last))?)
            }
            _ => None,
        };
        let is_cut = next_cursor.is_some();
        reply_part(&shown, total, next_cursor, is_cut)
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Maximum number of collections on this page
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// nextCursor of the previous page
    cursor: Option<String>,
}

fn view(summary: &CollectionSummary) -> CollectionView {
    let collection = &summary.collection;
    CollectionView {
        id: collection.id.to_string(),
        name: collection.name.clone(),
        kind: collection.kind.word(),
        created_at: collection.created_at.to_string(),
    }
}

#[derive(Serialize, JsonSchema)]
struct CollectionView {
    /// Collection UUID
    id: String,
    /// Name
    name: String,
    /// plain or book
    kind: &'static str,
    /// When it was created
    created_at: String,
}
