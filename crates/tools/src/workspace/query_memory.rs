//! `query_memory`: finds memory entries by field, text and time.

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

/// Default number of entries in a reply.
const USUAL: u64 = 20;
const DAY_MICROS: i64 = 86_400_000_000;

pub(crate) const TOOL: Tool = Tool {
    name: "query_memory",
    title: "Query memory",
    description: "Find entries of a memory file by field, text and time. Returns the last N matching entries (20 unless last is \
                  given), oldest first. Use read_repo_file to read the file itself, and write_memory_entry to append.",
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

/// Parses the end of a time range; a date includes that whole day.
fn end(field: &str, text: &str, now: Moment) -> Result<Moment, ToolError> {
    let found = moment(field, text, now)?;
    let is_date = text.trim().len() == 10 && text.trim().bytes().filter(|sign| *sign == b'-').count() == 2;
    Ok(if is_date { Moment::from_micros(found.micros() + DAY_MICROS) } else { found })
}

/// The newest entries that fit in a reply, but at least one.
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
    /// Memory file to query
    #[schemars(extend("enum" = ["progress_log.jsonl", "decisions.jsonl"]))]
    file: String,
    /// Field values to match, such as {"event": "task_completed"}; a dot in a name selects a nested field
    fields: Option<Map<String, Value>>,
    /// Text that the entry must contain, ignoring case
    contains: Option<String>,
    /// Only entries with a timestamp at or after this: a date, a date-time or an age such as 7d
    since: Option<String>,
    /// Only entries with a timestamp before this; a date includes that whole day
    until: Option<String>,
    /// Only the last N matching entries
    #[schemars(range(min = 1, max = 10_000))]
    last: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// File name
    file: String,
    /// The last matching entries, oldest first
    entries: Vec<EntryView>,
    /// Total number of matching entries
    total: u64,
    /// Number of valid entries in the file
    entry_count: u64,
    /// Number of lines in the file that are not valid entries
    #[serde(skip_serializing_if = "Option::is_none")]
    invalid_lines: Option<u64>,
    /// True when older entries match too; narrow the query, or ask for more with last
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
struct EntryView {
    /// Line number in the file, from 1
    line: u64,
    /// The entry
    entry: Map<String, Value>,
    /// The exact line in the file, when it differs from entry: numbers such as 1.10 or very long ones
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}
