//! `compare_snapshots`: what changed between two snapshots, or since one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_engine::FileChange;

use super::first_that_fit;
use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "compare_snapshots",
    title: "Compare snapshots",
    description: "List the files that were added, changed and removed from one snapshot to another, or from a snapshot to \
                  the present state of its collection. Paths are relative to the roots of the snapshots. Use \
                  list_snapshots to find them, and get with a hash to read what a file was.",
    family: Family::Store,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"from": "2026-01-31T10:00:00.000000Z"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let Arguments { from, to } = arguments::read(arguments)?;
        let (changes, unchanged) =
            context.library.snapshot_changes(context.caller, &from, to.as_deref(), context.call)?;
        let count = |of: &str| changes.iter().filter(|change| word(change) == of).count() as u64;
        let (added, changed, removed) = (count("added"), count("changed"), count("removed"));
        let views = changes.iter().map(ChangeView::of);
        let shown = first_that_fit(views, None, context.page_chars * 4);
        let truncated = shown.len() < changes.len();
        reply(&Reply { added, changed, removed, unchanged, changes: shown, truncated })
    },
};

const fn word(change: &FileChange) -> &'static str {
    match (&change.before, &change.after) {
        (None, _) => "added",
        (Some(_), Some(_)) => "changed",
        (Some(_), None) => "removed",
    }
}

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Snapshot ID
    from: String,
    /// Snapshot ID; the present state of the collection when left out
    to: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// Number of files that were added
    added: u64,
    /// Number of files with other content
    changed: u64,
    /// Number of files that are gone
    removed: u64,
    /// Number of files that stayed as they were
    unchanged: u64,
    /// The files that differ, by path
    changes: Vec<ChangeView>,
    /// Whether more files differ than are listed
    truncated: bool,
}

#[derive(Serialize, JsonSchema)]
struct ChangeView {
    /// Path relative to the root
    path: String,
    /// added, changed or removed
    change: String,
    /// SHA-256 before
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_hash: Option<String>,
    /// SHA-256 after
    #[serde(skip_serializing_if = "Option::is_none")]
    new_hash: Option<String>,
    /// Size before, in bytes
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_size: Option<u64>,
    /// Size after, in bytes
    #[serde(skip_serializing_if = "Option::is_none")]
    new_size: Option<u64>,
}

impl ChangeView {
    fn of(change: &FileChange) -> Self {
        Self {
            path: change.path.clone(),
            change: word(change).to_owned(),
            previous_hash: change.before.map(|(hash, _)| hash.to_string()),
            new_hash: change.after.map(|(hash, _)| hash.to_string()),
            previous_size: change.before.map(|(_, size)| size),
            new_size: change.after.map(|(_, size)| size),
        }
    }
}
