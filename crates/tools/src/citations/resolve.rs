//! `resolve`: the evidence that a node or an address stands for.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use shelf_engine::{EvidenceContent, ResolveRequest, Resolved};

use super::shape;
use crate::{
    Family, Hints, Tool, arguments,
    family::ToolError,
    policy::{Access, Audience},
    registry::{Attachment, reply},
    resources, schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "resolve",
    title: "Resolve evidence",
    description: "Cut out the evidence that a node stands for: the pages as a PDF, the exact lines, the crop of an image \
                  or the clip of a recording. Takes resource_id and node_id, or an address such as doc://book#pages=3-4 \
                  from a search hit. With virtual: true it only returns the address. With include_content: true the \
                  text comes with the reply, images and short clips too.",
    family: Family::Citations,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"resource_id": "lecture_01", "node_id": "chapter_1.intro", "virtual": false}"#,
    input: schema::of::<Arguments>,
    output,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let request = ResolveRequest {
            resource_id: arguments.resource_id,
            node_id: arguments.node_id,
            address: arguments.address,
            is_virtual: arguments.is_virtual,
            include_content: arguments.include_content,
        };
        let mut resolved = context.library.resolve(context.caller, &request, context.call)?;
        let content = resolved.content.take();
        let mut answer = reply(&shown(&resolved, content.as_ref())?)?;
        answer.attachments.extend(content.map(attachment));
        Ok(answer)
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The resource ID; a document UUID or a content hash also works
    resource_id: Option<String>,
    /// The node ID to resolve
    node_id: Option<String>,
    /// If true, return address without extraction
    #[serde(default, rename = "virtual")]
    is_virtual: bool,
    /// A citation address, in place of resource_id and node_id
    address: Option<String>,
    /// Include the content in the reply: text inline, images and short clips as content, everything else as a link
    #[serde(default)]
    include_content: bool,
}

fn shown(resolved: &Resolved, content: Option<&EvidenceContent>) -> Result<Value, ToolError> {
    let mut node = serde_json::to_value(&resolved.node).map_err(|_| ToolError::Defect)?;
    if let Some(node) = node.as_object_mut() {
        node.remove("children");
    }
    let mut value = json!({
        "output_path": resolved.output_path,
        "modality": resolved.modality.name(),
        "address": resolved.address,
        "node": node,
        "resource_id": resolved.resource_id,
    });
    if let Some(exact) = &resolved.exact_address {
        value["exact_address"] = json!(exact);
    }
    if let Some(url) = &resolved.evidence_url {
        value["evidence_url"] = json!(url);
    }
    if resolved.source_changed {
        value["source_changed"] = json!(true);
    }
    if let Some(content) = content {
        value["mime_type"] = json!(content.mime);
        value["size"] = json!(content.size);
        value["resource_uri"] = json!(resources::evidence_uri(&content.address));
        if let Some(text) = &content.text {
            value["content"] = json!(text);
        }
    }
    Ok(value)
}

/// Images, sound and other short evidence as content; everything else as a link to a resource.
fn attachment(content: EvidenceContent) -> Attachment {
    let uri = resources::evidence_uri(&content.address);
    let EvidenceContent { mime, bytes, name, size, .. } = content;
    match bytes.map(|bytes| STANDARD.encode(bytes)) {
        Some(data) if mime.starts_with("image/") => Attachment::Image { mime, data },
        Some(data) if mime.starts_with("audio/") => Attachment::Audio { mime, data },
        Some(data) => Attachment::Resource { uri, mime, data },
        None => Attachment::Link { uri, name, mime, size },
    }
}

fn output() -> Value {
    let text = |description: &str| json!({ "type": "string", "description": description });
    json!({
        "type": "object",
        "properties": {
            "output_path": {
                "anyOf": [{ "type": "string" }, { "type": "null" }],
                "description": "Path of the extracted file; null if virtual is true",
            },
            "modality": text("Modality of the node"),
            "address": text("Citation address; times are rounded outward to whole seconds"),
            "exact_address": text("The address with fractions of a second, when it differs"),
            "node": shape::node(None),
            "resource_id": text("Id of the resource"),
            "source_changed": { "type": "boolean", "description": "The document has other content by now; this evidence is of the content that was mapped" },
            "evidence_url": text("Signed URL from which the file can be fetched for a while"),
            "content": text("Text of the evidence, when content was requested"),
            "mime_type": text("Type of the extracted file"),
            "size": { "type": "integer", "description": "Size of the extracted file in bytes" },
            "resource_uri": text("URI from which the evidence can be read as a resource"),
        },
        "required": ["output_path", "modality", "address", "node", "resource_id"],
    })
}
