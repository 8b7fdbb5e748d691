//! Helpers shared by several tools of the family.

use schemars::JsonSchema;
use serde::Serialize;
use shelf_engine::{Account, DocumentType, OtherContent, StoredDocument, TokenKind};

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

/// What whoever stored or changed a document may not expect of it.
pub(super) fn note(stored: &StoredDocument) -> Option<String> {
    let mut notes = Vec::new();
    if stored.was_there {
        notes.push(
            "a document with this title and content exists already; it is returned as it is, with its own type and \
             metadata: use update_document_tool to change them"
                .to_owned(),
        );
    }
    notes.extend(stored.other.as_ref().map(about_other));
    if stored.passages == 0 {
        notes.push(
            "no text could be extracted from this content: list_documents_tool shows the document, but \
             search_documents_tool does not find it"
                .to_owned(),
        );
    }
    (!notes.is_empty()).then(|| notes.join("; "))
}

fn about_other(other: &OtherContent) -> String {
    let called = if other.called == DocumentType::Docx { "DOCX" } else { "PDF" };
    match &other.mime {
        None => format!(
            "the content is not a {called} file in base64 and is kept as text: send the bytes of a file as base64"
        ),
        Some(mime) => {
            format!("the content is not a {called} file but one of type {mime}, and is kept as that")
        }
    }
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
