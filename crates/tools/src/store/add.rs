//! `add`: stores content, a file or a folder.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_engine::{AddRequest, What};

use super::common::Pairs;
use crate::{
    Family, Hints, Tool, arguments,
    family::ToolError,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "add",
    title: "Add to the library",
    description: "Store a file or folder by path, or content under a name, with optional tags and metadata. Identical bytes \
                  are stored once; changed bytes at a known path create a new version; every add creates a snapshot that \
                  restore can bring back. Use update to change only tags or metadata.",
    family: Family::Store,
    audience: Audience::Personal,
    access: Access::Write,
    hints: Hints { read_only: false, destructive: false, idempotent: true, open_world: false },
    example: r#"{"content": "Call the printer on Monday.", "name": "notes/monday.txt", "tags": ["meeting"], "metadata": {"author": "John Doe"}}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let request = request(arguments::read(arguments)?)?;
        let added = context.library.add(context.caller, &request, context.call)?;
        let failed_files = added.failed.len() as u64;
        let skipped_files = added.skipped.len() as u64;
        let truncated = added.failed.len().max(added.skipped.len()) > LISTED_FAILURES;
        let skipped = added.skipped.into_iter().take(LISTED_FAILURES);
        let failed = added.failed.into_iter().take(LISTED_FAILURES);
        reply(&Reply {
            hash: added.hash.to_string(),
            bytes_stored: added.bytes_stored,
            bytes_deduped: added.bytes_deduped,
            document_id: added.document_id.map(|id| id.to_string()),
            path: added.path,
            collection: added.collection,
            snapshot_id: added.snapshot.with_micros(),
            files_added: added.files_added,
            files_updated: added.files_updated,
            files_unchanged: added.files_unchanged,
            files_removed: added.files_removed,
            files_failed: failed_files,
            links: added.links,
            files_skipped: skipped_files,
            skipped: skipped.map(|file| FailedView { path: file.path, reason: file.reason }).collect(),
            failed: failed.map(|failed| FailedView { path: failed.path, reason: failed.reason }).collect(),
            truncated: truncated.then_some(true),
        })
    },
};

/// Most failed files listed in a reply; `files_failed` counts all of them.
const LISTED_FAILURES: usize = 100;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// File path: a file or folder on the server's machine. Provide this, or content with name
    path: Option<String>,
    /// Content to store under name, instead of a file
    content: Option<String>,
    /// Name to store content under; it becomes the document's path
    name: Option<String>,
    /// Encoding of content: utf-8 (default), or base64 for binary content
    encoding: Option<String>,
    /// Document tags
    #[serde(default)]
    tags: Vec<String>,
    /// Additional metadata: an object, or key=value strings
    metadata: Option<Pairs>,
    /// Collection to add to; created if it does not exist (default: default)
    collection: Option<String>,
    /// Label of the snapshot that this add creates
    snapshot_label: Option<String>,
    /// Whether to include everything below a folder
    #[serde(default = "yes")]
    recursive: bool,
    /// Add only files of the folder that match one of these globs
    #[serde(default)]
    include: Vec<String>,
    /// Skip files of the folder that match one of these globs
    #[serde(default)]
    exclude: Vec<String>,
    /// Delete documents of the folder whose files are gone; snapshots keep them
    #[serde(default)]
    prune: bool,
    /// MIME type, overriding detection from the content
    mime_type: Option<String>,
    /// Resource ID that citations use for this document
    resource_id: Option<String>,
}

const fn is_zero(count: &u64) -> bool {
    *count == 0
}

const fn yes() -> bool {
    true
}

fn request(arguments: Arguments) -> Result<AddRequest, ToolError> {
    let what = match (arguments.path, arguments.content, arguments.name) {
        (Some(path), None, None) => What::Path(path.into()),
        (None, Some(content), Some(name)) => {
            What::Content { name, bytes: bytes(content, arguments.encoding.as_deref())? }
        }
        (None, Some(_), None) => return Err(ToolError::argument("name is required with content")),
        (Some(_), _, _) => {
            return Err(ToolError::argument("provide either path, or content with name, not both"));
        }
        (None, None, _) => return Err(ToolError::argument("provide path, or content with name")),
    };
    Ok(AddRequest {
        what,
        collection: arguments.collection,
        tags: arguments.tags,
        metadata: arguments.metadata.map_or_else(|| Ok(serde_json::Map::new()), Pairs::object)?,
        snapshot_label: arguments.snapshot_label,
        recursive: arguments.recursive,
        include: arguments.include,
        exclude: arguments.exclude,
        prune: arguments.prune,
        only_changes: false,
        mime_type: arguments.mime_type,
        resource_id: arguments.resource_id,
    })
}

fn bytes(content: String, encoding: Option<&str>) -> Result<Vec<u8>, ToolError> {
    match encoding {
        None | Some("utf-8" | "utf8" | "text") => Ok(content.into_bytes()),
        Some("base64") => {
            STANDARD.decode(content.trim()).map_err(|_| ToolError::argument("content is not valid base64"))
        }
        Some(other) => Err(ToolError::argument(format!("encoding must be utf-8 or base64, not '{other}'"))),
    }
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// SHA-256 of the content; for a folder, the Merkle root of its snapshot
    hash: String,
    /// Bytes that were new to your library
    bytes_stored: u64,
    /// Bytes that your library already had
    bytes_deduped: u64,
    /// Document UUID, when one document was added
    #[serde(skip_serializing_if = "Option::is_none")]
    document_id: Option<String>,
    /// Path of the document or folder
    path: String,
    /// Collection it was added to
    collection: String,
    /// Snapshot that this add created
    snapshot_id: String,
    /// Number of files stored, new or changed
    files_added: u64,
    /// Number of those files that were changed
    files_updated: u64,
    /// Number of files already stored with the same bytes
    files_unchanged: u64,
    /// Number of documents deleted because their files are gone
    #[serde(default, skip_serializing_if = "is_zero")]
    files_removed: u64,
    /// Number of files that could not be added
    files_failed: u64,
    /// The files that could not be added, and why
    failed: Vec<FailedView>,
    /// Number of symbolic links, which the snapshot keeps as links
    links: u64,
    /// Number of named pipes, sockets and devices, which are skipped
    files_skipped: u64,
    /// The files that were skipped, and why
    skipped: Vec<FailedView>,
    /// True when failed or skipped does not list all files
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
struct FailedView {
    /// Path of the file
    path: String,
    /// Why it was not added
    reason: String,
}
