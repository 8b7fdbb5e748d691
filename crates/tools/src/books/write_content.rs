//! `write_content`: writes a lesson.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Family, Hints, Tool, arguments,
    family::ToolError,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "write_content",
    title: "Write lesson content",
    description: "Write lesson content with upsert semantics and optional conflict detection: with file_hash the write succeeds only if the file still has that hash. A book is created by the first write to it.",
    family: Family::Books,
    audience: Audience::Personal,
    access: Access::Write,
    hints: Hints { read_only: false, destructive: false, idempotent: true, open_world: false },
    example: r#"{"book_id": "ai-native-python", "path": "lessons/part-1/chapter-01/lesson-01.md", "content": "Welcome to lesson 1."}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let Arguments { book_id, path, content, file_hash, expected_hash } = arguments::read(arguments)?;
        if let (Some(one), Some(other)) = (&file_hash, &expected_hash)
            && !one.eq_ignore_ascii_case(other)
        {
            return Err(ToolError::argument(
                "file_hash and expected_hash are the same argument; give one of them",
            ));
        }
        let expected = file_hash.or(expected_hash);
        let (library, caller) = (context.library, context.caller);
        let place = (book_id.as_str(), path.as_str());
        let written =
            library.write_book_content(caller, place, &content, expected.as_deref(), context.call)?;
        reply(&Reply {
            status: "success",
            path: written.path,
            file_size: written.size,
            file_hash: written.hash.to_string(),
            mode: if written.is_new { "created" } else { "updated" },
        })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Book identifier (lowercase alphanumeric + hyphens)
    book_id: String,
    /// Relative path within the book
    path: String,
    /// Markdown content (max 1MB)
    content: String,
    /// SHA256 hash for conflict detection
    file_hash: Option<String>,
    /// The same as file_hash
    expected_hash: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// success
    status: &'static str,
    /// Full path of the file
    path: String,
    /// Size in bytes
    file_size: u64,
    /// SHA-256 of the new content
    file_hash: String,
    /// created or updated
    mode: &'static str,
}
