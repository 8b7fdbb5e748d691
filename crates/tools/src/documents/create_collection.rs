//! `create_collection_tool`: creates a collection.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "create_collection_tool",
    title: "Create a collection",
    description: "Create a new collection for documents that belong together; a CAT shares a collection as a whole. Use list_collections_tool to see the existing ones.",
    family: Family::Documents,
    audience: Audience::Personal,
    access: Access::Write,
    hints: Hints { read_only: false, destructive: false, idempotent: false, open_world: false },
    example: r#"{"name": "work"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let made = context.library.create_collection(context.caller, &arguments.name)?;
        reply(&Reply {
            id: made.id.to_string(),
            name: made.name,
            user_id: made.owner.to_string(),
            created_at: made.created_at.to_string(),
        })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Collection name
    #[schemars(length(min = 1, max = 100))]
    name: String,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// Collection UUID
    id: String,
    /// Name
    name: String,
    /// UUID of the owner
    user_id: String,
    /// When it was created
    created_at: String,
}
