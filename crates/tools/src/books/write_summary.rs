//! `write_summary`: writes a chapter's summary.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "write_summary",
    title: "Write chapter summary",
    description: "Create or update chapter summary (idempotent upsert). Use write_content for lessons.",
    family: Family::Books,
    audience: Audience::Personal,
    access: Access::Write,
    hints: Hints { read_only: false, destructive: false, idempotent: true, open_world: false },
    example: r#"{"book_id": "ai-native-python", "chapter_id": "chapter-01", "content": "Key concepts of chapter 1."}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let Arguments { book_id, chapter_id, content } = arguments::read(arguments)?;
        let place = (book_id.as_str(), chapter_id.as_str());
        let written = context.library.write_book_summary(context.caller, place, &content, context.call)?;
        reply(&Reply {
            status: "success",
            path: written.path,
            file_size: written.size,
            sha256: written.hash.to_string(),
        })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Book identifier (lowercase alphanumeric + hyphens)
    book_id: String,
    /// Chapter identifier (format: chapter-NN)
    chapter_id: String,
    /// Summary markdown (max 100KB)
    content: String,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// success
    status: &'static str,
    /// Full path of the summary
    path: String,
    /// Size in bytes
    file_size: u64,
    /// SHA-256 of the content
    sha256: String,
}
