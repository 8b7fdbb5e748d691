//! The store family (contract 004).

mod add;
mod common;
mod delete_by_name;
mod download;
mod edit;
mod get;
mod graph;
mod grep;
mod grep_output;
mod list;
mod list_collections;
mod list_snapshots;
mod restore;
mod search;
mod search_output;
mod status;
mod update;

use crate::Tool;
pub(crate) use common::first_that_fit;

/// The family's tools, in the contract's order.
pub(crate) const TOOLS: &[Tool] = &[
    search::TOOL,
    add::TOOL,
    grep::TOOL,
    get::TOOL,
    graph::TOOL,
    update::TOOL,
    status::TOOL,
    list::TOOL,
    download::TOOL,
    restore::TOOL,
    list_collections::TOOL,
    list_snapshots::TOOL,
    delete_by_name::TOOL,
];

/// Tools beyond the contract: the family's part of the toolset `extras`.
pub(crate) const EXTRAS: &[Tool] = &[edit::TOOL];
