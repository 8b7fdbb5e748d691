//! `delete_document_tool`: deletes a document.

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
    name: "delete_document_tool",
    title: "Delete a document",
    description: "Delete a document by ID; searches no longer find it. Use delete_by_name to delete documents by path or pattern.",
    family: Family::Documents,
    audience: Audience::Anyone,
    access: Access::Write,
    hints: Hints { read_only: false, destructive: true, idempotent: true, open_world: false },
    example: r#"{"document_id": "550e8400-e29b-41d4-a716-446655440004"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Done>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        context.library.delete_document(context.caller, &arguments.document_id, context.call)?;
        reply(&Done { message: "Document deleted successfully" })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Document UUID
    document_id: String,
}
