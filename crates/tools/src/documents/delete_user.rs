//! `delete_user_tool`: deletes an account and everything it owns.

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
    name: "delete_user_tool",
    title: "Delete a user",
    description: "Delete a user and everything they own: collections, documents, snapshots and tokens. Use update_user_tool with is_active false to deactivate an account and keep its documents.",
    family: Family::Documents,
    audience: Audience::Administrators,
    access: Access::Write,
    hints: Hints { read_only: false, destructive: true, idempotent: true, open_world: false },
    example: r#"{"user_id": "550e8400-e29b-41d4-a716-446655440000"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Done>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        context.library.delete_user(context.caller, &arguments.user_id, context.call)?;
        reply(&Done { message: "User deleted successfully" })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// User UUID
    user_id: String,
}
