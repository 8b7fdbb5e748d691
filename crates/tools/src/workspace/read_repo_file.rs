//! `read_repo_file`: reads a workspace file, within the access rules.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_engine::RepoWindow;

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "read_repo_file",
    title: "Read a workspace file",
    description: "Read a file from the repository (safe subset only): paths/, docs/, templates/, examples/ and .claude/memory/. \
                  Secrets, keys and .git are never readable. Use get for documents in the library.",
    family: Family::Workspace,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"path": "docs/README.md"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let window = RepoWindow {
            start_line: arguments.start_line,
            end_line: arguments.end_line,
            tail: arguments.tail,
        };
        let file = context.library.read_repo_file(context.caller, &arguments.path, window)?;
        reply(&Reply {
            content: file.content,
            path: file.path,
            size_bytes: file.size_bytes,
            encoding: file.encoding.map(str::to_owned),
            truncated: file.truncated.then_some(true),
        })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Relative path to the file from repo root
    path: String,
    /// First line to return, from 1
    #[schemars(range(min = 1))]
    start_line: Option<u64>,
    /// Last line to return
    #[schemars(range(min = 1))]
    end_line: Option<u64>,
    /// Only the last N lines; not together with start_line or end_line
    tail: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// File contents
    content: String,
    /// Resolved file path
    path: String,
    /// File size in bytes
    size_bytes: u64,
    /// base64 when the file is not text
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<String>,
    /// True when the content was truncated; ask for a range of lines
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
}
