//! `get_collection_tool`: details of one collection.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "get_collection_tool",
    title: "Get a collection",
    description: "Get collection details: its owner, and its numbers of documents and active CATs. Use list_documents_tool with collection_id to list the documents.",
    family: Family::Documents,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"collection_id": "550e8400-e29b-41d4-a716-446655440002"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let found = context.library.collection_by_id(context.caller, &arguments.collection_id)?;
        let collection = found.collection;
        reply(&Reply {
            id: collection.id.to_string(),
            cat_count: context.library.active_collection_tokens(collection.id)?,
            name: collection.name,
            user_id: collection.owner.to_string(),
            document_count: found.documents,
            kind: collection.kind.word(),
            created_at: collection.created_at.to_string(),
        })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Collection UUID
    collection_id: String,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// Collection UUID
    id: String,
    /// Name
    name: String,
    /// UUID of the owner
    user_id: String,
    /// Number of documents
    document_count: u64,
    /// Number of active CATs
    cat_count: u64,
    /// plain or book
    kind: &'static str,
    /// When it was created
    created_at: String,
}
