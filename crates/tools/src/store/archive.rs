//! `archive`: a folder or snapshot as a ZIP file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_engine::ArchiveOf;

use crate::{
    Family, Hints, Tool, arguments,
    family::ToolError,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "archive",
    title: "Archive a folder or snapshot",
    description: "Make a ZIP file of a collection, of one of its folders, or of a snapshot, and return a URL from which it \
                  can be downloaded for an hour. Use restore to write files into a folder of this machine, and \
                  get_book_archive for a book.",
    family: Family::Store,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"collection": "default", "folder": "notes"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let of = match (&arguments.collection, &arguments.snapshot_id) {
            (Some(collection), None) => {
                ArchiveOf::Folder { collection, folder: arguments.folder.as_deref().unwrap_or_default() }
            }
            (None, Some(snapshot)) if arguments.folder.is_none() => ArchiveOf::Snapshot(snapshot),
            (None, Some(_)) => {
                return Err(ToolError::argument("folder goes with collection, not with snapshot_id"));
            }
            _ => return Err(ToolError::argument("provide collection or snapshot_id")),
        };
        let archive = context.library.archive(context.caller, of, context.call)?;
        reply(&Reply {
            archive_url: context.library.archive_url(context.caller, &archive),
            name: archive.name,
            expires_at: archive.expires_at.to_string(),
            file_count: archive.files,
            total_size_bytes: archive.bytes,
        })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Collection name
    collection: Option<String>,
    /// Folder of the collection; the whole collection without it
    folder: Option<String>,
    /// Snapshot ID, in place of collection
    snapshot_id: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// Where the archive can be downloaded
    archive_url: String,
    /// File name
    name: String,
    /// Until when the URL works
    expires_at: String,
    /// Number of files in the archive
    file_count: u64,
    /// Their size in bytes, uncompressed
    total_size_bytes: u64,
}
