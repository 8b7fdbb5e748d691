//! Types shared by several tools of the family: metadata in its two forms, and documents as shown in replies.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use shelf_engine::{Document, Metadata};

use crate::family::ToolError;

/// Metadata as an object, or as the contract's `key=value` pairs.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Pairs {
    Object(Map<String, Value>),
    List(Vec<String>),
}

impl JsonSchema for Pairs {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Pairs".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "array", "items": { "type": "string" } },
                { "type": "object", "additionalProperties": true },
            ]
        })
    }
}

impl Pairs {
    /// Converts to an object; `key=value` sets a string.
    pub(super) fn object(self) -> Result<Metadata, ToolError> {
        match self {
            Self::Object(object) => Ok(object),
            Self::List(pairs) => pairs.iter().map(|pair| split(pair)).collect(),
        }
    }
}

fn split(pair: &str) -> Result<(String, Value), ToolError> {
    match pair.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), Value::from(value))),
        _ => Err(ToolError::argument(format!("metadata '{pair}' must be key=value"))),
    }
}

/// A document in a reply.
#[derive(Serialize, JsonSchema)]
pub(super) struct DocumentView {
    /// Number of the document in this library
    id: i64,
    /// Document UUID
    document_id: String,
    /// SHA-256 of the current content
    hash: String,
    /// Path of the document
    path: String,
    /// Last part of the path
    name: String,
    /// Title
    title: String,
    /// Collection it belongs to
    collection: String,
    /// Size in bytes
    size: u64,
    /// MIME type
    mime_type: String,
    /// Extension with its dot; empty if there is none
    extension: String,
    /// text or binary
    r#type: String,
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

impl From<&Document> for DocumentView {
    fn from(document: &Document) -> Self {
        Self {
            id: document.account_number,
            document_id: document.id.to_string(),
            hash: document.version.hash.to_string(),
            path: document.path.clone(),
            name: document.path.rsplit('/').next().unwrap_or_default().to_owned(),
            title: document.title.clone(),
            collection: document.collection_name.clone(),
            size: document.version.size,
            mime_type: document.mime.clone(),
            extension: document.extension.clone(),
            r#type: if document.is_text { "text" } else { "binary" }.into(),
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

/// What an item of a list takes on a page, with the comma after it.
pub(crate) fn json_chars(item: &impl Serialize) -> usize {
    serde_json::to_string(item).map_or(0, |text| text.len()) + 1
}

/// The first items of a page: as many as the limit and the page size allow, but at least one.
pub(crate) fn first_that_fit<T: Serialize>(
    items: impl Iterator<Item = T>,
    limit: Option<u64>,
    page_chars: usize,
) -> Vec<T> {
    let most = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let mut room = page_chars.saturating_sub(500);
    let mut shown = Vec::new();
    for item in items.take(most) {
        let size = json_chars(&item);
        if size > room && !shown.is_empty() {
            break;
        }
        room = room.saturating_sub(size);
        shown.push(item);
    }
    shown
}
