//! `browse`: a folder of a collection.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_engine::Order;

use super::{common::DocumentView, first_that_fit, list};
use crate::family::ToolError;
use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "browse",
    title: "Browse a collection",
    description: "Show one folder of a collection: its folders with numbers of documents and bytes, and a page of its own \
                  documents. A folder that holds nothing but one folder is passed through, unless exact is set. Use list for documents of \
                  all folders by type, tag or time.",
    family: Family::Store,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"collection": "default", "folder": "notes"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let sort = list::sort_by(arguments.sort_by.as_deref())?;
        let order = match arguments.sort_order.as_deref() {
            None | Some("asc") => Order::Ascending,
            Some("desc") => Order::Descending,
            Some(other) => {
                return Err(ToolError::argument(format!("sort_order must be asc or desc, not '{other}'")));
            }
        };
        let page = (arguments.limit.unwrap_or(100) as usize, arguments.offset);
        let found = context.library.browse(
            context.caller,
            &arguments.collection,
            (arguments.folder.as_deref().unwrap_or_default(), arguments.exact),
            (sort, order),
            page,
        )?;
        let views = found.content.documents.iter().map(DocumentView::from);
        let documents = first_that_fit(views, None, context.page_chars * 2);
        let next = arguments.offset + documents.len() as u64;
        let truncated = found.content.folders.len() > FOLDERS;
        reply(&Reply {
            folder: found.folder,
            folder_count: found.content.folders.len() as u64,
            folders: found
                .content
                .folders
                .into_iter()
                .take(FOLDERS)
                .map(|folder| FolderView {
                    name: folder.name,
                    document_count: folder.documents,
                    bytes: folder.bytes,
                })
                .collect(),
            folders_truncated: truncated,
            next_offset: (next < found.content.total && !documents.is_empty()).then_some(next),
            documents,
            total: found.content.total,
        })
    },
};

/// Folders that one reply lists.
const FOLDERS: usize = 2_000;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Collection
    collection: String,
    /// Folder; the top of the collection when left out
    folder: Option<String>,
    /// Show exactly this folder, also when it holds nothing but one folder
    #[serde(default)]
    exact: bool,
    /// Sort key of documents: name, size, created, modified or indexed
    sort_by: Option<String>,
    /// Sort order: asc or desc
    sort_order: Option<String>,
    /// Maximum number of documents on this page
    #[schemars(range(min = 1, max = 1_000), extend("default" = 100))]
    limit: Option<u64>,
    /// Number of documents to skip
    #[serde(default)]
    offset: u64,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// The folder that is shown, with a slash at its end; empty for the top
    folder: String,
    /// Its folders, by name
    folders: Vec<FolderView>,
    /// Number of its folders
    folder_count: u64,
    /// Whether it has more folders than are listed
    folders_truncated: bool,
    /// A page of its own documents
    documents: Vec<DocumentView>,
    /// Number of its own documents
    total: u64,
    /// Offset of the next page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct FolderView {
    /// Name
    name: String,
    /// Number of documents anywhere below it
    document_count: u64,
    /// Their size in bytes
    bytes: u64,
}
