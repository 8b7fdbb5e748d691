//! The workspace family (contract 001).

mod hello;
mod read_repo_file;
mod write_memory_entry;

use crate::Tool;

/// The family's tools, in the contract's order.
pub(crate) const TOOLS: &[Tool] = &[hello::TOOL, read_repo_file::TOOL, write_memory_entry::TOOL];
