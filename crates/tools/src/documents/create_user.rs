//! `create_user`: makes an account for somebody.

use schemars::JsonSchema;
use serde::Deserialize;
use shelf_engine::Registration;

use super::common::UserView;
use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "create_user",
    title: "Create a user",
    description: "Create an account for somebody, with a first password that they should change. Use update_user_tool to \
                  change or deactivate an account. For administrators.",
    family: Family::Documents,
    audience: Audience::Administrators,
    access: Access::Write,
    hints: Hints { read_only: false, destructive: false, idempotent: false, open_world: false },
    example: r#"{"username": "bob", "email": "bob@example.com", "password": "a first password"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<UserView>,
    run: |context, arguments| {
        let Arguments { username, email, password, is_superuser } = arguments::read(arguments)?;
        let request = Registration { email, username, password };
        let made = context.library.create_user(context.caller, request, is_superuser)?;
        reply(&UserView::from(&made))
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Username
    username: String,
    /// Email address
    email: String,
    /// First password, at least 10 characters
    password: String,
    /// Whether the user is an administrator
    #[serde(default)]
    is_superuser: bool,
}
