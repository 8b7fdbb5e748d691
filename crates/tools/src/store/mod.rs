//! The store family (contract 004).

mod activity;
mod add;
mod archive;
mod audit_journal;
mod browse;
mod call_statistics;
mod check_library;
mod common;
mod compare_snapshots;
mod delete_by_name;
mod describe_document;
mod download;
mod edit;
mod facets;
mod get;
mod graph;
mod grep;
mod grep_output;
mod list;
mod list_collections;
mod list_snapshots;
mod page_image;
mod plan_gc;
mod read_text;
mod restore;
mod search;
mod search_output;
mod status;
mod undelete_document;
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

/// Tools beyond the contract, for people who look around.
pub(crate) const EXTRAS: &[Tool] = &[
    edit::TOOL,
    describe_document::TOOL,
    read_text::TOOL,
    browse::TOOL,
    facets::TOOL,
    activity::TOOL,
    compare_snapshots::TOOL,
    audit_journal::TOOL,
    plan_gc::TOOL,
    check_library::TOOL,
    call_statistics::TOOL,
    page_image::TOOL,
    archive::TOOL,
    undelete_document::TOOL,
];
