//! The registry: the table of all tools, and the one way to call one.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Serialize;
use serde_json::{Map, Value};
use shelf_base::CallContext;
use shelf_engine::{Caller, Library};

use crate::{
    Family, Limits, arguments, documents,
    family::{ErrorReply, ToolError},
    policy::{self, Access, Audience, Selection, Verdict},
    schema, store, workspace,
};

/// What a tool needs to run.
pub struct Context<'a> {
    /// The library.
    pub library: &'a Library,
    /// Who asks.
    pub caller: &'a Caller,
    /// The call in progress.
    pub call: &'a CallContext,
    /// Rate limits of this process.
    pub limits: &'a Limits,
    /// The tools on offer.
    pub selection: &'a Selection,
    /// Characters that a page of a list may hold.
    pub page_chars: usize,
}

/// The hints of the protocol, all four explicit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hints {
    /// Changes nothing.
    pub read_only: bool,
    /// May delete or overwrite.
    pub destructive: bool,
    /// The same call twice has the effect of one.
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
    /// When to use it, and when another fits.
    pub description: &'static str,
    /// Its family.
    pub family: Family,
    /// Who may call it at all.
    pub audience: Audience,
    /// What a caller must be allowed to do.
    pub access: Access,
    /// Its hints.
    pub hints: Hints,
    /// Arguments of an example call, as JSON; tests run it.
    pub example: &'static str,
    pub(crate) input: fn() -> Value,
    pub(crate) output: fn() -> Value,
    pub(crate) run: fn(&Context<'_>, Map<String, Value>) -> Result<Answer, ToolError>,
}

/// What a tool answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The contract's JSON.
    pub value: Value,
    /// What stands beside an array, which has no room for it: `total`, `truncated`, `nextCursor`.
    pub about: Map<String, Value>,
}

impl Tool {
    /// The schema of its arguments.
    pub fn input_schema(&self) -> Map<String, Value> {
        let mut schema = schema::object((self.input)());
        schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        schema.insert("additionalProperties".into(), Value::Bool(false));
        schema
    }

    /// Whether its reply is a bare array, as the contract shows it.
    pub fn answers_with_array(&self) -> bool {
        (self.output)().get("type").and_then(Value::as_str) == Some("array")
    }

    /// The toolset that it belongs to: its family's, or `extras`.
    pub fn toolset(&self) -> &'static str {
        let is_extra = extras().any(|extra| extra.name == self.name);
        if is_extra { policy::EXTRAS } else { self.family.word() }
    }

    /// The schema of its reply.
    pub fn output_schema(&self) -> Map<String, Value> {
        schema::object((self.output)())
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Tool({})", self.name)
    }
}

/// Every tool, in the order in which they are listed.
pub fn registry() -> impl Iterator<Item = &'static Tool> {
    workspace::TOOLS.iter().chain(store::TOOLS).chain(documents::TOOLS).chain(extras())
}

/// The tools beyond the contracts: the toolset `extras`, which is offered only where it is named.
pub(crate) fn extras() -> impl Iterator<Item = &'static Tool> {
    workspace::EXTRAS.iter()
}

/// A tool by name.
pub fn find(name: &str) -> Option<&'static Tool> {
    registry().find(|tool| tool.name == name)
}

/// Calls a tool: policy, arguments, work, each failure in the family's shape. A defect is contained here.
pub fn call(tool: &Tool, context: &Context<'_>, arguments: Map<String, Value>) -> Result<Answer, ErrorReply> {
    let work = || {
        if let Verdict::Refused(sentence) = policy::verdict(&context.caller.pass, context.selection, tool) {
            return Err(ToolError::Refused(sentence));
        }
        context.limits.take(tool, context.caller, context.library.now())?;
        let arguments = arguments::prepare(&tool.input_schema(), arguments)?;
        (tool.run)(context, arguments)
    };
    let outcome = catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(ToolError::Defect));
    outcome.map_err(|error| tool.family.shape(&error))
}

/// The failure of a call that ended by a defect outside the tool itself.
pub fn defect(tool: &Tool) -> ErrorReply {
    tool.family.shape(&ToolError::Defect)
}

/// The failure of a call whose turn did not come.
pub fn busy(tool: &Tool, seconds: u64) -> ErrorReply {
    let message =
        format!("the server is busy: the call waited {seconds} s for its turn and nothing was done");
    tool.family.shape(&ToolError::Engine(shelf_engine::Error::Busy(message)))
}

/// Turns a reply into JSON.
pub(crate) fn reply(value: &impl Serialize) -> Result<Answer, ToolError> {
    let value = serde_json::to_value(value).map_err(|_| ToolError::Defect)?;
    Ok(Answer { value, about: Map::new() })
}

/// Turns a part of a list into JSON, with what there is to say of the whole.
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
