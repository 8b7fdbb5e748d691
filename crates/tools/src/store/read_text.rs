//! `read_text`: the text of a document, extracted where its content is not text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "read_text",
    title: "Read the text of a document",
    description: "Return lines of the text of a document by its UUID: of the content itself, or the text extracted from a \
                  PDF, DOCX, HTML or other file, with the line on which each page begins. Search hits refer to these \
                  lines. Use get for the exact bytes.",
    family: Family::Store,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"document_id": "550e8400-e29b-41d4-a716-446655440004", "first_line": 1, "max_lines": 50}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let lines = (arguments.first_line.unwrap_or(1), arguments.max_lines.unwrap_or(LINES));
        let which = (arguments.document_id.as_str(), arguments.hash.as_deref());
        let found = context.library.text_part(context.caller, which, lines, context.call)?;
        reply(&found.map_or_else(Reply::default, |part| {
            let shown = part.text.lines().count() as u64;
            let last = part.first_line.saturating_add(shown).saturating_sub(1);
            Reply {
                has_text: true,
                first_line: part.first_line,
                last_line: last,
                total_lines: part.total_lines,
                as_stored: part.as_stored,
                truncated: last < part.total_lines,
                pages: part.pages,
                text: part.text,
            }
        }))
    },
};

/// Lines unless more are asked for.
const LINES: u64 = 2_000;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Document UUID
    document_id: String,
    /// Hash of an older version, or the first 8 or more digits of it
    hash: Option<String>,
    /// First line, from 1
    #[schemars(range(min = 1))]
    first_line: Option<u64>,
    /// Maximum number of lines
    #[schemars(range(min = 1, max = 100_000), extend("default" = 2_000))]
    max_lines: Option<u64>,
}

#[derive(Default, Serialize, JsonSchema)]
struct Reply {
    /// Whether the document has text
    has_text: bool,
    /// The lines
    text: String,
    /// First line of the reply
    first_line: u64,
    /// Last line of the reply
    last_line: u64,
    /// Number of lines of the whole text
    total_lines: u64,
    /// Whether the text is the content as stored, not extracted from it
    as_stored: bool,
    /// Whether lines follow
    truncated: bool,
    /// The line on which each page begins; empty when there are no pages
    pages: Vec<u64>,
}
