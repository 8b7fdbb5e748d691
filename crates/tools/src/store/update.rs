//! `update`: changes the metadata and tags of a document.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shelf_engine::{TagChange, UpdateRequest};

use super::common::Pairs;
use crate::{
    Family, Hints, Tool, arguments,
    family::ToolError,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "update",
    title: "Update metadata and tags",
    description: "Update metadata for an existing document, and its tags, found by hash or name; the content does not change. \
                  The given keys are set, others are kept. Use add to store new content at the same path.",
    family: Family::Store,
    audience: Audience::Personal,
    access: Access::Write,
    hints: Hints { read_only: false, destructive: true, idempotent: true, open_world: false },
    example: r#"{"name": "notes/monday.txt", "metadata": ["status=completed", "priority=high"], "verbose": true}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let verbose = arguments.verbose;
        let request = request(arguments)?;
        let updated = context.library.update(context.caller, &request, context.call)?;
        reply(&Reply {
            updated: true,
            hash: updated.document.version.hash.to_string(),
            document_id: updated.document.id.to_string(),
            path: updated.document.path,
            changes: updated.changes.into_iter().map(|change| view(change, verbose)).collect(),
        })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Hash of the document to update. Provide this or name
    hash: Option<String>,
    /// Name of the document to update: its path, the end of its path, or its title
    name: Option<String>,
    /// Look only in this collection
    collection: Option<String>,
    /// Metadata key=value pairs to update, or an object of them
    metadata: Option<Pairs>,
    /// Tags to add (tag or +tag) and to remove (-tag)
    #[serde(default)]
    tags: Vec<String>,
    /// Enable verbose output: the old and new value of each change
    #[serde(default)]
    verbose: bool,
}

fn request(arguments: Arguments) -> Result<UpdateRequest, ToolError> {
    if arguments.metadata.is_none() && arguments.tags.is_empty() {
        return Err(ToolError::argument("provide metadata or tags"));
    }
    let (mut add_tags, mut remove_tags) = (Vec::new(), Vec::new());
    // If a tag is both added and removed, the last mention wins.
    for tag in arguments.tags {
        let (tag, to, from) = match tag.strip_prefix('-') {
            Some(tag) => (tag.to_owned(), &mut remove_tags, &mut add_tags),
            None => (tag.strip_prefix('+').unwrap_or(&tag).to_owned(), &mut add_tags, &mut remove_tags),
        };
        from.retain(|other: &String| *other != tag);
        to.push(tag);
    }
    Ok(UpdateRequest {
        hash: arguments.hash,
        name: arguments.name,
        collection: arguments.collection,
        metadata: arguments.metadata.map_or_else(|| Ok(serde_json::Map::new()), Pairs::object)?,
        add_tags,
        remove_tags,
    })
}

fn view(change: TagChange, verbose: bool) -> ChangeView {
    let (field, action, old, new) = match change {
        TagChange::Metadata { key, old, new } => (format!("metadata.{key}"), "set", old, Some(new)),
        TagChange::Added(tag) => ("tags".to_owned(), "added", None, Some(Value::from(tag))),
        TagChange::Removed(tag) => ("tags".to_owned(), "removed", Some(Value::from(tag)), None),
    };
    let (old, new) = if verbose { (old, new) } else { (None, None) };
    ChangeView { field, action: action.into(), old, new }
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// True: the document now has the given values
    updated: bool,
    /// SHA-256 of its content
    hash: String,
    /// Document UUID
    document_id: String,
    /// Path of the document
    path: String,
    /// What changed; empty when nothing did
    changes: Vec<ChangeView>,
}

#[derive(Serialize, JsonSchema)]
struct ChangeView {
    /// metadata.KEY, or tags
    field: String,
    /// set, added or removed
    action: String,
    /// Old value (verbose)
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Anything>")]
    old: Option<Value>,
    /// New value (verbose)
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Anything>")]
    new: Option<Value>,
}
