//! The tools as callers see them, one module per tool or topic.

mod accounts;
mod add;
mod book_assets;
mod book_registry;
mod books;
mod citations;
mod delete;
mod documents;
mod download;
mod edit;
mod get;
mod graph;
mod grep;
mod hostile;
mod identities;
mod list;
mod prompts;
mod real_documents;
mod registry;
mod restore;
mod search;
mod status;
mod update;
mod workspace;
mod workspace_extras;
mod workspace_memory;
