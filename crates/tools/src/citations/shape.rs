//! Schemas that the replies of the family share. They are written out because a node contains nodes, and portable
//! schemas have no references.

use serde_json::{Value, json};

/// How many levels of children the schema of a tree describes; what is below is any object.
const LEVELS: usize = 2;

pub(super) fn location() -> Value {
    let number = |description: &str| json!({ "type": "number", "description": description });
    let numbers = |description: &str, kind: &str| json!({ "type": "array", "items": { "type": kind }, "description": description });
    json!({
        "type": "object",
        "description": "Where it is; fields that the modality does not use are absent",
        "properties": {
            "modality": { "type": "string", "description": "document, video, audio, image, text or virtual" },
            "start": number("Start in seconds"),
            "end": number("End in seconds"),
            "pages": numbers("One page, the first and last of a range, or three and more pages", "integer"),
            "lines": numbers("First and last line, from 1", "integer"),
            "bbox": numbers("Left, top, right and bottom from 0 to 1, from the top left", "number"),
            "virtual_address": { "type": "string", "description": "Address that a virtual node leads to" },
        },
        "required": ["modality"],
    })
}

/// A node; `children` is the schema of its children, if it shows them.
pub(super) fn node(children: Option<Value>) -> Value {
    let mut schema = json!({
        "type": "object",
        "properties": {
            "id": { "type": "string", "description": "Id of the node: that of its parent, a dot, its own part" },
            "title": { "type": "string", "description": "Title" },
            "type": { "type": "string", "description": "What it is: section, definition, example" },
            "location": location(),
            "summary": { "type": "string", "description": "First sentences" },
        },
        "required": ["id", "title", "type", "location"],
    });
    if let Some(children) = children {
        schema["properties"]["children"] =
            json!({ "type": "array", "items": children, "description": "Its parts, in order" });
    }
    schema
}

/// A node with all that is below it.
pub(super) fn tree() -> Value {
    (0..LEVELS).fold(json!({ "type": "object" }), |below, _| node(Some(below)))
}
