//! `grep_search`: finds lines of lessons.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_engine::BookMatch;

use crate::{
    Family, Hints, Tool, arguments,
    family::ToolError,
    policy::{Access, Audience},
    registry::reply_first,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "grep_search",
    title: "Search lesson content",
    description: "Search content using regex pattern. Only Markdown (.md) files are searched. Use search to find lessons by meaning.",
    family: Family::Books,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"book_id": "ai-native-python", "pattern": "OpenDAL"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Vec<Match>>,
    run: |context, arguments| {
        let Arguments { book_id, pattern, all_books, max_results } = arguments::read(arguments)?;
        let most = max_results.unwrap_or(100);
        if !(1..=1_000).contains(&most) {
            return Err(ToolError::argument("max_results must be 1 to 1000"));
        }
        let most = most as usize;
        let place = (book_id.as_str(), all_books);
        let found = context.library.grep_books(context.caller, place, &pattern, most + 1, context.call)?;
        let view = |found: BookMatch| Match {
            file_path: found.path,
            line_number: found.line,
            matched_line: found.text,
        };
        reply_first(found.into_iter().map(view).collect(), most)
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Book identifier (lowercase alphanumeric + hyphens)
    book_id: String,
    /// Regex pattern
    pattern: String,
    /// Search all books (default: false)
    #[serde(default)]
    all_books: bool,
    /// Maximum results (default: 100, max: 1000)
    #[schemars(range(min = 1, max = 1000))]
    max_results: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Match {
    /// Full path of the file
    file_path: String,
    /// Number of the line, from 1
    line_number: u64,
    /// The line
    matched_line: String,
}
