//! `get_book_archive`: gives the URL of a whole book as a ZIP file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "get_book_archive",
    title: "Get book archive",
    description: "Generate a ZIP archive of an entire book: lessons, summaries, assets and book.yaml. The URL works for an hour. While the book does not change, the same archive is given again at once.",
    family: Family::Books,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"book_id": "ai-native-python"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let Arguments { book_id } = arguments::read(arguments)?;
        let archive = context.library.book_archive(context.caller, &book_id, context.call)?;
        reply(&Reply {
            status: "success",
            archive_url: context.library.archive_url(context.caller, &archive),
            expires_at: archive.expires_at.to_string(),
            file_count: archive.files,
            total_size_bytes: archive.bytes,
            format: "zip",
            valid_for_seconds: archive.seconds,
            manifest_hash: archive.manifest.to_string(),
        })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Book identifier
    book_id: String,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// success
    status: &'static str,
    /// Where the archive can be downloaded
    archive_url: String,
    /// Until when the URL works
    expires_at: String,
    /// Number of files in the archive
    file_count: u64,
    /// Their size in bytes, uncompressed
    total_size_bytes: u64,
    /// zip
    format: &'static str,
    /// For how many seconds the URL works
    valid_for_seconds: u64,
    /// Stands for exactly this state of the book; plan_build takes it
    manifest_hash: String,
}
