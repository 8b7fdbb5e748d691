//! `query_memory`: what was noted, by field, words and time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use shelf_base::Moment;
use shelf_engine::{MemoryFile, MemoryLine, MemoryQuery};

use crate::{
    Family, Hints, Tool, arguments,
    family::ToolError,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

/// Entries in a reply unless another number is asked for.
const USUAL: u64 = 20;
const DAY_MICROS: i64 = 86_400_000_000;

pub(crate) const TOOL: Tool = Tool {
    name: "query_memory",
    title: "Ask memory",
    description: "Find entries of a memory file: by field, by words, by time, the last N of what fits (20 unless last says \
                  otherwise), oldest first. Use read_repo_file for the file as it is, write_memory_entry to append.",
    family: Family::Workspace,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"file": "progress_log.jsonl", "fields": {"event": "task_completed"}, "since": "30d", "last": 5}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let file = MemoryFile::named(&arguments.file)
            .map_err(|_| ToolError::argument("file must be progress_log.jsonl or decisions.jsonl"))?;
        let now = context.library.now();
        let last = usize::try_from(arguments.last.unwrap_or(USUAL)).unwrap_or(usize::MAX);
        let query = MemoryQuery {
            fields: arguments.fields.unwrap_or_default(),
            contains: arguments.contains,
            since: arguments.since.map(|text| moment("since", &text, now)).transpose()?,
            until: arguments.until.map(|text| end("until", &text, now)).transpose()?,
            last: Some(last),
        };
        let found = context.library.query_memory(context.caller, file, &query)?;
        let entries = newest_that_fit(found.entries, context.page_chars);
        reply(&Reply {
            file: file.name().to_owned(),
            truncated: ((entries.len() as u64) < found.total).then_some(true),
            entries,
            total: found.total,
            entry_count: found.entry_count,
            invalid_lines: (found.invalid_lines > 0).then_some(found.invalid_lines),
        })
    },
};

fn moment(field: &str, text: &str, now: Moment) -> Result<Moment, ToolError> {
    Moment::parse(text, now).map_err(|error| ToolError::argument(format!("{field}: {error}")))
}

/// A date as an end includes that day.
fn end(field: &str, text: &str, now: Moment) -> Result<Moment, ToolError> {
    let found = moment(field, text, now)?;
    let is_date = text.trim().len() == 10 && text.trim().bytes().filter(|sign| *sign == b'-').count() == 2;
    Ok(if is_date { Moment::from_micros(found.micros() + DAY_MICROS) } else { found })
}

/// The newest entries that a reply has room for; at least one.
fn newest_that_fit(found: Vec<MemoryLine>, page_chars: usize) -> Vec<EntryView> {
    let mut characters = 500_usize;
    let mut views: Vec<EntryView> = Vec::new();
    for MemoryLine { line, text, entry } in found.into_iter().rev() {
        characters = characters.saturating_add(2 * text.len() + 40);
        if characters > page_chars && !views.is_empty() {
            break;
        }
        let is_plain = serde_json::to_string(&entry).is_ok_and(|plain| plain == text);
        views.push(EntryView { line, entry, text: (!is_plain).then_some(text) });
    }
    views.reverse();
    views
}

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Memory file to look in
    #[schemars(extend("enum" = ["progress_log.jsonl", "decisions.jsonl"]))]
    file: String,
    /// Fields and the values they must have, such as {"event": "task_completed"}; a dot leads into an object
    fields: Option<Map<String, Value>>,
    /// Text that the entry must hold somewhere, in any case of letters
    contains: Option<String>,
    /// Only entries with a timestamp from here on: a date, a date-time or an age such as 7d
    since: Option<String>,
    /// Only entries with a timestamp before this; a date includes that day
    until: Option<String>,
    /// Only the last N of what fits
    #[schemars(range(min = 1, max = 10_000))]
    last: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// The file
    file: String,
    /// The last of what fits, oldest first
    entries: Vec<EntryView>,
    /// How many entries fit
    total: u64,
    /// Valid entries in the file
    entry_count: u64,
    /// Lines of the file that are no entries
    #[serde(skip_serializing_if = "Option::is_none")]
    invalid_lines: Option<u64>,
    /// True when older entries fit too; narrow the question or ask for more with last
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
struct EntryView {
    /// Line of the file, from 1
    line: u64,
    /// The entry
    entry: Map<String, Value>,
    /// The line as it stands in the file, when it is written otherwise: numbers such as 1.10 or very long ones
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}
