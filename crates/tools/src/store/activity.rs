//! `activity`: what happened, from the journal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_engine::{ActivityOf, Event, Operation, RecordFilter, Subject};

use crate::family::ToolError;
use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "activity",
    title: "What happened",
    description: "List what happened in your collections and what you did, newest first: who, when, which operation, which \
                  document, and its hashes before and after. Filter by family, collection, document, operation and \
                  who. Use book_history for the files of one book.",
    family: Family::Store,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"limit": 20, "operations": ["add", "replace", "delete"]}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let operations: Result<Vec<Operation>, ToolError> =
            arguments.operations.iter().map(|word| operation(word)).collect();
        let filter = RecordFilter {
            before: arguments.before,
            operations: operations?,
            subject: arguments.family.as_deref().map(subject).transpose()?,
            ..RecordFilter::default()
        };
        let most = arguments.limit.unwrap_or(50) as usize;
        let of = ActivityOf {
            collection: arguments.collection.as_deref(),
            document: arguments.document_id.as_deref(),
            by: arguments.by.as_deref(),
            after: arguments.after,
        };
        let found = context.library.activity(context.caller, of, filter, most)?;
        let events = found.events.into_iter().map(EventView::of).collect();
        reply(&Reply { events, next_before: found.next_before, complete: found.is_complete })
    },
};

fn operation(word: &str) -> Result<Operation, ToolError> {
    Operation::from_word(word).ok_or_else(|| {
        let known: Vec<&str> = Operation::ALL.iter().map(|operation| operation.word()).collect();
        ToolError::argument(format!("operations may hold {}, not '{word}'", known.join(", ")))
    })
}

fn subject(word: &str) -> Result<Subject, ToolError> {
    Subject::from_word(word).ok_or_else(|| {
        let known: Vec<&str> = Subject::ALL.iter().map(|subject| subject.word()).collect();
        let hint = match word {
            "workspace" => " (the workspace's memory has a record of its own: query_memory)",
            _ => "",
        };
        ToolError::argument(format!("family must be one of {}, not '{word}'{hint}", known.join(", ")))
    })
}

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Only this collection
    collection: Option<String>,
    /// Only this document, by UUID
    document_id: Option<String>,
    /// Only these operations: add, replace, update, retitle, delete, snapshot and others
    #[serde(default)]
    operations: Vec<String>,
    /// Only what concerns things of this family, whichever tool changed them: store (documents with a path, snapshots),
    /// documents (documents with a title, collections, accounts, tokens), books or citations (maps)
    family: Option<String>,
    /// Only what this one did: the label of a token, or the name of an account
    by: Option<String>,
    /// Only events after this one, by sequence
    after: Option<u64>,
    /// next_before of the previous page
    before: Option<u64>,
    /// Maximum number of events
    #[schemars(range(min = 1, max = 1_000), extend("default" = 50))]
    limit: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// The events, newest first
    events: Vec<EventView>,
    /// Where the next page begins; absent when there are no older events
    #[serde(skip_serializing_if = "Option::is_none")]
    next_before: Option<u64>,
    /// Whether everything up to here was looked at; otherwise next_before says where to look on
    complete: bool,
}

#[derive(Serialize, JsonSchema)]
struct EventView {
    /// Number in the journal of the library
    sequence: u64,
    /// When
    at: String,
    /// Who: label of the token, or name of the account
    by: String,
    /// What: add, replace, delete and others
    operation: String,
    /// Whose things were changed: store, documents, books or citations
    family: String,
    /// Collection; absent when it is gone or none was concerned
    #[serde(skip_serializing_if = "Option::is_none")]
    collection: Option<String>,
    /// Document UUID
    #[serde(skip_serializing_if = "Option::is_none")]
    document_id: Option<String>,
    /// Path of the document, or name of what was changed
    path: String,
    /// SHA-256 before
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_hash: Option<String>,
    /// SHA-256 after
    #[serde(skip_serializing_if = "Option::is_none")]
    new_hash: Option<String>,
}

impl EventView {
    fn of(event: Event) -> Self {
        let record = event.record;
        Self {
            sequence: record.sequence,
            at: record.at.to_string(),
            by: event.by,
            operation: record.operation.word().to_owned(),
            family: event.subject.word().to_owned(),
            collection: event.collection,
            document_id: record.document.map(|id| id.to_string()),
            path: record.path,
            previous_hash: record.previous.map(|hash| hash.to_string()),
            new_hash: record.new.map(|hash| hash.to_string()),
        }
    }
}
