//! The store family at the boundary that callers see, one module a tool.

mod add;
mod delete;
mod get;
mod grep;
mod list;
mod registry;
mod restore;
mod search;
mod status;
mod update;
mod workspace;
mod workspace_extras;
mod workspace_memory;
