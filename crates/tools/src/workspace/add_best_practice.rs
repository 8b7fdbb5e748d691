//! `add_best_practice`: appends a section to the workspace's page of best practices.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_engine::Practice;

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "add_best_practice",
    title: "Add a best practice",
    description: "Append a section to the memory file best_practices.md (append-only): a title, the time it was added, and \
                  the practice in Markdown, at most 10 KB. Use write_memory_entry for events and decisions.",
    family: Family::Workspace,
    audience: Audience::Personal,
    access: Access::Write,
    hints: Hints { read_only: false, destructive: false, idempotent: false, open_world: false },
    example: r#"{"title": "Look before you model", "practice": "Plot every column first.", "category": "data"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let Arguments { title, practice, category } = arguments::read(arguments)?;
        let practice = Practice { title, text: practice, category };
        let practice_count = context.library.add_best_practice(context.caller, &practice)?;
        reply(&Reply { success: true, file: "best_practices.md".into(), practice_count })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Title, one line
    title: String,
    /// The practice in Markdown, without headings of level 1 or 2
    practice: String,
    /// Category, one line
    category: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// True: the section is stored durably in the file
    success: bool,
    /// File name
    file: String,
    /// Number of sections in the file after the append
    practice_count: u64,
}
