//! The registry: the table of all tools, and the only way to call one.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, LazyLock, PoisonError, RwLock},
    time::Instant,
};

use serde::Serialize;
use serde_json::{Map, Value};
use shelf_base::{CallContext, Kind};
use shelf_engine::{Caller, Library};

use crate::{
    Family, Limits, arguments, books, citations, documents,
    family::{ErrorReply, ToolError},
    policy::{self, Access, Audience, Selection, Verdict},
    schema, store, verbatim, workspace,
};

/// What a tool needs to run.
pub struct Context<'a> {
    /// The library.
    pub library: &'a Library,
    /// Who is calling.
    pub caller: &'a Caller,
    /// The call in progress.
    pub call: &'a CallContext,
    /// Rate limits of this process.
    pub limits: &'a Limits,
    /// The tools that are offered.
    pub selection: &'a Selection,
    /// Maximum number of characters on a page of a list.
    pub page_chars: usize,
    /// Where content can be sent to when the caller reaches no server by an address, or why it cannot.
    pub upload_door: &'a dyn Fn() -> Result<String, String>,
}

/// The tool hints of the protocol, all four explicit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hints {
    /// Changes nothing.
    pub read_only: bool,
    /// May delete or overwrite.
    pub destructive: bool,
    /// Repeating a call has no further effect.
    pub idempotent: bool,
    /// Reaches beyond the library.
    pub open_world: bool,
}

/// One tool.
pub struct Tool {
    /// Its name, as the contract writes it.
    pub name: &'static str,
    /// A title for people.
    pub title: &'static str,
    /// When to use it, and when another tool fits better.
    pub description: &'static str,
    /// Its family.
    pub family: Family,
    /// Who may call it.
    pub audience: Audience,
    /// The access that a caller needs.
    pub access: Access,
    /// Its hints.
    pub hints: Hints,
    /// Arguments of an example call, as JSON; tests run it.
    pub example: &'static str,
    pub(crate) input: fn() -> Value,
    pub(crate) output: fn() -> Value,
    pub(crate) run: fn(&Context<'_>, Map<String, Value>) -> Result<Answer, ToolError>,
}

/// The answer of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The contract's JSON.
    pub value: Value,
    /// Facts about a reply that is a bare array: `total`, `truncated`, `nextCursor`.
    pub about: Map<String, Value>,
    /// Content that comes with the reply and is not JSON.
    pub attachments: Vec<Attachment>,
}

/// Content that comes with a reply; `data` is base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// An image.
    Image {
        /// MIME type.
        mime: String,
        /// The image.
        data: String,
    },
    /// Sound.
    Audio {
        /// MIME type.
        mime: String,
        /// The sound.
        data: String,
    },
    /// Anything else that is small.
    Resource {
        /// URI of the resource.
        uri: String,
        /// MIME type.
        mime: String,
        /// The content.
        data: String,
    },
    /// Where a client can read it.
    Link {
        /// URI of the resource.
        uri: String,
        /// Name of the file.
        name: String,
        /// MIME type.
        mime: String,
        /// Size in bytes.
        size: u64,
    },
}

impl Tool {
    /// The schema of its arguments.
    pub fn input_schema(&self) -> Arc<Map<String, Value>> {
        // Cached, because every call is checked against its schema and building one takes longer than most calls.
        static MADE: RwLock<BTreeMap<&str, Arc<Map<String, Value>>>> = RwLock::new(BTreeMap::new());
        let known = MADE.read().unwrap_or_else(PoisonError::into_inner).get(self.name).cloned();
        known.unwrap_or_else(|| {
            let mut schema = schema::object((self.input)());
            schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
            // Unknown arguments are refused by every call. The schema does not say so, because some clients cannot
            // convert a schema with a boolean in this place.
            let schema = Arc::new(schema);
            MADE.write().unwrap_or_else(PoisonError::into_inner).insert(self.name, schema.clone());
            schema
        })
    }

    /// Whether its reply is a bare array, as the contract shows it.
    pub fn answers_with_array(&self) -> bool {
        (self.output)().get("type").and_then(Value::as_str) == Some("array")
    }

    /// Whether a call takes well below a millisecond, apart from the size of its reply.
    pub fn is_short(&self) -> bool {
        matches!(
            self.name,
            "get"
                | "list"
                | "list_collections"
                | "list_snapshots"
                | "hello"
                | "get_document_tool"
                | "get_collection_tool"
                | "read_content"
                | "read_summary"
                | "list_books"
        )
    }

    /// Whether a call with these arguments writes so little that it takes about as long as a sync of the disk.
    pub fn is_short_write(&self, arguments: &Map<String, Value>) -> bool {
        /// Bytes of texts that are stored in no time.
        const LITTLE: usize = 64 << 10;
        let is_one_transaction = match self.name {
            // Files, folders and addresses take longer.
            "add" => arguments.contains_key("content") && !arguments.contains_key("path"),
            // The text of PDF and Word documents is counted first.
            "store_document_tool" => {
                let kind = arguments.get("document_type").and_then(Value::as_str);
                !kind.is_some_and(|kind| ["pdf", "docx"].contains(&kind))
            }
            _ => false,
        };
        let texts = arguments.values().filter_map(Value::as_str).map(str::len);
        is_one_transaction && texts.sum::<usize>() <= LITTLE
    }

    /// The toolset that it belongs to: its family's, or `extras`.
    pub fn toolset(&self) -> &'static str {
        let is_extra = extras().any(|extra| extra.name == self.name);
        if is_extra { policy::EXTRAS } else { self.family.word() }
    }

    /// The reply to its example, as it was when the tests last ran it. Ids, times and secrets in it stand for others.
    pub fn example_reply(&self) -> Option<&'static Value> {
        static REPLIES: LazyLock<Map<String, Value>> =
            LazyLock::new(|| serde_json::from_str(include_str!("examples.json")).unwrap_or_default());
        REPLIES.get(self.name)
    }

    /// The schema of its reply.
    pub fn output_schema(&self) -> Map<String, Value> {
        schema::brief(self.described_output_schema())
    }

    /// The schema of its reply with a description of every field, for people.
    pub fn described_output_schema(&self) -> Map<String, Value> {
        schema::object((self.output)())
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Tool({})", self.name)
    }
}

/// Every tool, in listing order.
pub fn registry() -> impl Iterator<Item = &'static Tool> {
    let families = [workspace::TOOLS, store::TOOLS, documents::TOOLS, books::TOOLS, citations::TOOLS];
    families.into_iter().flatten().chain(extras())
}

/// The tools beyond the contracts: the toolset `extras`, which is offered only when it is named.
pub(crate) fn extras() -> impl Iterator<Item = &'static Tool> {
    workspace::EXTRAS.iter().chain(books::EXTRAS).chain(store::EXTRAS).chain(documents::EXTRAS)
}

/// A tool by name.
pub fn find(name: &str) -> Option<&'static Tool> {
    registry().find(|tool| tool.name == name)
}

/// Calls a tool: checks the policy, whether the tool can do anything here, the rate limit and the arguments, then runs it. Errors have the family's shape, and
/// a panic becomes an error.
pub fn call(tool: &Tool, context: &Context<'_>, arguments: Map<String, Value>) -> Result<Answer, ErrorReply> {
    let meant = (tool.family == Family::Books).then(|| books::meant(&arguments)).flatten();
    let work = || {
        if let Verdict::Refused(sentence) = policy::verdict(&context.caller.pass, context.selection, tool) {
            return Err(ToolError::Refused(sentence));
        }
        if let Some(error) = policy::lacking(context.library, context.caller, tool) {
            return Err(error);
        }
        if !context.call.is_repeated() {
            context.limits.take(tool, context.caller, context.library.now())?;
        }
        if let Some(argument) = verbatim::too_wide(tool.name, &arguments) {
            let why = "holds an integer beyond 64 bits, which cannot be kept exactly: send it as text";
            return Err(ToolError::argument(format!("{argument} {why}")));
        }
        let arguments = arguments::prepare(&tool.input_schema(), arguments)?;
        (tool.run)(context, arguments)
    };
    let started = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(ToolError::Defect));
    if !context.call.had_to_wait() {
        context.limits.meter.note(tool.name, started.elapsed(), outcome.is_err(), context.library.now());
    }
    outcome.map_err(|error| tool.family.shape_about(&error, meant.as_deref()))
}

/// The error for arguments that could not be read, and so never reached the tool.
pub fn unreadable(tool: &Tool, kind: Kind, message: &str) -> ErrorReply {
    tool.family.shape(&ToolError::Unread(kind, message.to_owned()))
}

/// The error for a call that failed because of a defect outside the tool itself.
pub fn defect(tool: &Tool) -> ErrorReply {
    tool.family.shape(&ToolError::Defect)
}

/// The error for a call that waited too long for its turn.
pub fn busy(tool: &Tool, seconds: u64) -> ErrorReply {
    let message =
        format!("the server is busy: the call waited {seconds} s for its turn and nothing was done");
    tool.family.shape(&ToolError::Engine(shelf_engine::Error::Busy(message)))
}

/// Turns a reply into JSON.
pub(crate) fn reply(value: &impl Serialize) -> Result<Answer, ToolError> {
    let value = serde_json::to_value(value).map_err(|_| ToolError::Defect)?;
    Ok(Answer { value, about: Map::new(), attachments: Vec::new() })
}

/// Turns a whole list into JSON.
pub(crate) fn reply_list<T: Serialize>(items: &[T]) -> Result<Answer, ToolError> {
    reply_part(items, items.len() as u64, None, false)
}

/// Turns the first `most` items of a list into JSON. Whoever stops looking after one more does not know how many there are.
pub(crate) fn reply_first<T: Serialize>(mut items: Vec<T>, most: usize) -> Result<Answer, ToolError> {
    if items.len() <= most {
        return reply_list(&items);
    }
    items.truncate(most);
    let mut answer = reply(&items)?;
    answer.about.insert("truncated".into(), true.into());
    Ok(answer)
}

/// Turns a page of a list into JSON, with facts about the whole list.
pub(crate) fn reply_part<T: Serialize>(
    items: &[T],
    total: u64,
    next_cursor: Option<String>,
    is_cut: bool,
) -> Result<Answer, ToolError> {
    let mut answer = reply(&items)?;
    answer.about.insert("total".into(), total.into());
    answer.about.insert("truncated".into(), is_cut.into());
    if let Some(cursor) = next_cursor {
        answer.about.insert("nextCursor".into(), cursor.into());
    }
    Ok(answer)
}
