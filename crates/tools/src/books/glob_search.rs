//! `glob_search`: finds files of books by name.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply_list,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "glob_search",
    title: "Search files by glob",
    description: "Search for files matching glob pattern: ** matches folders, * and ? match within a name. Use grep_search to search their content.",
    family: Family::Books,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"book_id": "ai-native-python", "pattern": "**/*.md"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Vec<String>>,
    run: |context, arguments| {
        let Arguments { book_id, pattern, all_books } = arguments::read(arguments)?;
        reply_list(&context.library.glob_books(
            context.caller,
            &book_id,
            &pattern,
            all_books,
            context.call,
        )?)
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Book identifier (lowercase alphanumeric + hyphens)
    book_id: String,
    /// Glob pattern (supports **, *, ?)
    pattern: String,
    /// Search all books (default: false)
    #[serde(default)]
    all_books: bool,
}
