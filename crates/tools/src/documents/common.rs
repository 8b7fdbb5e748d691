//! Helpers shared by several tools of the family.

use schemars::JsonSchema;
use serde::Serialize;
use shelf_engine::{Account, DocumentType, TokenKind};

use crate::family::ToolError;

/// Most items on one page of a list.
pub(super) const MOST: usize = 1_000;

/// The number of items on a page, at most [`MOST`].
pub(super) fn page_size(limit: u64) -> Result<usize, ToolError> {
    match usize::try_from(limit).unwrap_or(usize::MAX) {
        0 => Err(ToolError::argument("limit must be at least 1")),
        limit => Ok(limit.min(MOST)),
    }
}

/// Parses a document type; `None` when none was given.
pub(super) fn document_type(word: Option<&str>) -> Result<Option<DocumentType>, ToolError> {
    let Some(word) = word else { return Ok(None) };
    let words: Vec<&str> = DocumentType::ALL.iter().map(|kind| kind.word()).collect();
    let known = DocumentType::from_word(word).ok_or_else(|| {
        ToolError::argument(format!("document_type must be one of {}, not '{word}'", words.join(", ")))
    })?;
    Ok(Some(known))
}

/// The collection of a token, as shown in replies.
pub(super) fn collection_of(kind: TokenKind) -> String {
    match kind {
        TokenKind::Collection(id) => id.to_string(),
        TokenKind::Personal => String::new(),
    }
}

/// A reply that only confirms what was done.
#[derive(Serialize, JsonSchema)]
pub(super) struct Done {
    /// Confirmation message
    pub message: &'static str,
}

/// A user in a reply.
#[derive(Serialize, JsonSchema)]
pub(super) struct UserView {
    /// User UUID
    id: String,
    /// Email address
    email: String,
    /// Username
    username: String,
    /// Whether the user is active; tokens of inactive users do not work
    is_active: bool,
    /// Whether the user is an administrator
    is_superuser: bool,
    /// When the account was created
    created_at: String,
}

impl From<&Account> for UserView {
    fn from(account: &Account) -> Self {
        Self {
            id: account.id.to_string(),
            email: account.email.clone().unwrap_or_default(),
            username: account.username.clone(),
            is_active: account.is_active,
            is_superuser: account.is_superuser,
            created_at: account.created_at.to_string(),
        }
    }
}
