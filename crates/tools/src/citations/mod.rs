//! The citations family (contract 003): the tree of a resource, its nodes, and the evidence that they stand for.

mod get_node;
mod get_structure;
mod list_resources;
mod resolve;
mod shape;

use crate::Tool;

/// The family's tools, in the contract's order.
pub(crate) const TOOLS: &[Tool] = &[list_resources::TOOL, get_structure::TOOL, get_node::TOOL, resolve::TOOL];
