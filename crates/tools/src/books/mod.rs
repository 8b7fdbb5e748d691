//! The books family (contract 000): lessons, chapter summaries, and finding them.

mod delete_content;
mod delete_summary;
mod glob_search;
mod grep_search;
mod list_books;
mod read_content;
mod read_summary;
mod write_content;
mod write_summary;

use crate::Tool;

/// What replies say about where content is stored: packs are files.
const BACKEND: &str = "fs";

/// The family's tools, in the contract's order.
pub(crate) const TOOLS: &[Tool] = &[
    read_content::TOOL,
    write_content::TOOL,
    delete_content::TOOL,
    read_summary::TOOL,
    write_summary::TOOL,
    delete_summary::TOOL,
    glob_search::TOOL,
    grep_search::TOOL,
    list_books::TOOL,
];
