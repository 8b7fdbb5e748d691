//! `describe_document`: one document by id, with its versions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_engine::DocumentType;

use super::common::DocumentView;
use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "describe_document",
    title: "Describe a document",
    description: "Return what is known about a document by its UUID: path, title, type, tags, metadata, and all of its \
                  versions with hash, size and times. Use read_text for its text and get for its content.",
    family: Family::Store,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"document_id": "550e8400-e29b-41d4-a716-446655440004"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let found = context.library.describe(context.caller, &arguments.document_id)?;
        reply(&Reply {
            collection_id: found.document.collection.to_string(),
            document_type: DocumentType::given(&found.document).map(DocumentType::word),
            document: DocumentView::from(&found.document),
            versions: found
                .versions
                .into_iter()
                .map(|version| VersionView {
                    version: version.number,
                    hash: version.hash.to_string(),
                    size: version.size,
                    modified_at: version.modified_at.to_string(),
                    indexed_at: version.indexed_at.to_string(),
                })
                .collect(),
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
    /// The document
    document: DocumentView,
    /// Collection UUID
    collection_id: String,
    /// Type that its author gave it: markdown, pdf, docx, html, text or json
    #[serde(skip_serializing_if = "Option::is_none")]
    document_type: Option<&'static str>,
    /// Its versions, newest first
    versions: Vec<VersionView>,
}

#[derive(Serialize, JsonSchema)]
struct VersionView {
    /// Version number
    version: u32,
    /// SHA-256 of the content
    hash: String,
    /// Size in bytes
    size: u64,
    /// When the file itself was last modified
    modified_at: String,
    /// When this version was stored
    indexed_at: String,
}
