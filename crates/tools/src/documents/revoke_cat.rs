//! `revoke_cat_tool`: revokes a collection token.

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
    name: "revoke_cat_tool",
    title: "Revoke a CAT",
    description: "Revoke a CAT: it stops working immediately and cannot be restored. Use rotate_cat_tool to replace a leaked key.",
    family: Family::Documents,
    audience: Audience::Personal,
    access: Access::Write,
    hints: Hints { read_only: false, destructive: true, idempotent: true, open_world: false },
    example: r#"{"key_id": "550e8400-e29b-41d4-a716-446655440003"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Done>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        context.library.revoke_collection_token(context.caller, &arguments.key_id)?;
        reply(&Done { message: "CAT revoked successfully" })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// CAT UUID
    key_id: String,
}
