//! The workspace family (contract 001).

mod add_best_practice;
mod check_memory;
mod hello;
mod list_repo_files;
mod query_memory;
mod read_repo_file;
mod write_memory_entry;

use crate::Tool;

/// The family's tools, in the contract's order.
pub(crate) const TOOLS: &[Tool] = &[hello::TOOL, read_repo_file::TOOL, write_memory_entry::TOOL];

/// Tools beyond the contract: the family's part of the toolset `extras`.
pub(crate) const EXTRAS: &[Tool] =
    &[query_memory::TOOL, list_repo_files::TOOL, add_best_practice::TOOL, check_memory::TOOL];
