//! `restore`: writes a collection or snapshot into a folder.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_engine::{RestoreRequest, Restored};

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "restore",
    title: "Restore documents",
    description: "Restore documents from a collection (as it is now) or from a snapshot (as it was) into output_directory, \
                  byte for byte with times and modes, never outside that folder. dry_run shows exactly what would happen. \
                  Use get with outputPath for a single document.",
    family: Family::Store,
    audience: Audience::Personal,
    access: Access::ReadWrite,
    hints: Hints { read_only: false, destructive: true, idempotent: true, open_world: false },
    example: r#"{"collection": "default", "output_directory": "/tmp/restore", "dry_run": true}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let request = RestoreRequest {
            collection: arguments.collection,
            snapshot_id: arguments.snapshot_id,
            snapshot_label: arguments.snapshot_label,
            output_directory: arguments.output_directory.into(),
            layout_template: arguments.layout_template,
            include_patterns: arguments.include_patterns,
            exclude_patterns: arguments.exclude_patterns,
            overwrite: arguments.overwrite,
            create_dirs: arguments.create_dirs,
            dry_run: arguments.dry_run,
        };
        let done = context.library.restore(context.caller, &request, context.call)?;
        let truncated = [&done.restored, &done.skipped, &done.failed].iter().any(|list| list.len() > LISTED);
        reply(&Reply {
            restored_count: done.restored.len() as u64,
            skipped_count: done.skipped.len() as u64,
            failed_count: done.failed.len() as u64,
            restored_bytes: done.restored.iter().map(|file| file.size).sum(),
            restored: views(done.restored),
            skipped: views(done.skipped),
            failed: views(done.failed),
            dry_run: request.dry_run,
            truncated,
        })
    },
};

/// Most files in each list of a reply; the counts include all files.
const LISTED: usize = 10_000;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Collection name (optional)
    collection: Option<String>,
    /// Snapshot ID (optional)
    snapshot_id: Option<String>,
    /// Snapshot label (optional); the newest snapshot with this label
    snapshot_label: Option<String>,
    /// Output directory
    output_directory: String,
    /// Layout template: {path} {name} {stem} {ext} {hash} {collection} {snapshot_id} {snapshot_label}
    #[serde(default = "whole_path")]
    layout_template: String,
    /// Only restore matching patterns
    #[serde(default)]
    include_patterns: Vec<String>,
    /// Exclude matching patterns
    #[serde(default)]
    exclude_patterns: Vec<String>,
    /// Overwrite existing files
    #[serde(default)]
    overwrite: bool,
    /// Create parent directories
    #[serde(default = "yes")]
    create_dirs: bool,
    /// Preview without writing
    #[serde(default)]
    dry_run: bool,
}

fn whole_path() -> String {
    "{path}".into()
}

const fn yes() -> bool {
    true
}

fn views(files: Vec<Restored>) -> Vec<FileView> {
    let view = |file: Restored| FileView {
        path: file.path,
        target: file.target,
        size: file.size,
        reason: file.reason,
    };
    files.into_iter().take(LISTED).map(view).collect()
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// Files that were or would be written
    restored: Vec<FileView>,
    /// Files left unchanged
    skipped: Vec<FileView>,
    /// Files that could not be written
    failed: Vec<FileView>,
    /// Whether this was a preview
    dry_run: bool,
    /// Number of files written
    restored_count: u64,
    /// Number of files left unchanged
    skipped_count: u64,
    /// Number of files that could not be written
    failed_count: u64,
    /// Bytes written
    restored_bytes: u64,
    /// Whether a list has fewer files than its count
    truncated: bool,
}

#[derive(Serialize, JsonSchema)]
struct FileView {
    /// Path in the collection or snapshot
    path: String,
    /// Path relative to the output directory
    target: String,
    /// Size in bytes
    size: u64,
    /// Why it was skipped or failed
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}
