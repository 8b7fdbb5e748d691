//! `get_user_tool`: one account.

use schemars::JsonSchema;
use serde::Deserialize;

use super::common::UserView;
use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "get_user_tool",
    title: "Get a user",
    description: "Get user details by ID. Use search_users_tool to find the ID.",
    family: Family::Documents,
    audience: Audience::Administrators,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"user_id": "550e8400-e29b-41d4-a716-446655440000"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<UserView>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let found = context.library.user(context.caller, &arguments.user_id)?;
        reply(&UserView::from(&found))
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// User UUID
    user_id: String,
}
