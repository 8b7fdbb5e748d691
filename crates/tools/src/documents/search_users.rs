//! `search_users_tool`: finds accounts by part of their username or email.

use schemars::JsonSchema;
use serde::Deserialize;

use super::common::{UserView, page_size};
use crate::{
    Family, Hints, Tool, arguments,
    family::ToolError,
    policy::{Access, Audience},
    registry::reply_part,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "search_users_tool",
    title: "Search users",
    description: "Search users by username or email: matches any part of either, ignoring case. Use list_users_tool to list all users.",
    family: Family::Documents,
    audience: Audience::Administrators,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"query": "alice"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Vec<UserView>>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let limit = page_size(arguments.limit)?;
        let query = arguments.query.trim();
        if query.is_empty() {
            return Err(ToolError::argument("query must not be empty"));
        }
        arguments::one_start(arguments.offset, arguments.cursor.as_deref())?;
        let from = (arguments.offset, arguments.cursor.as_deref());
        let (found, total, next) = context.library.users_page(context.caller, Some(query), limit, from)?;
        let users: Vec<UserView> = found.iter().map(UserView::from).collect();
        let is_cut = next.is_some();
        reply_part(&users, total, next, is_cut)
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Search query
    query: String,
    /// Max results
    #[serde(default = "fifty")]
    #[schemars(range(min = 1))]
    limit: u64,
    /// Pagination offset
    #[serde(default)]
    offset: u64,
    /// nextCursor of the previous page, instead of offset
    cursor: Option<String>,
}

const fn fifty() -> u64 {
    50
}
