//! `list_documents_tool`: documents, newest first.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_engine::{Document, DocumentType};

use super::common::page_size;
use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply_part,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "list_documents_tool",
    title: "List documents",
    description: "List documents in collection(s), newest first, without their content. Use get_document_tool for the content \
                  of one, search_documents_tool to search by meaning, and list for filters and sorting.",
    family: Family::Documents,
    audience: Audience::Anyone,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"limit": 50, "offset": 0}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Vec<DocumentView>>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        arguments::one_start(arguments.offset, arguments.cursor.as_deref())?;
        let page = (page_size(arguments.limit)?, arguments.offset);
        let collection = arguments.collection_id.as_deref();
        let (listed, next) = context.library.list_documents(
            context.caller,
            collection,
            page,
            arguments.cursor,
            context.call,
        )?;
        let documents: Vec<DocumentView> = listed.documents.iter().map(view).collect();
        reply_part(&documents, listed.total, next, listed.more)
    },
};

fn view(document: &Document) -> DocumentView {
    DocumentView {
        id: document.id.to_string(),
        title: document.title.clone(),
        collection_id: document.collection.to_string(),
        document_type: DocumentType::of(document).word().into(),
        created_at: document.created_at.to_string(),
    }
}

const fn fifty() -> u64 {
    50
}

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Max results
    #[serde(default = "fifty")]
    #[schemars(range(min = 1))]
    limit: u64,
    /// Pagination offset
    #[serde(default)]
    offset: u64,
    /// Only documents in the collection with this UUID
    collection_id: Option<String>,
    /// nextCursor of the previous page, instead of offset
    cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct DocumentView {
    /// Document UUID
    id: String,
    /// Title
    title: String,
    /// Collection UUID
    collection_id: String,
    /// markdown, pdf, docx, html, text or json
    document_type: String,
    /// When the document was created
    created_at: String,
}
