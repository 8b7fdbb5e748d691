//! `list_repo_files`: the files that `read_repo_file` may read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_engine::RepoEntry;

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

/// Default number of files in a reply.
const USUAL: u64 = 200;

pub(crate) const TOOL: Tool = Tool {
    name: "list_repo_files",
    title: "List workspace files",
    description: "List the files of the repository that read_repo_file may read, sorted by path, with size and time. Narrow \
                  the list with pattern: *.md, docs/, paths/**/README.md. Links are not listed. Use list for documents in \
                  the library.",
    family: Family::Workspace,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"pattern": "docs/"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let Arguments { pattern, limit } = arguments::read(arguments)?;
        let found = context.library.list_repo_files(context.caller, pattern.as_deref(), context.call)?;
        let most = usize::try_from(limit.unwrap_or(USUAL)).unwrap_or(usize::MAX);
        let total = found.files.len();
        let mut characters = 500_usize;
        let fits = |file: &RepoEntry| {
            characters = characters.saturating_add(file.path.len() + 100);
            characters <= context.page_chars
        };
        let files: Vec<FileView> = found.files.into_iter().take(most).take_while(fits).map(view).collect();
        let cut = files.len() < total || !found.complete;
        reply(&Reply { files, total: total as u64, truncated: cut.then_some(true) })
    },
};

fn view(file: RepoEntry) -> FileView {
    FileView { path: file.path, size_bytes: file.size_bytes, modified_at: file.modified_at.to_string() }
}

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Only files whose path matches this pattern
    pattern: Option<String>,
    /// Maximum number of files
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// The files, sorted by path
    files: Vec<FileView>,
    /// Total number of matching files
    total: u64,
    /// True when there are more files than listed; narrow the pattern
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
struct FileView {
    /// Path from the root, as read_repo_file takes it
    path: String,
    /// File size in bytes
    size_bytes: u64,
    /// When it was last modified
    modified_at: String,
}
