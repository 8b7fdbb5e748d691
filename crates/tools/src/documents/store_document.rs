//! `store_document_tool`: stores a titled document, which is split into passages and immediately searchable.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use shelf_engine::StoreRequest;

use super::common::{document_type, note};
use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "store_document_tool",
    title: "Store a document",
    description: "Store a document with automatic chunking and embedding; search_documents_tool finds it immediately. \
                  Storing the same title and content again returns the same document as it is. Use update_document_tool to \
                  change a document, and add to store files and folders.",
    family: Family::Documents,
    audience: Audience::Anyone,
    access: Access::Write,
    hints: Hints { read_only: false, destructive: false, idempotent: true, open_world: false },
    example: r##"{"title": "Project Documentation", "content": "# Overview\n\nAuthentication is configured via environment variables.", "document_type": "markdown", "doc_metadata": {"team": "core"}}"##,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let request = StoreRequest {
            title: arguments.title,
            content: arguments.content,
            document_type: document_type(arguments.document_type.as_deref())?,
            metadata: arguments.doc_metadata,
            collection: arguments.collection_id,
        };
        let stored = context.library.store_document(context.caller, &request, context.call)?;
        reply(&Reply {
            document_id: stored.id.to_string(),
            chunk_count: stored.passages as u64,
            token_count: stored.tokens as u64,
            message: format!("Document stored successfully with {} chunks", stored.passages),
            note: note(&stored),
        })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Document title
    #[schemars(length(min = 1, max = 500))]
    title: String,
    /// Markdown content; for pdf and docx, the file as base64 or its text
    #[schemars(length(min = 1))]
    content: String,
    /// Type: markdown (default), pdf, docx, html, text or json
    #[schemars(extend("enum" = ["markdown", "pdf", "docx", "html", "text", "json"]))]
    document_type: Option<String>,
    /// Custom metadata
    #[serde(default)]
    doc_metadata: Map<String, Value>,
    /// Collection UUID (default: your collection named default, or the CAT's collection)
    collection_id: Option<String>,
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
    message: String,
    /// Additional information, if any
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}
