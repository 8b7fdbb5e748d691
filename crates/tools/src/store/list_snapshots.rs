//! `list_snapshots`: the snapshots that can be restored.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_engine::Snapshot;

use super::first_that_fit;
use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "list_snapshots",
    title: "List snapshots",
    description: "List available snapshots, newest first, with label, collection, time, number of files and bytes. Every add \
                  creates one. Use restore with a snapshot_id or snapshot_label to bring one back.",
    family: Family::Store,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"collection": "default"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let Arguments { collection, limit, cursor } = arguments::read(arguments)?;
        let collection = collection.as_deref();
        let total = context.library.snapshot_count(context.caller, collection)?;
        // Fetch one more than can be shown, to know whether there are more.
        let most = limit.map_or(MOST, |limit| usize::try_from(limit).unwrap_or(MOST).min(MOST)) + 1;
        let found = context.library.snapshots_after(context.caller, collection, cursor.as_deref(), most)?;
        let shown = first_that_fit(found.iter().map(view), limit, context.page_chars);
        let next_cursor = match found.get(shown.len().wrapping_sub(1)) {
            Some(last) if shown.len() < found.len() => {
                Some(context.library.cursor_after_snapshot(context.caller, collection, last)?)
            }
            _ => None,
        };
        reply(&Reply { snapshots: shown, total, next_cursor })
    },
};

/// Most snapshots on one page; more would not fit.
const MOST: usize = 1_000;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Only snapshots of this collection
    collection: Option<String>,
    /// Maximum number of snapshots on this page
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// next_cursor of the previous page
    cursor: Option<String>,
}

fn view(snapshot: &Snapshot) -> SnapshotView {
    let draft = &snapshot.draft;
    SnapshotView {
        snapshot_id: snapshot.at.with_micros(),
        label: draft.label.clone(),
        collection: snapshot.collection_name.clone(),
        created_at: snapshot.at.to_string(),
        file_count: draft.files,
        bytes: draft.bytes,
        root: draft.root.clone(),
        hash: draft.merkle.to_string(),
        git_commit: draft.git_commit.clone(),
        git_branch: draft.git_branch.clone(),
    }
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// The snapshots on this page, newest first
    snapshots: Vec<SnapshotView>,
    /// Total number of snapshots
    total: u64,
    /// Cursor of the next page; null on the last page
    #[schemars(extend("x-or-null" = true))]
    next_cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct SnapshotView {
    /// Snapshot ID: the UTC time of its creation
    snapshot_id: String,
    /// Label, or null
    #[schemars(extend("x-or-null" = true))]
    label: Option<String>,
    /// Collection it belongs to
    collection: String,
    /// When it was created
    created_at: String,
    /// Number of files
    file_count: u64,
    /// Total size of the files in bytes
    bytes: u64,
    /// Folder that its paths are relative to
    root: String,
    /// Merkle root of its files
    hash: String,
    /// Commit of the folder's git repository
    #[serde(skip_serializing_if = "Option::is_none")]
    git_commit: Option<String>,
    /// Branch of the folder's git repository
    #[serde(skip_serializing_if = "Option::is_none")]
    git_branch: Option<String>,
}
