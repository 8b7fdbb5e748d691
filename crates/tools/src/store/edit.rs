//! `edit`: replaces an exact piece of a text document.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_engine::EditRequest;

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "edit",
    title: "Edit a text",
    description: "Replace an exact piece of a text document and keep the rest byte for byte. old_text must occur exactly once, \
                  unless replace_all is set. Pass the hash that get returned as expected_hash, so that nobody's change is \
                  overwritten. Use add to replace a whole document and update for tags and metadata.",
    family: Family::Store,
    audience: Audience::Personal,
    access: Access::ReadWrite,
    hints: Hints { read_only: false, destructive: true, idempotent: false, open_world: false },
    example: r#"{"name": "notes/monday.txt", "old_text": "printer", "new_text": "plumber"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let request = EditRequest {
            name: arguments.name,
            collection: arguments.collection,
            old_text: arguments.old_text,
            new_text: arguments.new_text,
            replace_all: arguments.replace_all,
            expected: arguments.expected_hash,
        };
        let done = context.library.edit(context.caller, &request, context.call)?;
        reply(&Reply {
            edited: true,
            path: done.document.path,
            document_id: done.document.id.to_string(),
            hash: done.document.version.hash.to_string(),
            previous_hash: done.previous.to_string(),
            version: done.document.version.number,
            replaced: done.replaced,
            line: done.line,
        })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Name of the document: its path, the end of its path, its title, or its UUID
    name: String,
    /// The exact text to replace, with its spaces and line breaks
    old_text: String,
    /// The text to put in its place; empty to delete it
    new_text: String,
    /// Replace every occurrence
    #[serde(default)]
    replace_all: bool,
    /// Hash that the document must have now; otherwise nothing is changed
    expected_hash: Option<String>,
    /// Look only in this collection
    collection: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// Always true
    edited: bool,
    /// Path of the document
    path: String,
    /// Document UUID
    document_id: String,
    /// SHA-256 of the new content
    hash: String,
    /// SHA-256 of the content before
    previous_hash: String,
    /// Number of the new version
    version: u32,
    /// How often the text was replaced
    replaced: u64,
    /// Line of the first replacement, from 1
    line: u64,
}
