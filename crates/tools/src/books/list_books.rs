//! `list_books`: lists the books.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_engine::Book;

use super::BACKEND;
use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply_list,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "list_books",
    title: "List books",
    description: "List all registered books. Use glob_search to see the files of one.",
    family: Family::Books,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Vec<BookView>>,
    run: |context, arguments| {
        let Arguments {} = arguments::read(arguments)?;
        let books = context.library.books(context.caller, context.call)?;
        let view = |book: Book| BookView {
            book_id: book.id,
            title: book.title,
            storage_backend: BACKEND,
            created_at: book.created_at.to_string(),
            status: book.status.word(),
        };
        reply_list(&books.into_iter().map(view).collect::<Vec<_>>())
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {}

#[derive(Serialize, JsonSchema)]
struct BookView {
    /// Book identifier
    book_id: String,
    /// Title of the book
    title: String,
    /// Where the content is stored: fs or s3
    storage_backend: &'static str,
    /// When the book was created
    created_at: String,
    /// active, archived or migrating
    status: &'static str,
}
