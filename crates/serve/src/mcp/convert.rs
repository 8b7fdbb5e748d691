//! Between the registry's values and the protocol's.

use std::{collections::BTreeMap, sync::Arc};

use rmcp::{
    ErrorData,
    model::{
        CallToolResult, ContentBlock, ErrorCode, GetPromptResult, JsonObject, MetaObject, Prompt,
        PromptArgument, PromptMessage, Resource, ResourceContents, ResourceTemplate, Role, Tool,
        ToolAnnotations,
    },
};
use serde_json::{Value, json};
use shelf_base::{
    ErrorInfo, Kind,
    bounds::{ECHO_BYTES, MESSAGE_BYTES},
    clipped,
};
use shelf_tools::{
    Answer, Attachment, ErrorReply,
    prompts::{self, Speaker},
    registry, resources,
};

/// A tool as a revision of the protocol wants it. Before 2026-07-28 structured content is an object, so an array stands
/// in one under `result`.
pub(super) fn tool(tool: &shelf_tools::Tool, is_modern: bool) -> Tool {
    let mut output = tool.output_schema();
    if tool.answers_with_array() && !is_modern {
        let wrapped = json!({ "type": "object", "properties": { "result": output }, "required": ["result"] });
        output = wrapped.as_object().cloned().unwrap_or_default();
    }
    let hints = tool.hints;
    let annotations = ToolAnnotations::with_title(tool.title)
        .read_only(hints.read_only)
        .destructive(hints.destructive)
        .idempotent(hints.idempotent)
        .open_world(hints.open_world);
    Tool::new(tool.name, tool.description, tool.input_schema())
        .with_title(tool.title)
        .with_raw_output_schema(Arc::new(output))
        .with_annotations(annotations)
}

/// The same facts twice: as structure and as text, since some clients forward only one of them.
pub(super) fn answer(Answer { value, about, attachments }: Answer, is_modern: bool) -> CallToolResult {
    let mut content = vec![ContentBlock::text(value.to_string())];
    // A bare array has no place for its total, and a model does not see `_meta`.
    if !about.is_empty() {
        content.push(ContentBlock::text(Value::Object(about.clone()).to_string()));
    }
    content.extend(attachments.into_iter().map(attachment));
    let mut result = CallToolResult::success(content);
    let wrap = value.is_array() && !is_modern;
    result.structured_content = Some(if wrap { json!({ "result": value }) } else { value });
    if !about.is_empty() {
        let named = about.into_iter().map(|(name, value)| (format!("shelfmark/{name}"), value));
        result.meta = Some(MetaObject(named.collect()));
    }
    result
}

fn attachment(attachment: Attachment) -> ContentBlock {
    match attachment {
        Attachment::Image { mime, data } => ContentBlock::image(data, mime),
        Attachment::Audio { mime, data } => ContentBlock::audio(data, mime),
        Attachment::Resource { uri, mime, data } => {
            ContentBlock::resource(ResourceContents::blob(data, uri).with_mime_type(mime))
        }
        Attachment::Link { uri, name, mime, size } => {
            ContentBlock::resource_link(Resource::new(uri, name).with_mime_type(mime).with_size(size))
        }
    }
}

/// A failure is text alone.
pub(super) fn failure(failure: ErrorReply) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(failure.text)])
}

pub(super) fn unknown_tool(name: &str) -> ErrorData {
    let near = shelf_base::nearest(name, registry().map(|tool| tool.name), 3);
    let hint = if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) };
    ErrorData::invalid_params(format!("unknown tool '{}'{hint}", clipped(name, ECHO_BYTES)), None)
}

pub(super) fn resource(listed: resources::Listed) -> Resource {
    Resource::new(listed.uri, listed.name)
        .with_title(listed.title)
        .with_mime_type(listed.mime)
        .with_size(listed.size)
}

pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(resources::DOCUMENT_TEMPLATE, "document")
            .with_title("A document")
            .with_description("The present content of a document, by its UUID"),
        ResourceTemplate::new(resources::COLLECTION_TEMPLATE, "collection")
            .with_title("A collection")
            .with_description("A collection by its UUID: its figures and the URIs of its documents")
            .with_mime_type("application/json"),
        ResourceTemplate::new(resources::SNAPSHOT_TEMPLATE, "snapshot")
            .with_title("A snapshot")
            .with_description("The files of a snapshot: path, hash, size and time of each")
            .with_mime_type("application/json"),
        ResourceTemplate::new(resources::EVIDENCE_TEMPLATE, "evidence")
            .with_title("Evidence")
            .with_description(
                "What stands at a citation address, such as doc://book#pages=3-4, percent-encoded",
            ),
    ]
}

pub(super) fn contents(read: resources::Read, uri: String) -> ResourceContents {
    let contents = if read.is_base64 {
        ResourceContents::blob(read.content, uri)
    } else {
        ResourceContents::text(read.content, uri)
    };
    contents.with_mime_type(read.mime)
}

/// Failures outside tools are protocol errors, with the same words.
pub(super) fn protocol_error(error: &shelf_engine::Error) -> ErrorData {
    let code = match error.kind() {
        Kind::Invalid | Kind::TooLarge | Kind::NotFound => ErrorCode::INVALID_PARAMS,
        _ => ErrorCode::INTERNAL_ERROR,
    };
    let data = json!({ "code": error.kind().row().code, "hints": error.hints() });
    ErrorData::new(code, clipped(&error.to_string(), MESSAGE_BYTES).into_owned(), Some(data))
}

pub(super) fn prompt(listed: prompts::Listed) -> Prompt {
    let argument = |argument: prompts::Argument| {
        PromptArgument::new(argument.name)
            .with_description(argument.description)
            .with_required(argument.required)
    };
    let arguments: Vec<PromptArgument> = listed.arguments.into_iter().map(argument).collect();
    let arguments = (!arguments.is_empty()).then_some(arguments);
    Prompt::new(listed.name, Some(listed.description), arguments).with_title(listed.title)
}

/// Arguments as texts: some clients send numbers as numbers.
pub(super) fn prompt_arguments(given: JsonObject) -> Result<BTreeMap<String, String>, ErrorData> {
    let text = |(name, value): (String, Value)| match value {
        Value::String(text) => Ok(Some((name, text))),
        Value::Number(number) => Ok(Some((name, number.to_string()))),
        Value::Bool(truth) => Ok(Some((name, truth.to_string()))),
        Value::Null => Ok(None),
        Value::Array(_) | Value::Object(_) => {
            let name = clipped(&name, ECHO_BYTES);
            Err(ErrorData::invalid_params(format!("argument '{name}' of a prompt must be a string"), None))
        }
    };
    given.into_iter().map(text).filter_map(Result::transpose).collect()
}

pub(super) fn got_prompt(got: prompts::Prompt) -> GetPromptResult {
    let role = match got.speaker {
        Speaker::User => Role::User,
        Speaker::Assistant => Role::Assistant,
    };
    GetPromptResult::new(vec![PromptMessage::new_text(role, got.text)]).with_description(got.description)
}
