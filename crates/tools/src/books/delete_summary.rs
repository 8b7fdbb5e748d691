//! `delete_summary`: deletes a chapter's summary.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "delete_summary",
    title: "Delete chapter summary",
    description: "Delete chapter summary. A summary that does not exist is an error.",
    family: Family::Books,
    audience: Audience::Personal,
    access: Access::Write,
    hints: Hints { read_only: false, destructive: true, idempotent: true, open_world: false },
    example: r#"{"book_id": "ai-native-python", "chapter_id": "chapter-01"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let Arguments { book_id, chapter_id } = arguments::read(arguments)?;
        let path =
            context.library.delete_book_summary(context.caller, &book_id, &chapter_id, context.call)?;
        reply(&Reply { status: "success", path, message: "Summary deleted" })
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
    /// success
    status: &'static str,
    /// Full path of the summary
    path: String,
    /// What was done
    message: &'static str,
}
