//! `create_cat_tool`: creates a token for one collection.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_engine::{KeyRequest, Permission};

use super::common::collection_of;
use crate::{
    Family, Hints, Tool, arguments,
    family::ToolError,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "create_cat_tool",
    title: "Create a CAT",
    description: "Create a new Collection Access Token: it grants access to this one collection and nothing else. Its key is shown only once.",
    family: Family::Documents,
    audience: Audience::Personal,
    access: Access::ReadWrite,
    hints: Hints { read_only: false, destructive: false, idempotent: false, open_world: false },
    example: r#"{"label": "Work Laptop", "collection_id": "550e8400-e29b-41d4-a716-446655440002", "permission": "read_write", "expires_in_days": 90}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let permission = Permission::from_word(&arguments.permission)
            .ok_or_else(|| ToolError::argument("permission must be \"read\" or \"read_write\""))?;
        let request = KeyRequest { label: arguments.label, days: arguments.expires_in_days };
        let id = &arguments.collection_id;
        let minted = context.library.create_collection_token(context.caller, request, id, permission)?;
        let token = minted.token;
        reply(&Reply {
            id: token.id.to_string(),
            label: token.label,
            key: minted.text.reveal().to_owned(),
            collection_id: collection_of(token.kind),
            permission: Permission::word(token.scopes),
            created_at: token.created_at.to_string(),
            expires_at: token.expires_at.map(|at| at.to_string()),
        })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Descriptive label
    label: String,
    /// Collection UUID
    collection_id: String,
    /// read or read_write
    #[schemars(extend("enum" = ["read", "read_write"]))]
    permission: String,
    /// Expiry in days
    #[schemars(range(min = 1, max = 3650))]
    expires_in_days: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// CAT UUID
    id: String,
    /// Label
    label: String,
    /// The token itself, shown only once
    key: String,
    /// Collection UUID
    collection_id: String,
    /// read or read_write
    permission: &'static str,
    /// When it was created
    created_at: String,
    /// When it expires
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
}
