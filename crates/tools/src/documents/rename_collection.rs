//! `rename_collection_tool`: renames a collection.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "rename_collection_tool",
    title: "Rename a collection",
    description: "Rename a collection. Its ID, documents and CATs do not change.",
    family: Family::Documents,
    audience: Audience::Personal,
    access: Access::Write,
    hints: Hints { read_only: false, destructive: false, idempotent: true, open_world: false },
    example: r#"{"collection_id": "550e8400-e29b-41d4-a716-446655440002", "name": "personal"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let renamed =
            context.library.rename_collection(context.caller, &arguments.collection_id, &arguments.name)?;
        reply(&Reply {
            id: renamed.id.to_string(),
            name: renamed.name,
            created_at: renamed.created_at.to_string(),
        })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Collection UUID
    collection_id: String,
    /// New name
    #[schemars(length(min = 1, max = 100))]
    name: String,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// Collection UUID
    id: String,
    /// Name
    name: String,
    /// When it was created
    created_at: String,
}
