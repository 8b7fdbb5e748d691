//! The workspace family (contract 001). Its file tools come with their own slice of work; `hello` is here already.

mod hello;

use crate::Tool;

/// The family's tools, in the contract's order.
pub(crate) const TOOLS: &[Tool] = &[hello::TOOL];
