//! `get`: retrieves a document by hash or name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use shelf_base::bounds::REQUEST_BYTES;
use shelf_engine::{Error, GetRequest, Got, Related, Window};

use crate::{
    Context, Family, Hints, Tool, arguments,
    family::ToolError,
    policy::{self, Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "get",
    title: "Get a document",
    description: "Retrieve a document by its content hash (full, or a unique prefix of at least 8 digits) or by name, UUID \
                  or citation address (then exactly that place): its details, optionally its content or part of it, related \
                  documents, or a copy written to outputPath. names retrieves several. Use list to find documents by type, tag or time.",
    family: Family::Store,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"name": "notes/monday.txt", "include_content": true}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let mut arguments: Arguments = arguments::read(arguments)?;
        if arguments.depth.is_some_and(|depth| !(1..=5).contains(&depth)) {
            return Err(ToolError::argument("depth must be between 1 and 5"));
        }
        if arguments.output_path.is_some() || arguments.output_path_alias.is_some() {
            policy::must_write(&context.caller.pass, context.selection)?;
        }
        must_fit(&arguments)?;
        let names = std::mem::take(&mut arguments.names);
        if names.is_empty() {
            return reply(&one(context, &arguments)?);
        }
        reply(&several(context, arguments, names)?)
    },
};

/// Refuses arguments of which one would be ignored.
fn must_fit(arguments: &Arguments) -> Result<(), ToolError> {
    let Arguments {
        output_path,
        output_path_alias,
        include_content,
        offset,
        length,
        start_line,
        end_line,
        ..
    } = arguments;
    if output_path.is_some() && output_path_alias.is_some() && output_path != output_path_alias {
        return Err(ToolError::argument(
            "outputPath and output_path are the same argument: give one of them",
        ));
    }
    let is_window = [offset, length, start_line, end_line].into_iter().any(Option::is_some);
    if is_window && !include_content && (output_path.is_some() || output_path_alias.is_some()) {
        let why = "outputPath takes the whole document: omit offset, length, start_line and end_line";
        return Err(ToolError::argument(why));
    }
    Ok(())
}

/// Names in one call at most.
const MOST_NAMES: usize = 50;

/// Several documents, each as if it had been asked for alone; together they bring at most what one reply may hold.
fn several(context: &Context<'_>, mut arguments: Arguments, names: Vec<String>) -> Result<Reply, ToolError> {
    if arguments.hash.is_some() || arguments.name.is_some() {
        return Err(ToolError::argument("names cannot be combined with name or hash"));
    }
    if arguments.output_path.is_some() || arguments.output_path_alias.is_some() {
        return Err(ToolError::argument("outputPath takes a single document; use restore to write several"));
    }
    arguments::must_be_names("names", &names)?;
    if names.len() > MOST_NAMES {
        return Err(ToolError::argument(format!("names may hold at most {MOST_NAMES} names")));
    }
    let mut room = REQUEST_BYTES as u64;
    let asked = arguments.length;
    let mut documents = Vec::with_capacity(names.len());
    for name in names {
        arguments.include_content &= room > 0;
        arguments.length = asked
            .map(|asked| asked.min(room))
            .or(Some(room))
            .filter(|_| asked.is_some() || (arguments.start_line.is_none() && arguments.end_line.is_none()));
        // A window does not go with an address, which is one itself.
        if name.contains("://") {
            arguments.length = asked;
        }
        arguments.name = Some(name.clone());
        let mut document = match one(context, &arguments) {
            // A name that means several documents is no reason to keep the others back.
            Err(ToolError::Engine(Error::Ambiguous { candidates, .. })) => {
                Reply { suggestions: candidates, ..Reply::default() }
            }
            outcome => outcome?,
        };
        room = room.saturating_sub(document.content.as_ref().map_or(0, |content| content.len() as u64));
        if !document.found {
            document.path = name;
        }
        documents.push(document);
    }
    Ok(Reply {
        found: documents.iter().all(|document| document.found),
        size: documents.iter().map(|document| document.size).sum(),
        documents: Some(documents),
        ..Reply::default()
    })
}

fn one(context: &Context<'_>, arguments: &Arguments) -> Result<Reply, ToolError> {
    let output_path = arguments.output_path.as_ref().or(arguments.output_path_alias.as_ref());
    let request = GetRequest {
        hash: arguments.hash.clone(),
        name: arguments.name.clone(),
        collection: arguments.collection.clone(),
        output_path: output_path.map(Into::into),
        include_content: arguments.include_content,
        window: Window {
            offset: arguments.offset,
            length: arguments.length,
            start_line: arguments.start_line,
            end_line: arguments.end_line,
        },
    };
    let (library, caller, call) = (context.library, context.caller, context.call);
    match library.get(caller, &request, call)? {
        Some(got) if arguments.graph => {
            let (related, truncated) =
                library.related(caller, &got.document, arguments.depth, RELATED, call)?;
            Ok(Reply {
                related: Some(related.iter().map(RelatedView::of).collect()),
                related_truncated: Some(truncated),
                ..found(got)
            })
        }
        Some(got) => Ok(found(got)),
        None => {
            let name = request.name.as_deref().filter(|_| request.hash.is_none());
            let near = name.map(|name| library.near_names(caller, request.collection.as_deref(), name));
            Ok(Reply { suggestions: near.transpose()?.unwrap_or_default(), ..Reply::default() })
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Document hash: 64 hexadecimal digits, or a unique prefix of at least 8. Provide this or name
    hash: Option<String>,
    /// Name of the document: its path, the end of its path, its title, its UUID, or a citation address such as text://notes#lines=5-6
    name: Option<String>,
    /// Names of several documents, instead of name
    #[serde(default)]
    names: Vec<String>,
    /// Look only in this collection
    collection: Option<String>,
    /// Output file path (optional)
    #[serde(rename = "outputPath")]
    output_path: Option<String>,
    /// Alias of outputPath
    #[serde(rename = "output_path")]
    output_path_alias: Option<String>,
    /// Include full document content in response
    #[serde(default)]
    include_content: bool,
    /// Include related documents in response: those it links to, imports, calls or cites, and those that do so with it
    #[serde(default)]
    graph: bool,
    /// Graph traversal depth (1-5)
    #[schemars(range(min = 1, max = 5), extend("default" = 2))]
    depth: Option<u64>,
    /// First byte of the content to include
    offset: Option<u64>,
    /// Number of bytes of the content to include
    #[schemars(range(min = 1))]
    length: Option<u64>,
    /// First line of the content to include, from 1
    start_line: Option<u64>,
    /// Last line of the content to include
    end_line: Option<u64>,
}

fn found(got: Got) -> Reply {
    let (document, version) = (got.document, got.version);
    let (content, place) = (got.content, got.place);
    Reply {
        found: true,
        size: version.size,
        path: got.written_to.clone().unwrap_or_else(|| document.path.clone()),
        hash: Some(version.hash.to_string()),
        document_id: Some(document.id.to_string()),
        document_path: Some(document.path),
        title: Some(document.title),
        collection: Some(document.collection_name),
        version: Some(version.number),
        is_current: Some(version.hash == document.version.hash),
        tags: Some(document.tags),
        metadata: Some(document.metadata),
        damaged: document.damaged.iter().map(|what| (*what).to_owned()).collect(),
        created_at: Some(document.created_at.to_string()),
        modified_at: Some(version.modified_at.to_string()),
        indexed_at: Some(version.indexed_at.to_string()),
        also_at: got.also_at,
        output_path: got.written_to,
        encoding: content.as_ref().map(|content| content.encoding.to_owned()),
        truncated: content.as_ref().map(|content| content.truncated),
        total_bytes: content.as_ref().map(|content| content.total_bytes),
        next_offset: content.as_ref().and_then(|content| content.next_offset),
        total_lines: content.as_ref().and_then(|content| content.total_lines),
        content: content.map(|content| content.text),
        address: place.as_ref().map(|place| place.address.clone()),
        mime_type: Some(place.and_then(|place| place.mime).unwrap_or(document.mime)),
        ..Reply::default()
    }
}

/// Related documents in one reply.
const RELATED: usize = 50;

#[derive(Serialize, JsonSchema)]
struct RelatedView {
    /// Document UUID
    document_id: String,
    /// Path of the document
    path: String,
    /// Title
    title: String,
    /// SHA-256 of the current content
    hash: String,
    /// Number of steps between the documents
    distance: u32,
    /// Relation of the last step
    relation: String,
}

impl RelatedView {
    fn of(related: &Related) -> Self {
        let document = &related.document;
        Self {
            document_id: document.id.to_string(),
            path: document.path.clone(),
            title: document.title.clone(),
            hash: document.version.hash.to_string(),
            distance: related.distance,
            relation: related.relation.to_owned(),
        }
    }
}

#[derive(Default, Serialize, JsonSchema)]
struct Reply {
    /// Whether the document was found
    found: bool,
    /// Size in bytes
    size: u64,
    /// Path of the document, or of the file that was written
    path: String,
    /// SHA-256 of the content
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
    /// Document UUID
    #[serde(skip_serializing_if = "Option::is_none")]
    document_id: Option<String>,
    /// Path of the document
    #[serde(skip_serializing_if = "Option::is_none")]
    document_path: Option<String>,
    /// Title
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Collection it belongs to
    #[serde(skip_serializing_if = "Option::is_none")]
    collection: Option<String>,
    /// Version number of this content
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    /// Whether this is the current version
    #[serde(skip_serializing_if = "Option::is_none")]
    is_current: Option<bool>,
    /// MIME type
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<String>,
    /// Tags
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<Vec<String>>,
    /// Metadata
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Map<String, Value>>,
    /// Fields that are damaged in the catalog and shown as empty; run shelf check
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    damaged: Vec<String>,
    /// When the document was created
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<String>,
    /// When the file itself was last modified
    #[serde(skip_serializing_if = "Option::is_none")]
    modified_at: Option<String>,
    /// When this version was stored
    #[serde(skip_serializing_if = "Option::is_none")]
    indexed_at: Option<String>,
    /// Other paths with the same content
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    also_at: Vec<String>,
    /// File that the content was written to
    #[serde(skip_serializing_if = "Option::is_none")]
    output_path: Option<String>,
    /// The content, or the requested part of it
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    /// utf-8, or base64 for binary content
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<String>,
    /// Whether the document continues after this content
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
    /// Size of the whole document in bytes
    #[serde(skip_serializing_if = "Option::is_none")]
    total_bytes: Option<u64>,
    /// Offset at which to continue
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
    /// Number of lines of the whole document, when lines were requested
    #[serde(skip_serializing_if = "Option::is_none")]
    total_lines: Option<u64>,
    /// The place that was asked for, when it is not the whole document
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    /// Names that are close to one that was not found, or the documents that an ambiguous one may mean
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    suggestions: Vec<String>,
    /// One reply like this for each of names
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<serde_json::Value>>")]
    documents: Option<Vec<Reply>>,
    /// Related documents, the nearest first, with graph
    #[serde(skip_serializing_if = "Option::is_none")]
    related: Option<Vec<RelatedView>>,
    /// Whether there are more related documents; use the tool graph for all of them
    #[serde(skip_serializing_if = "Option::is_none")]
    related_truncated: Option<bool>,
}
