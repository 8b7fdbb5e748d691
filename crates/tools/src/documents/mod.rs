//! The documents family (contract 002): titled documents, collections, collection tokens and users.

mod common;
mod create_cat;
mod create_collection;
mod create_user;
mod delete_collection;
mod delete_document;
mod delete_user;
mod get_collection;
mod get_document;
mod get_user;
mod list_cats;
mod list_collections;
mod list_documents;
mod list_users;
mod rename_collection;
mod revoke_cat;
mod rotate_cat;
mod search_documents;
mod search_users;
mod store_document;
mod update_document;
mod update_user;

use crate::Tool;

/// The family's tools, in the contract's order.
pub(crate) const TOOLS: &[Tool] = &[
    store_document::TOOL,
    search_documents::TOOL,
    get_document::TOOL,
    list_documents::TOOL,
    update_document::TOOL,
    delete_document::TOOL,
    create_collection::TOOL,
    list_collections::TOOL,
    get_collection::TOOL,
    delete_collection::TOOL,
    rename_collection::TOOL,
    create_cat::TOOL,
    list_cats::TOOL,
    revoke_cat::TOOL,
    rotate_cat::TOOL,
    list_users::TOOL,
    search_users::TOOL,
    get_user::TOOL,
    update_user::TOOL,
    delete_user::TOOL,
];

/// Tools beyond the contract, for administrators.
pub(crate) const EXTRAS: &[Tool] = &[create_user::TOOL];
