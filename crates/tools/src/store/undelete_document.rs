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
    description: "Bring a deleted document back as it was: with its UUID, path, title, type, tags, metadata and versions. \
                  Possible until garbage collection frees its content; if that has forgotten the rest already, the last \
                  version comes back at its path under a new UUID, and note says so. activity lists what was deleted.",
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
            metadata: arguments.metadata.map(Pairs::object).transpose()?,
        };
        let done = context.library.undelete(context.caller, &request, context.call)?;
        reply(&Reply {
            document_id: done.id.to_string(),
            path: done.path,
            collection: done.collection,
            hash: done.hash.to_string(),
            note: (!done.is_whole).then_some(FORGOTTEN),
        })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// UUID that the document had
    document_id: String,
    /// Tags to give it, in place of those that it had
    tags: Option<Vec<String>>,
    /// Metadata to give it, as key=value pairs or an object, in place of what it had
    metadata: Option<Pairs>,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// Document UUID
    document_id: String,
    /// Path of the document
    path: String,
    /// Collection
    collection: String,
    /// SHA-256 of its content
    hash: String,
    /// Additional information, if any
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

const FORGOTTEN: &str = "garbage collection has forgotten the document: its last version is back at its path under a new \
                         UUID, without its title, type, earlier versions, and any tags and metadata that were not given";
