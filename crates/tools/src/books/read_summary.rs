//! `read_summary`: reads a chapter's summary.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::BACKEND;
use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "read_summary",
    title: "Read chapter summary",
    description: "Read chapter summary with metadata. Use read_content for lessons.",
    family: Family::Books,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"book_id": "ai-native-python", "chapter_id": "chapter-01"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let Arguments { book_id, chapter_id } = arguments::read(arguments)?;
        let file = context.library.read_book_summary(context.caller, &book_id, &chapter_id, context.call)?;
        reply(&Reply {
            path: file.path,
            content: file.content,
            file_size: file.size,
            last_modified: file.modified_at.to_string(),
            storage_backend: BACKEND,
            sha256: file.hash.to_string(),
        })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Book identifier (lowercase alphanumeric + hyphens)
    book_id: String,
    /// Chapter identifier (format: chapter-NN)
    chapter_id: String,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// Full path of the summary
    path: String,
    /// Content of the summary
    content: String,
    /// Size in bytes
    file_size: u64,
    /// When it was last written
    last_modified: String,
    /// Where the content is stored: fs or s3
    storage_backend: &'static str,
    /// SHA-256 of the content
    sha256: String,
}
