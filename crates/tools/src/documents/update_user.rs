//! `update_user_tool`: changes an account.

use schemars::JsonSchema;
use serde::Deserialize;
use shelf_engine::AccountUpdate;

use super::common::UserView;
use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "update_user_tool",
    title: "Update a user",
    description: "Update user details: only the given fields change. A user who is deactivated, or whose password changes, is logged out immediately.",
    family: Family::Documents,
    audience: Audience::Administrators,
    access: Access::Write,
    hints: Hints { read_only: false, destructive: true, idempotent: true, open_world: false },
    example: r#"{"user_id": "550e8400-e29b-41d4-a716-446655440000", "is_active": false}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<UserView>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let update = AccountUpdate {
            email: arguments.email,
            username: arguments.username,
            password: arguments.password,
            is_active: arguments.is_active,
            is_superuser: arguments.is_superuser,
        };
        let changed = context.library.update_user(context.caller, &arguments.user_id, update)?;
        reply(&UserView::from(&changed))
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// User UUID
    user_id: String,
    /// New email
    email: Option<String>,
    /// New username
    username: Option<String>,
    /// New password, at least 10 characters
    password: Option<String>,
    /// Active status
    is_active: Option<bool>,
    /// Superuser status
    is_superuser: Option<bool>,
}
