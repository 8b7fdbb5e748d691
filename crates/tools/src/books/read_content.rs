//! `read_content`: reads a lesson.

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
    name: "read_content",
    title: "Read lesson content",
    description: "Read lesson markdown content with metadata. Pass file_hash_sha256 to write_content to detect that somebody else changed the lesson. Use read_summary for chapter summaries.",
    family: Family::Books,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"book_id": "ai-native-python", "path": "lessons/part-1/chapter-01/lesson-01.md"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let Arguments { book_id, path } = arguments::read(arguments)?;
        let file = context.library.read_book_content(context.caller, &book_id, &path, context.call)?;
        reply(&Reply {
            content: file.content,
            file_size: file.size,
            last_modified: file.modified_at.to_string(),
            storage_backend: BACKEND,
            file_hash_sha256: file.hash.to_string(),
        })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Book identifier (lowercase alphanumeric + hyphens)
    book_id: String,
    /// Relative path within the book
    path: String,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// Content of the file
    content: String,
    /// Size in bytes
    file_size: u64,
    /// When it was last written
    last_modified: String,
    /// Where the content is stored: fs or s3
    storage_backend: &'static str,
    /// SHA-256 of the content
    file_hash_sha256: String,
}
