//! `delete_by_name`: deletes documents; snapshots keep their content.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_base::{bounds::MESSAGE_BYTES, clipped};
use shelf_engine::DeleteRequest;

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "delete_by_name",
    title: "Delete documents",
    description: "Delete documents by name, multiple names, or glob patterns. dry_run shows what would be deleted. Snapshots \
                  keep their content, so restore can bring deleted documents back.",
    family: Family::Store,
    audience: Audience::Personal,
    access: Access::Write,
    hints: Hints { read_only: false, destructive: true, idempotent: true, open_world: false },
    example: r#"{"pattern": "drafts/*.tmp", "dry_run": true}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        arguments::must_be_names("names", arguments.name.iter().chain(&arguments.names))?;
        let request = DeleteRequest {
            names: arguments.name.into_iter().chain(arguments.names).collect(),
            pattern: arguments.pattern,
            collection: arguments.collection,
            dry_run: arguments.dry_run,
        };
        let (gone, unknown) = context.library.delete(context.caller, &request, context.call)?;
        let count = gone.len() as u64;
        reply(&Reply {
            count,
            note: note(count, request.dry_run, &unknown),
            truncated: (gone.len() > LISTED).then_some(true),
            deleted: gone.into_iter().take(LISTED).map(view).collect(),
            dry_run: request.dry_run,
            not_found: unknown,
        })
    },
};

/// Most documents listed in a reply; `count` counts all of them.
const LISTED: usize = 10_000;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Name of one document: its path, the end of its path, or its title
    name: Option<String>,
    /// Names of several documents
    #[serde(default)]
    names: Vec<String>,
    /// Glob pattern; every document whose path matches is deleted
    pattern: Option<String>,
    /// Only in this collection
    collection: Option<String>,
    /// Show what would be deleted without deleting anything
    #[serde(default)]
    dry_run: bool,
}

fn note(count: u64, dry_run: bool, unknown: &[String]) -> String {
    let mut note = match (count, dry_run) {
        (0, _) => "nothing matched; nothing was deleted".to_owned(),
        (_, true) => format!("{count} would be deleted; nothing was deleted (dry run)"),
        (_, false) => format!("{count} deleted; snapshots keep their content"),
    };
    if !unknown.is_empty() {
        note.push_str(&format!("; no document named {}", clipped(&unknown.join(", "), MESSAGE_BYTES)));
    }
    note
}

fn view(deleted: shelf_engine::Deleted) -> DeletedView {
    DeletedView {
        name: deleted.path.rsplit('/').next().unwrap_or_default().to_owned(),
        path: deleted.path,
        hash: deleted.hash.to_string(),
        document_id: deleted.id.to_string(),
        collection: deleted.collection,
    }
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// Number of documents that were or would be deleted
    count: u64,
    /// The documents that were or would be deleted
    deleted: Vec<DeletedView>,
    /// Whether this was a preview
    dry_run: bool,
    /// Summary of what happened
    note: String,
    /// Names that match no document
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    not_found: Vec<String>,
    /// True when deleted lists fewer documents than count
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
struct DeletedView {
    /// Last part of the path
    name: String,
    /// Path
    path: String,
    /// SHA-256 of the content
    hash: String,
    /// Document UUID
    document_id: String,
    /// Collection it was in
    collection: String,
}
