//! `list_collections_tool`: the caller's collections.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_engine::CollectionSummary;

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply_part,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "list_collections_tool",
    title: "List collections",
    description: "List user's collections, newest first. Use get_collection_tool for the figures of one; list_collections shows bytes and snapshots too.",
    family: Family::Documents,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Vec<CollectionView>>,
    run: |context, arguments| {
        let Arguments {} = arguments::read(arguments)?;
        let mut found = context.house.collections(context.caller)?;
        found
            .sort_by_key(|summary| (std::cmp::Reverse(summary.collection.created_at), summary.collection.id));
        let collections: Vec<CollectionView> = found.iter().map(view).collect();
        reply_part(&collections, collections.len() as u64, None, false)
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {}

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
    /// When it was made
    created_at: String,
}
