//! `update_document_tool`: changes the given fields of a document atomically.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use shelf_engine::ChangeRequest;

use super::common::{document_type, note};
use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "update_document_tool",
    title: "Update a document",
    description: "Update an existing document: only the given fields change, and new content atomically replaces the old \
                  content and its passages. doc_metadata replaces the whole object. Use store_document_tool for a new \
                  document.",
    family: Family::Documents,
    audience: Audience::Anyone,
    access: Access::Write,
    hints: Hints { read_only: false, destructive: true, idempotent: true, open_world: false },
    example: r##"{"document_id": "550e8400-e29b-41d4-a716-446655440004", "title": "Project Handbook"}"##,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let request = ChangeRequest {
            title: arguments.title,
            content: arguments.content,
            document_type: document_type(arguments.document_type.as_deref())?,
            metadata: arguments.doc_metadata,
        };
        let id = &arguments.document_id;
        let changed = context.library.change_document(context.caller, id, &request, context.call)?;
        reply(&Reply {
            document_id: changed.id.to_string(),
            chunk_count: changed.passages as u64,
            token_count: changed.tokens as u64,
            message: "Document updated successfully",
            note: note(&changed),
        })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Document UUID
    document_id: String,
    /// New title
    #[schemars(length(min = 1, max = 500))]
    title: Option<String>,
    /// New content
    content: Option<String>,
    /// New document type: markdown, pdf, docx, html, text or json
    #[schemars(extend("enum" = ["markdown", "pdf", "docx", "html", "text", "json"]))]
    document_type: Option<String>,
    /// New metadata, replacing the old
    doc_metadata: Option<Map<String, Value>>,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// Document UUID
    document_id: String,
    /// Number of passages
    chunk_count: u64,
    /// Number of tokens in the text
    token_count: u64,
    /// Confirmation message
    message: &'static str,
    /// Additional information, if any
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}
