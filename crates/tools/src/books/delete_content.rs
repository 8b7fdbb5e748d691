//! `delete_content`: deletes a lesson.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "delete_content",
    title: "Delete lesson content",
    description: "Delete lesson content file. Deleting a file that does not exist succeeds with existed: false. Earlier versions stay in the history.",
    family: Family::Books,
    audience: Audience::Personal,
    access: Access::Write,
    hints: Hints { read_only: false, destructive: true, idempotent: true, open_world: false },
    example: r#"{"book_id": "ai-native-python", "path": "lessons/part-1/chapter-01/lesson-01.md"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let Arguments { book_id, path } = arguments::read(arguments)?;
        let (path, existed) =
            context.library.delete_book_content(context.caller, &book_id, &path, context.call)?;
        let message = if existed { "File deleted" } else { "File did not exist" };
        reply(&Reply { status: "success", path, existed, message })
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
    /// success
    status: &'static str,
    /// Full path of the file
    path: String,
    /// Whether the file was there
    existed: bool,
    /// What was done
    message: &'static str,
}
