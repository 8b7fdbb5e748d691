//! `download`: stores the content of a URL as a document.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_engine::DownloadRequest;

use super::common::Pairs;
use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "download",
    title: "Download into the library",
    description: "Download and store an artifact by URL with checksum support. Its name is the last part of the URL; \
                  nothing is stored unless the download is complete and matches the checksum. Use add for local files.",
    family: Family::Store,
    audience: Audience::Personal,
    access: Access::Write,
    hints: Hints { read_only: false, destructive: false, idempotent: true, open_world: true },
    example: r#"{"url": "https://example.org/report.pdf", "checksum": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let request = DownloadRequest {
            url: arguments.url,
            checksum: arguments.checksum,
            name: arguments.name,
            collection: arguments.collection,
            tags: arguments.tags,
            metadata: arguments.metadata.map_or_else(|| Ok(serde_json::Map::new()), Pairs::object)?,
            snapshot_label: arguments.snapshot_label,
        };
        let done = context.library.download(context.caller, &request, context.call)?;
        reply(&Reply {
            hash: done.added.hash.to_string(),
            path: done.added.path,
            size: done.size,
            checksum_ok: done.checksum_ok,
            document_id: done.added.document_id.map(|id| id.to_string()).unwrap_or_default(),
            collection: done.added.collection,
            snapshot_id: done.added.snapshot.with_micros(),
            bytes_stored: done.added.bytes_stored,
            bytes_deduped: done.added.bytes_deduped,
        })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// URL to download (http or https)
    url: String,
    /// Expected checksum: sha256:…, sha512:…, md5:… or blake3:…
    checksum: Option<String>,
    /// Name to store it under, instead of the last part of the URL
    name: Option<String>,
    /// Collection to add to; created if it does not exist (default: default)
    collection: Option<String>,
    /// Document tags
    #[serde(default)]
    tags: Vec<String>,
    /// Additional metadata: an object, or key=value strings
    metadata: Option<Pairs>,
    /// Label of the snapshot that this download creates
    snapshot_label: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// SHA-256 of the content
    hash: String,
    /// Path it is stored under
    path: String,
    /// Size in bytes
    size: u64,
    /// True when the content matches the checksum; absent if none was given
    #[serde(skip_serializing_if = "Option::is_none")]
    checksum_ok: Option<bool>,
    /// Document UUID
    document_id: String,
    /// Collection it was added to
    collection: String,
    /// Snapshot that this download created
    snapshot_id: String,
    /// Bytes that were new to your library
    bytes_stored: u64,
    /// Bytes that your library already had
    bytes_deduped: u64,
}
