//! `delete_collection_tool`: deletes a collection and everything in it.

use schemars::JsonSchema;
use serde::Deserialize;

use super::common::Done;
use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "delete_collection_tool",
    title: "Delete a collection",
    description: "Delete a collection with its documents and snapshots. Refused while it has active CATs: revoke them first with revoke_cat_tool.",
    family: Family::Documents,
    audience: Audience::Personal,
    access: Access::Write,
    hints: Hints { read_only: false, destructive: true, idempotent: true, open_world: false },
    example: r#"{"collection_id": "550e8400-e29b-41d4-a716-446655440002"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Done>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        context.library.delete_collection(context.caller, &arguments.collection_id, context.call)?;
        reply(&Done { message: "Collection deleted successfully" })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Collection UUID
    collection_id: String,
}
