//! `undelete_document`: brings a deleted document back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_engine::UndeleteRequest;

use super::common::Pairs;
use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "undelete_document",
    title: "Bring back a deleted document",
    description: "Store the last version of a deleted document again, at the path and in the collection that it had, under \
                  a new UUID. Possible until garbage collection frees its content. Tags and metadata are not kept after \
                  a deletion: give those that it should have. activity lists what was deleted.",
    family: Family::Store,
    audience: Audience::Personal,
    access: Access::Write,
    hints: Hints { read_only: false, destructive: false, idempotent: false, open_world: false },
    example: r#"{"document_id": "550e8400-e29b-41d4-a716-446655440005", "tags": ["bird"]}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let request = UndeleteRequest {
            document_id: arguments.document_id,
            tags: arguments.tags,
            metadata: arguments.metadata.map_or_else(|| Ok(serde_json::Map::new()), Pairs::object)?,
        };
        let done = context.library.undelete(context.caller, &request, context.call)?;
        reply(&Reply {
            document_id: done.id.to_string(),
            path: done.path,
            collection: done.collection,
            hash: done.hash.to_string(),
        })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// UUID that the document had
    document_id: String,
    /// Tags to give it
    #[serde(default)]
    tags: Vec<String>,
    /// Metadata to give it, as key=value pairs or an object
    metadata: Option<Pairs>,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// New document UUID
    document_id: String,
    /// Path of the document
    path: String,
    /// Collection
    collection: String,
    /// SHA-256 of its content
    hash: String,
}
