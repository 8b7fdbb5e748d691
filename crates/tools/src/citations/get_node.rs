//! `getNode`: one node of a resource.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::shape;
use crate::{
    Family, Hints, Tool, arguments,
    family::ToolError,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "getNode",
    title: "Get a node",
    description: "Return one node of a resource: title, exact location, summary and the ids of its children. Use it to \
                  verify a node before citing it; getStructure returns the whole tree, resolve the evidence itself.",
    family: Family::Citations,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"resource_id": "lecture_01", "node_id": "chapter_1.intro"}"#,
    input: schema::of::<Arguments>,
    output,
    run: |context, arguments| {
        let Arguments { resource_id, node_id } = arguments::read(arguments)?;
        let found = context.library.node(context.caller, &resource_id, &node_id, context.call)?;
        let mut node = serde_json::to_value(&found.node).map_err(|_| ToolError::Defect)?;
        let children: Vec<Value> = found.children.iter().map(|id| json!({ "id": id })).collect();
        node["children"] = Value::Array(children);
        reply(&node)
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The resource ID; a document UUID or a content hash also works
    resource_id: String,
    /// The node ID (e.g., chapter_1.intro)
    node_id: String,
}

fn output() -> Value {
    let child = json!({
        "type": "object",
        "properties": { "id": { "type": "string", "description": "Id of the child" } },
        "required": ["id"],
    });
    shape::node(Some(child))
}
