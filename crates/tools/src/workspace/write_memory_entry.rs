//! `write_memory_entry`: appends a line to a memory file of the workspace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use shelf_engine::MemoryFile;

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema, verbatim,
};

pub(crate) const TOOL: Tool = Tool {
    name: "write_memory_entry",
    title: "Append to memory",
    description: "Append an entry to a memory file (append-only): progress_log.jsonl or decisions.jsonl. An entry is an object \
                  with an ISO 8601 timestamp and an event or a decision, at most 10 KB. Use add to store documents.",
    family: Family::Workspace,
    audience: Audience::Personal,
    access: Access::Write,
    hints: Hints { read_only: false, destructive: false, idempotent: false, open_world: false },
    example: r#"{"file": "progress_log.jsonl", "entry": {"timestamp": "2026-01-07T14:00:00Z", "event": "task_completed"}}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let file = MemoryFile::named(&arguments.file)?;
        let appended = context.library.write_memory_entry(
            context.caller,
            file,
            &verbatim::text_of(arguments.entry),
            arguments.idempotency_key.as_deref(),
        )?;
        reply(&Reply {
            success: true,
            file: file.name().to_owned(),
            entry_count: appended.entry_count,
            invalid_lines: (appended.invalid_lines > 0).then_some(appended.invalid_lines),
            duplicate: appended.was_there.then_some(true),
        })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Memory file to append to
    #[schemars(extend("enum" = ["progress_log.jsonl", "decisions.jsonl"]))]
    file: String,
    /// JSON object to append
    entry: Map<String, Value>,
    /// Idempotency key: repeating the same key and entry adds nothing
    idempotency_key: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// True: the entry is stored durably in the file
    success: bool,
    /// File name
    file: String,
    /// Total entries in file after append
    entry_count: u64,
    /// Number of lines in the file that are not valid entries; they are left unchanged
    #[serde(skip_serializing_if = "Option::is_none")]
    invalid_lines: Option<u64>,
    /// True when the entry was already there, under the same idempotency_key
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicate: Option<bool>,
}
