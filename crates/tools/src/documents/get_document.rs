//! `get_document_tool`: one document with its full content.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use shelf_engine::DocumentType;

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "get_document_tool",
    title: "Get a document",
    description: "Retrieve a document by ID with its full content and metadata. Use search_documents_tool when you only need \
                  the passages that answer a question, and get for documents by path or hash.",
    family: Family::Documents,
    audience: Audience::Anyone,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"document_id": "550e8400-e29b-41d4-a716-446655440004"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let found = context.library.whole_document(context.caller, &arguments.document_id, context.call)?;
        let document = found.document;
        reply(&Reply {
            id: document.id.to_string(),
            document_type: DocumentType::of(&document).word().into(),
            title: document.title,
            content: found.content,
            encoding: found.is_base64.then_some("base64"),
            collection_id: document.collection.to_string(),
            metadata: document.metadata,
            created_at: document.created_at.to_string(),
            hash: document.version.hash.to_string(),
            version: document.version.number,
        })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Document UUID
    document_id: String,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// Document UUID
    id: String,
    /// Title
    title: String,
    /// Content exactly as stored
    content: String,
    /// base64 when content is a base64-encoded file; absent for text
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<&'static str>,
    /// Collection UUID
    collection_id: String,
    /// markdown, pdf, docx, html, text or json
    document_type: String,
    /// Custom metadata
    metadata: Map<String, Value>,
    /// When the document was created
    created_at: String,
    /// SHA-256 of the current content
    hash: String,
    /// Current version number
    version: u32,
}
