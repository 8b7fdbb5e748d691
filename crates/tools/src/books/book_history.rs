//! `book_history`: tells who changed what in a book.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_engine::BookVersion;

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply_first,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "book_history",
    title: "History of a book",
    description: "List the changes of a book, or of one file of it, newest first: when, by whom, and the hashes before and after.",
    family: Family::Books,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"book_id": "ai-native-python", "limit": 20}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Vec<Change>>,
    run: |context, arguments| {
        let Arguments { book_id, path, limit } = arguments::read(arguments)?;
        let (library, caller) = (context.library, context.caller);
        let most = limit.unwrap_or(100) as usize;
        let history = library.book_history(caller, &book_id, path.as_deref(), most + 1, context.call)?;
        let change = |version: BookVersion| Change {
            timestamp: version.at.with_micros(),
            agent_id: version.by,
            operation: version.operation,
            path: version.path,
            previous_hash: version.previous.map(|hash| hash.to_string()),
            new_hash: version.new.map(|hash| hash.to_string()),
        };
        reply_first(history.into_iter().map(change).collect(), most)
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Book identifier
    book_id: String,
    /// Path within the book; all files when left out
    path: Option<String>,
    /// Most changes (default: 100)
    #[schemars(range(min = 1, max = 10_000))]
    limit: Option<u32>,
}

#[derive(Serialize, JsonSchema)]
struct Change {
    /// When
    timestamp: String,
    /// Who: label of the token, or name of the account
    agent_id: String,
    /// created, updated, deleted, or what else happened
    operation: &'static str,
    /// Path within the book
    path: String,
    /// SHA-256 before; absent when the file was created
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_hash: Option<String>,
    /// SHA-256 after; absent when the file was deleted
    #[serde(skip_serializing_if = "Option::is_none")]
    new_hash: Option<String>,
}
