//! `list`: documents by type, tag, time and pattern, sorted and in pages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use shelf_base::Moment;
use shelf_engine::{Document, Filter, ListReply, ListRequest, Order, SortBy};

use super::common::json_chars;
use crate::{
    Context, Family, Hints, Tool, arguments,
    family::ToolError,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "list",
    title: "List documents",
    description: "List documents with filters (type, MIME, extension, tags, collection, path pattern, times as 2026-01-31 or \
                  7d), sorting and paging, with tags, metadata and the exact total. Use get for the content of one, and \
                  list_snapshots to see what can be restored.",
    family: Family::Store,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"type": "text", "extension": ".txt", "recent": 10, "sort_by": "modified", "sort_order": "desc"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let paths_only = arguments.paths_only;
        let request = request(arguments, context.library.now())?;
        let listed = context.library.list(context.caller, &request, context.call)?;
        reply(&page(context, &request, &listed, paths_only)?)
    },
};

const DEFAULT_LIMIT: usize = 100;
const MOST: usize = 10_000;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Kind of document: text, binary, image, audio, video, document, archive or code
    r#type: Option<String>,
    /// MIME type, such as text/markdown, or a family such as image/*
    mime: Option<String>,
    /// Extension, such as .py; several separated by commas
    extension: Option<String>,
    /// Only binary documents
    binary: Option<bool>,
    /// Only text documents
    text: Option<bool>,
    /// Created at or after this time
    created_after: Option<String>,
    /// Created before this time
    created_before: Option<String>,
    /// File modified at or after this time
    modified_after: Option<String>,
    /// File modified before this time
    modified_before: Option<String>,
    /// Stored at or after this time
    indexed_after: Option<String>,
    /// Stored before this time
    indexed_before: Option<String>,
    /// Only the N most recently stored of the matching documents
    recent: Option<u64>,
    /// Sort key: name, size, created, modified or indexed
    sort_by: Option<String>,
    /// Sort order: asc or desc
    sort_order: Option<String>,
    /// Output only file paths (LLM-friendly format)
    #[serde(default)]
    paths_only: bool,
    /// Only this collection
    collection: Option<String>,
    /// Only documents with one of these tags
    #[serde(default)]
    tags: Vec<String>,
    /// Only documents with all of the tags
    #[serde(default)]
    match_all_tags: bool,
    /// Path pattern: *.md, src/, src/**/*.rs
    pattern: Option<String>,
    /// Only documents with this path, end of path, or title
    name: Option<String>,
    /// Maximum number of documents on this page
    #[schemars(extend("default" = 100))]
    limit: Option<u64>,
    /// Number of documents to skip
    #[serde(default)]
    offset: u64,
    /// next_cursor of the previous page, instead of offset
    cursor: Option<String>,
}

fn request(arguments: Arguments, now: Moment) -> Result<ListRequest, ToolError> {
    arguments::one_start(arguments.offset, arguments.cursor.as_deref())?;
    let time = |text: Option<String>| {
        text.map(|text| Moment::parse(&text, now).map_err(|error| ToolError::argument(error.to_string())))
            .transpose()
    };
    let times = vec![
        arguments.created_after.clone(),
        arguments.created_before.clone(),
        arguments.modified_after.clone(),
        arguments.modified_before.clone(),
        arguments.indexed_after.clone(),
        arguments.indexed_before.clone(),
    ];
    let mut filter = Filter {
        collection: arguments.collection,
        mime: arguments.mime,
        extensions: arguments.extension.map_or_else(Vec::new, |text| extensions(&text)),
        tags: arguments.tags,
        match_all_tags: arguments.match_all_tags,
        created: (time(arguments.created_after)?, time(arguments.created_before)?),
        modified: (time(arguments.modified_after)?, time(arguments.modified_before)?),
        indexed: (time(arguments.indexed_after)?, time(arguments.indexed_before)?),
        recent: arguments.recent,
        ..Filter::default()
    };
    match (arguments.text, arguments.binary) {
        (Some(true), Some(true)) => return Err(ToolError::argument("text and binary cannot both be true")),
        (Some(text), _) => filter.is_text = Some(text),
        (None, Some(binary)) => filter.is_text = Some(!binary),
        (None, None) => {}
    }
    if let Some(kind) = arguments.r#type {
        narrow_to_kind(&mut filter, &kind)?;
    }
    let sort = sort_by(arguments.sort_by.as_deref())?;
    let order = match arguments.sort_order.as_deref() {
        None if arguments.recent.is_some() && arguments.sort_by.is_none() => Order::Descending,
        None | Some("asc") => Order::Ascending,
        Some("desc") => Order::Descending,
        Some(other) => {
            return Err(ToolError::argument(format!("sort_order must be asc or desc, not '{other}'")));
        }
    };
    let sort = if arguments.recent.is_some() && arguments.sort_by.is_none() { SortBy::Indexed } else { sort };
    Ok(ListRequest {
        filter,
        times,
        patterns: arguments.pattern.into_iter().collect(),
        name: arguments.name,
        sort,
        order,
        limit: arguments
            .limit
            .map_or(DEFAULT_LIMIT, |limit| usize::try_from(limit).unwrap_or(MOST).min(MOST)),
        offset: arguments.offset,
        cursor: arguments.cursor,
    })
}

pub(super) fn extensions(text: &str) -> Vec<String> {
    let dotted = |part: &str| {
        format!(".{}", part.trim().trim_start_matches("*.").trim_start_matches('.').to_lowercase())
    };
    text.split(',').filter(|part| !part.trim().is_empty()).map(dotted).collect()
}

pub(super) fn sort_by(word: Option<&str>) -> Result<SortBy, ToolError> {
    match word {
        None | Some("name" | "path") => Ok(SortBy::Name),
        Some("size") => Ok(SortBy::Size),
        Some("created") => Ok(SortBy::Created),
        Some("modified") => Ok(SortBy::Modified),
        Some("indexed") => Ok(SortBy::Indexed),
        Some(other) => Err(ToolError::argument(format!(
            "sort_by must be name, size, created, modified or indexed, not '{other}'"
        ))),
    }
}

fn narrow_to_kind(filter: &mut Filter, kind: &str) -> Result<(), ToolError> {
    let mimes: &[&str] = match kind {
        "text" | "binary" => {
            let is_text = kind == "text";
            if filter.is_text.is_some_and(|asked| asked != is_text) {
                return Err(ToolError::argument(format!(
                    "type '{kind}' contradicts the arguments text or binary"
                )));
            }
            filter.is_text = Some(is_text);
            return Ok(());
        }
        "image" => &["image/*"],
        "audio" => &["audio/*"],
        "video" => &["video/*"],
        "document" => &[
            "application/pdf",
            "application/msword",
            "application/rtf",
            "application/epub+zip",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            "application/vnd.openxmlformats-officedocument.presentationml.presentation",
            "application/vnd.oasis.opendocument.text",
            "text/markdown",
            "text/html",
            "text/plain",
            "text/x-rst",
            "text/asciidoc",
        ],
        "archive" => &[
            "application/zip",
            "application/gzip",
            "application/x-tar",
            "application/x-bzip2",
            "application/x-xz",
            "application/x-7z-compressed",
            "application/vnd.rar",
            "application/zstd",
        ],
        "code" => &[
            "text/javascript",
            "text/x-c",
            "text/x-c++",
            "text/x-csharp",
            "text/x-go",
            "text/x-java",
            "text/x-kotlin",
            "text/x-lua",
            "text/x-perl",
            "text/x-php",
            "text/x-python",
            "text/x-ruby",
            "text/x-rust",
            "text/x-scala",
            "text/x-shellscript",
            "text/x-sql",
            "text/x-swift",
            "text/x-typescript",
        ],
        other => {
            let known = "text, binary, image, audio, video, document, archive or code";
            return Err(ToolError::argument(format!("type must be {known}, not '{other}'")));
        }
    };
    filter.mime_any = mimes.iter().map(|mime| (*mime).to_owned()).collect();
    Ok(())
}

/// Fills a page with as many documents as fit, and sets the cursor of the next page.
fn page(
    context: &Context<'_>,
    request: &ListRequest,
    listed: &ListReply,
    paths_only: bool,
) -> Result<Reply, ToolError> {
    let mut reply = Reply { total: listed.total, ..Reply::default() };
    let (mut documents, mut paths) = (Vec::new(), Vec::new());
    let mut characters = 0;
    let mut shown = 0;
    for document in &listed.documents {
        let view = ListedDocument::of(document);
        characters += if paths_only { json_chars(&document.path) } else { json_chars(&view) };
        // The cursor may hold the path of the last one.
        let beside = 500 + 2 * json_chars(&document.path);
        if characters > context.page_chars.saturating_sub(beside) && shown > 0 {
            break;
        }
        shown += 1;
        if paths_only { paths.push(document.path.clone()) } else { documents.push(view) }
    }
    if (shown < listed.documents.len() || listed.more)
        && let Some(last) = shown.checked_sub(1).and_then(|at| listed.documents.get(at))
    {
        reply.next_cursor = Some(context.library.cursor_after(context.caller, request, last)?);
    }
    if paths_only {
        reply.paths = Some(paths);
    } else {
        reply.documents = Some(documents);
    }
    Ok(reply)
}

#[derive(Default, Serialize, JsonSchema)]
struct Reply {
    /// The documents on this page
    #[serde(skip_serializing_if = "Option::is_none")]
    documents: Option<Vec<ListedDocument>>,
    /// The paths on this page, when paths_only is set
    #[serde(skip_serializing_if = "Option::is_none")]
    paths: Option<Vec<String>>,
    /// Total number of matching documents
    total: u64,
    /// Cursor of the next page; null on the last page
    #[schemars(extend("x-or-null" = true))]
    next_cursor: Option<String>,
}

/// A document in a list: what it can be filtered and sorted by, its tags and its metadata. Nothing is said twice: it has one
/// id, and a title only when that is not its name.
#[derive(Serialize, JsonSchema)]
struct ListedDocument {
    /// Document UUID
    document_id: String,
    /// SHA-256 of the current content
    hash: String,
    /// Path of the document
    path: String,
    /// Last part of the path
    name: String,
    /// Title, when it is not the name
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Collection it belongs to
    collection: String,
    /// Size in bytes
    size: u64,
    /// MIME type
    mime_type: String,
    /// Extension with its dot; empty if there is none
    extension: String,
    /// text or binary
    r#type: &'static str,
    /// Current version number
    version: u32,
    /// Tags
    tags: Vec<String>,
    /// Metadata
    metadata: Map<String, Value>,
    /// Resource ID for citations, if it has one
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_id: Option<String>,
    /// When the document was created
    created_at: String,
    /// When the file itself was last modified
    modified_at: String,
    /// When the current version was stored
    indexed_at: String,
    /// Fields that are damaged in the catalog and shown as empty; run shelf check
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    damaged: Vec<String>,
}

impl ListedDocument {
    fn of(document: &Document) -> Self {
        let name = document.path.rsplit('/').next().unwrap_or_default();
        Self {
            document_id: document.id.to_string(),
            hash: document.version.hash.to_string(),
            path: document.path.clone(),
            name: name.to_owned(),
            title: (document.title != name).then(|| document.title.clone()),
            collection: document.collection_name.clone(),
            size: document.version.size,
            mime_type: document.mime.clone(),
            extension: document.extension.clone(),
            r#type: if document.is_text { "text" } else { "binary" },
            version: document.version.number,
            tags: document.tags.clone(),
            metadata: document.metadata.clone(),
            resource_id: document.resource_id.clone(),
            created_at: document.created_at.to_string(),
            modified_at: document.version.modified_at.to_string(),
            indexed_at: document.version.indexed_at.to_string(),
            damaged: document.damaged.iter().map(|what| (*what).to_owned()).collect(),
        }
    }
}
