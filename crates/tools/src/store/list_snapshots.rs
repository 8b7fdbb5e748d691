//! `list_snapshots`: what can be restored.

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
                  makes one. Use restore with a snapshot_id or snapshot_label to bring one back.",
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
        let total = context.library.snapshots(context.caller, collection)?.len() as u64;
        let found = context.library.snapshots_after(context.caller, collection, cursor.as_deref())?;
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

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Only snapshots of this collection
    collection: Option<String>,
    /// Most snapshots in this page
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// next_cursor of the page before
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
    /// The snapshots of this page, newest first
    snapshots: Vec<SnapshotView>,
    /// How many there are in all
    total: u64,
    /// Cursor of the next page; null on the last
    #[schemars(with = "serde_json::Value")]
    next_cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct SnapshotView {
    /// Id: the UTC time it was made
    snapshot_id: String,
    /// Label, or null
    #[schemars(with = "serde_json::Value")]
    label: Option<String>,
    /// Collection it belongs to
    collection: String,
    /// When it was made
    created_at: String,
    /// Number of files
    file_count: u64,
    /// Bytes of all files
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
