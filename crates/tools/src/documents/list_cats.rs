//! `list_cats_tool`: tokens of the caller's collections.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_base::Moment;
use shelf_engine::{Permission, TokenRow};

use super::common::collection_of;
use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply_part,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "list_cats_tool",
    title: "List CATs",
    description: "List CATs for user's collections, including revoked and expired ones, never with their keys. Admins see all tokens.",
    family: Family::Documents,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Vec<TokenView>>,
    run: |context, arguments| {
        let Arguments {} = arguments::read(arguments)?;
        let now = context.library.now();
        let found = context.library.collection_tokens(context.caller)?;
        let tokens: Vec<TokenView> = found.iter().map(|token| view(token, now)).collect();
        reply_part(&tokens, tokens.len() as u64, None, false)
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {}

fn view(found: &TokenRow, now: Moment) -> TokenView {
    let token = &found.token;
    TokenView {
        id: token.id.to_string(),
        label: token.label.clone(),
        collection_id: collection_of(token.kind),
        collection_name: found.collection_name.clone().unwrap_or_default(),
        permission: Permission::word(token.scopes),
        created_at: token.created_at.to_string(),
        expires_at: token.expires_at.map(|at| at.to_string()),
        last_used_at: found.last_used_at.map(|at| at.to_string()),
        is_active: found.is_active(now),
    }
}

#[derive(Serialize, JsonSchema)]
struct TokenView {
    /// CAT UUID
    id: String,
    /// Label
    label: String,
    /// Collection UUID
    collection_id: String,
    /// Name of the collection
    collection_name: String,
    /// read or read_write
    permission: &'static str,
    /// When it was created
    created_at: String,
    /// When it expires; null when it does not
    // Always present, and null for a token that does not expire.
    #[schemars(extend("x-or-null" = true))]
    expires_at: Option<String>,
    /// When it was last used, accurate to about a minute
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_at: Option<String>,
    /// Whether it is active
    is_active: bool,
}
