//! `getStructure`: the whole tree of a resource.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::shape;
use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "getStructure",
    title: "Get the structure of a resource",
    description: "Return the full tree of a resource (headings, symbols, keys, pages, chapters or cues), each node with \
                  its exact location and a summary. Use it to choose what to cite, then call resolve with the id of a \
                  node. For one known node, getNode is shorter.",
    family: Family::Citations,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"resource_id": "lecture_01"}"#,
    input: schema::of::<Arguments>,
    output,
    run: |context, arguments| {
        let Arguments { resource_id } = arguments::read(arguments)?;
        let found = context.library.structure(context.caller, &resource_id, context.call)?;
        let mut metadata = Value::Object(found.metadata);
        metadata["source_hash"] = json!(found.source_hash.to_string());
        metadata["source_size"] = json!(found.source_size);
        if let Some((origin, number)) = found.given {
            metadata["map_origin"] = json!(origin);
            metadata["map_version"] = json!(number);
        }
        if found.source_changed {
            metadata["source_changed"] = json!(true);
        }
        reply(&json!({
            "resource_id": found.resource_id,
            "type": found.modality.name(),
            "title": found.title,
            "source_path": found.source_path,
            "nodes": found.nodes,
            "metadata": metadata,
            "created_at": found.created_at.to_string(),
        }))
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The resource ID to retrieve; a document UUID or a content hash also works
    resource_id: String,
}

fn output() -> Value {
    json!({
        "type": "object",
        "properties": {
            "resource_id": { "type": "string", "description": "Id of the resource, as addresses name it" },
            "type": { "type": "string", "description": "document, video, audio, image, text or virtual" },
            "title": { "type": "string", "description": "Title" },
            "source_path": { "type": "string", "description": "Where the resource came from" },
            "nodes": { "type": "array", "items": shape::tree(), "description": "The tree of nodes" },
            "metadata": {
                "type": "object",
                "description": "What was mapped: source_hash and source_size; map_origin and map_version when the map was given by somebody; source_changed when the document has other content by now",
            },
            "created_at": { "type": "string", "description": "When the mapped version was stored" },
        },
        "required": ["resource_id", "type", "title", "source_path", "nodes", "metadata", "created_at"],
    })
}
