//! `rotate_cat_tool`: replaces the key of a collection token.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_engine::Permission;

use super::common::collection_of;
use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "rotate_cat_tool",
    title: "Rotate a CAT",
    description: "Rotate a CAT: generate a new token and immediately revoke the old one. ID, label, permission and lifetime stay the same; the new key is shown only once.",
    family: Family::Documents,
    audience: Audience::Personal,
    access: Access::ReadWrite,
    hints: Hints { read_only: false, destructive: true, idempotent: false, open_world: false },
    example: r#"{"key_id": "550e8400-e29b-41d4-a716-446655440003"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let (rotated, key) = context.library.rotate_collection_token(context.caller, &arguments.key_id)?;
        let token = rotated.token;
        reply(&Reply {
            id: token.id.to_string(),
            label: token.label,
            key: key.reveal().to_owned(),
            collection_id: collection_of(token.kind),
            permission: Permission::word(token.scopes),
            expires_at: token.expires_at.map(|at| at.to_string()),
        })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// CAT UUID
    key_id: String,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// CAT UUID
    id: String,
    /// Label
    label: String,
    /// The new token, shown only once
    key: String,
    /// Collection UUID
    collection_id: String,
    /// read or read_write
    permission: &'static str,
    /// When it expires
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
}
